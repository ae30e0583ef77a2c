# SPDX-License-Identifier: Apache-2.0
"""Killed, stopped, limited or without room at any moment: the earlier result is whole."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import random
import re
import resource
import signal
import subprocess
from pathlib import Path

import pytest
from support.cli import check_error
from support.faults import EARLIER, Place, memory_disk
from support.progress import Steps, catches, wait_for_group, waits_in
from support.runs import example
from support.tools import ingester_path, plan_option, run, wbscope_path
from support.waits import GUARD_SECONDS, wait_until

# Killed, stopped or limited at any moment: the earlier result is whole, the next run cleans up.

_SEED = 41
_BLOCK = 20  # kills of one test
_KILLS = {"ingester": 160, "wbscope": 40}  # that met a living process
_TRIES_FOR_A_KILL = 4
_STOPS = {"ingester": 24, "wbscope": 8}
_BLOCKS = [(which, first) for which, count in _KILLS.items() for first in range(0, count, _BLOCK)]


def _command(place: Place, which: str) -> list[str]:
    return place.ingester() if which == "ingester" else place.wbscope()


def _wait_for_begin(process: subprocess.Popen[str]) -> None:
    """Until it has handlers of its own, or has ended: Python's own start ends as Python does."""
    wait_until(
        lambda: catches(process.pid, signal.SIGTERM) or process.poll() is not None, "it begins"
    )


@pytest.mark.parametrize(("which", "first"), _BLOCKS)
def test_kill_at_random_moments(place: Place, which: str, first: int) -> None:
    """One that comes too late changes nothing: there is another one."""
    chance = random.Random(_SEED + first)
    whole = place.steps(_command(place, which))
    killed = left = 0
    for number in range(_BLOCK * _TRIES_FOR_A_KILL):
        if killed == _BLOCK:
            break
        process = place.start(_command(place, which))
        if Steps(process).reach(chance.randint(0, whole)):
            os.killpg(process.pid, signal.SIGKILL)
        ended = place.finish(process)
        killed += ended.returncode == -signal.SIGKILL
        assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
        place.check_output(f"kill {number}", leftovers=True, done=None)
        # Each run removes what the one before left, but for a child that is still dying.
        names = os.listdir(place.folder)
        assert len(names) <= 4, names
        left += len(names) > 1
        place.reset()
    assert killed > 0
    assert left > 0  # else the next lines show nothing
    wait_for_group(process.pid)
    place.check(place.run(_command(place, which)), [0])


@pytest.mark.parametrize("which", _KILLS)
def test_kill_of_the_front_end_alone(place: Place, which: str) -> None:
    if which == "ingester":
        pytest.skip("has no front end")
    process = place.start(place.wbscope())
    wait_until(
        lambda: len(os.listdir(place.folder)) > 1 or process.poll() is not None, "it has begun"
    )
    process.kill()
    place.finish(process)
    place.check_output("kill", leftovers=True, done=None)
    wait_for_group(process.pid)  # the orphan, too
    place.reset()
    place.check(place.run(place.wbscope()), [0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("which", _STOPS)
def test_stop_at_random_moments(place: Place, which: str, number: signal.Signals) -> None:
    chance = random.Random(_SEED)
    whole = place.steps(_command(place, which))
    for _ in range(_STOPS[which]):
        process = place.start(_command(place, which))
        Steps(process).reach(chance.randint(0, whole))
        if which == "wbscope" and number == signal.SIGINT:
            _wait_for_begin(process)
        process.send_signal(number)
        ended = place.finish(process)
        if ended.returncode == -number:  # Python itself was starting or ending
            wait_for_group(process.pid)
            place.check_output(str(ended), leftovers=False, done=None)
        elif (
            which == "wbscope"
            and ended.returncode == 130
            and ended.stderr.splitlines()[-1] == "interrupted"
        ):
            # The new result may just have been put in its place, and even been told.
            place.check_output(str(ended), leftovers=False, done=None)
        else:
            place.check(ended, [0, 130])
        place.reset()


def test_leftovers_of_the_living_are_kept(place: Place) -> None:
    mine = place.folder / ".run.db.1.part"
    other_target = place.folder / ".other.db.1.part"
    for path in (mine, other_target):
        path.write_bytes(b"half")
    with mine.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ended = place.run(place.ingester())
        assert ended.returncode == 0
        assert mine.exists()
    place.run(place.ingester())
    assert sorted(os.listdir(place.folder)) == [".other.db.1.part", "run.db"]


def test_private_folders_of_the_living_are_kept(place: Place) -> None:
    folder = place.folder / ".run.db.wbscope-abcd1234"
    not_ours = [place.folder / name for name in (".run.db.notes", ".run.db.abcd1234")]
    for path in (folder, *not_ours):
        path.mkdir()
        (path / "file").write_bytes(b"half")
        (path / ".writer.lock").touch()
    lock = folder / ".writer.lock"
    with lock.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        place.run(place.wbscope())
        assert (folder / "file").exists()
    place.run(place.wbscope())
    assert sorted(os.listdir(place.folder)) == [".run.db.abcd1234", ".run.db.notes", "run.db"]


def test_two_runs_at_once(place: Place) -> None:
    for command in (place.ingester(), place.wbscope()):
        running = [place.start(command) for _ in range(4)]
        for process in running:
            place.check(place.finish(process), [0], leftovers=True)
        place.check_output("all", leftovers=False, done=True)


@pytest.mark.parametrize("which", ["ingester", "wbscope"])
def test_few_file_descriptors(place: Place, which: str) -> None:
    codes = set()
    for most in (*range(3, 14), 16, 24):

        def limit(most: int = most) -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

        if which == "wbscope" and most < 12:
            continue  # Python itself needs some to start
        ended = place.run(_command(place, which), preexec_fn=limit)
        if ended.returncode == 127:  # the loader could not open the libraries
            continue
        place.check(ended, [0, 5])
        codes.add(ended.returncode)
        place.reset()
    assert codes == {0, 5} or which == "wbscope"


def test_little_memory(place: Place) -> None:
    codes = []
    for mebibytes in (16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256, 1024):

        def limit(most: int = mebibytes << 20) -> None:
            resource.setrlimit(resource.RLIMIT_AS, (most, most))

        ended = place.run(place.ingester(), preexec_fn=limit)
        if ended.returncode == 127:  # the loader had no room for the libraries
            continue
        place.check(ended, [0, 5])
        codes.append(ended.returncode)
        place.reset()
    assert codes[-1] == 0
    assert 5 in codes


@pytest.mark.parametrize("streams", [(1,), (2,), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("which", ["ingester", "wbscope"])
def test_closed_streams(place: Place, which: str, streams: tuple[int, ...]) -> None:
    def close() -> None:
        for stream in streams:
            os.close(stream)

    ended = place.run(_command(place, which), preexec_fn=close)
    place.check(ended, [0])
    # Nor behind: findings of the run may say that something was written.
    assert not re.search(rb"wrote \S+: \d+ events", place.output.read_bytes()[-4096:])


@pytest.mark.parametrize("json_lines", [(), ("--json-lines",)], ids=["text", "json lines"])
def test_reader_of_messages_that_leaves(place: Place, json_lines: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    process = place.start(place.ingester(*json_lines), stderr=writing)
    os.close(writing)
    os.close(reading)
    ended = place.finish(process)
    place.check(ended, [0, 130] if json_lines else [0])


def _fill(pipe: int) -> None:
    os.set_blocking(pipe, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(pipe, bytes(4096))
    os.set_blocking(pipe, True)


def test_full_pipe_of_messages(place: Place, tmp_path: Path) -> None:
    spoiled = bytearray(place.source.read_bytes())
    del spoiled[-len(spoiled) // 3 :]  # so that there is something to say
    place.source.write_bytes(spoiled)
    reading, writing = os.pipe()
    _fill(writing)
    process = place.start(place.ingester(), stderr=writing)
    os.close(writing)
    wait_until(
        lambda: waits_in(process.pid, "pipe_write") or process.poll() is not None, "it says it"
    )
    assert process.poll() is None  # it waits for its reader
    process.terminate()
    ended = place.finish(process)
    os.close(reading)
    assert ended.returncode in (0, 3, 130)
    place.check_output("full pipe", leftovers=False, done=None)


def test_signal_in_front_of_a_full_pipe(place: Place) -> None:
    """The message of the signal must not wait for its reader: no second signal will come."""
    whole = place.steps(place.ingester())
    reading, writing = os.pipe()
    _fill(writing)
    for step in range(10):
        process = place.start(place.ingester(), stderr=writing)
        # On a slow machine it tells how far it is, and waits for its reader before that step.
        Steps(process).reach(step * whole // 10, stands_in="pipe_write")
        process.terminate()
        ended = place.finish(process)
        assert ended.returncode in (0, 130, -signal.SIGTERM)  # the last: it had hardly begun
    os.close(writing)
    os.close(reading)
    place.check_output("full pipe", leftovers=True, done=None)


# A conversion that is killed, stopped or without room: the earlier result, or a whole new one.

_CONVERT_SEED = 43
_CONVERT_KILLS = 12


def _convert_command(which: str, output: Path) -> list[str | Path]:
    program = ingester_path() if which == "ingester" else wbscope_path()
    return [program, "convert", example("deep").trace, "-o", output, "--force"]


def _run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=GUARD_SECONDS
    )


def _start(command: list[str | Path]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)


@pytest.mark.parametrize("which", ["ingester", "wbscope"])
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_signals_at_random_moments(tmp_path: Path, which: str, sent: signal.Signals) -> None:
    """One that comes too late changes nothing: there is another one."""
    chance = random.Random(_CONVERT_SEED)
    output = tmp_path / "x.pftrace"
    first = _start(_convert_command(which, output))
    every = Steps(first).whole()
    assert first.wait() == 0
    whole = output.stat().st_size
    codes = []
    wanted = _CONVERT_KILLS if which == "ingester" else _CONVERT_KILLS // 4
    for _ in range(wanted * _TRIES_FOR_A_KILL):
        if len(codes) == wanted:
            break
        output.write_bytes(EARLIER)
        process = _start(_convert_command(which, output))
        steps = Steps(process)
        if which == "wbscope":  # Python's own start ends as Python does
            while len(os.listdir(tmp_path)) == 1 and steps.reach(steps.count() + 1):
                pass
        if not steps.reach(chance.randint(min(steps.count(), every), every)):
            process.wait()
            continue
        os.killpg(process.pid, sent)
        code = process.wait(GUARD_SECONDS)
        codes.append(code)
        if code == 130:  # of this round: one that the signal itself ended leaves its part
            assert os.listdir(tmp_path) == [output.name]
        elif sent != signal.SIGKILL:
            wait_for_group(process.pid)  # a child may be dying still
        assert output.read_bytes() == EARLIER or output.stat().st_size == whole
    assert {*codes} & {-signal.SIGKILL, 130}
    assert {*codes} <= {0, 130, -sent}  # a signal before there is a handler
    wait_for_group(process.pid)
    assert _run(_convert_command(which, output)).returncode == 0
    assert os.listdir(tmp_path) == [output.name]


@pytest.mark.parametrize("kibibytes", [8, 512, 3072])
def test_full_disk(kibibytes: int) -> None:
    with memory_disk(f"size={kibibytes}k,mode=0777") as disk:
        output = disk / "x.pftrace"
        output.write_bytes(EARLIER)
        for which in ("ingester", "wbscope"):
            ended = _run(_convert_command(which, output))
            assert ended.returncode == 5, ended.stderr
            assert ended.stderr.startswith("error[cannot-write]: "), ended.stderr
            assert (os.listdir(disk), output.read_bytes()) == ([output.name], EARLIER)


# SQLite's temporary files lie in a folder of their own: an error names the one that is full.

_SOURCE = "reclaim-writes"
# An index as large as one of a long trace: SQLite sorts its 188,809 rows of 180 bytes in files.
_WIDE_INDEX = {"vmscan:mm_vmscan_write_folio": {"indexes": [{"columns": ["ts"] * 20}]}}
_FIX = "export SQLITE_TMPDIR="


def _ingester(output: Path, temp: Path, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = [example(_SOURCE).trace, "-o", output, "--all", "--force", *options]
    return run(
        [ingester_path(), "sqlite", *arguments, *plan_option(output, _WIDE_INDEX)],
        env={**os.environ, "SQLITE_TMPDIR": str(temp)},
    )


def _wbscope(output: Path, temp: Path) -> subprocess.CompletedProcess[str]:
    return run(
        [wbscope_path(), "ingest", example(_SOURCE).trace, "-o", output, "--all", "--force"],
        env={**os.environ, "SQLITE_TMPDIR": str(temp)},
    )


def _check_earlier(output: Path) -> None:
    assert os.listdir(output.parent) == [output.name]
    assert output.read_bytes() == EARLIER


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """An earlier result."""
    path = tmp_path / "x.db"
    path.write_bytes(EARLIER)
    return path


@pytest.mark.parametrize("writer", ["pages", "sqlite"])
@pytest.mark.parametrize(
    ("options", "have"),
    [
        ("size=64k", "65536 bytes"),
        ("size=8m", "8388608 bytes"),
        ("nr_inodes=1", "one more file"),
    ],
)
def test_of_the_ingester(output: Path, options: str, have: str, writer: str) -> None:
    with memory_disk(f"{options},mode=0777") as disk:
        ended = _ingester(output, disk, "--writer", writer)
        assert os.listdir(disk) == []
        _check_earlier(output)
        assert ended.returncode == 5, ended.stderr
        named = (disk, os.strerror(errno.ENOSPC), output, have)
        check_error(ended.stderr, "no-room", *named, fix=_FIX)


def test_the_remedy_helps(output: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    ended = _ingester(output, tmp_path_factory.mktemp("temp"))
    assert ended.returncode == 0, ended.stderr


def test_of_the_whole_command(output: Path) -> None:
    """Here it is Python's SQLite, which makes tables of the library's views."""
    with memory_disk("size=64k,mode=0777") as disk:
        ended = _wbscope(output, disk)
        assert os.listdir(disk) == []
        _check_earlier(output)
        assert ended.returncode == 5, ended.stderr
        check_error(ended.stderr, "no-room", disk, output, fix=_FIX)


def test_a_full_disk_is_not_taken_for_the_other(tmp_path: Path) -> None:
    """Room for what the ingester writes, and little more for the views."""
    done = _wbscope(tmp_path / "alone.db", tmp_path)
    assert done.returncode == 0, done.stderr
    whole = (tmp_path / "alone.db").stat().st_size
    with memory_disk(f"size={whole - (1 << 19)},mode=0777") as disk:
        ended = _wbscope(disk / "x.db", tmp_path)
        assert os.listdir(disk) == []
        assert ended.returncode == 5, ended.stderr
        check_error(ended.stderr, "cannot-write-database", disk / "x.db")
        assert "SQLITE_TMPDIR" not in ended.stderr
