# SPDX-License-Identifier: Apache-2.0
"""Outputs with no room or no permission, and sources that change or cannot be read."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cli import check_error
from support.faults import EARLIER, Place, memory_disk
from support.progress import Steps, catches, waits_in
from support.tools import ingester_path, require_program, wbscope_path
from support.waits import wait_until

_SEED = 43
_CHANGES = 12
# Where the kernel has a program that opens a FIFO without a writer.
_WAITING = ("wait_for_partner", "fifo_open")


def _commands(place: Place) -> list[list[str]]:
    return [place.ingester(), place.wbscope()]


@pytest.mark.parametrize("kibibytes", [64, 256, 512, 16384])
def test_full_disk(place: Place, kibibytes: int) -> None:
    with memory_disk(f"size={kibibytes}k,mode=0777") as disk:
        small = Place(disk, place.source)
        small.reset()
        for command in _commands(small):
            small.check(small.run(command), [0] if kibibytes == 16384 else [5])
            small.reset()


def test_full_disk_for_what_is_made_of_a_database(place: Place) -> None:
    place.check(place.run(place.wbscope()), [0])
    for verb, output in (("timeline", "x.pftrace"), ("report", "x.txt")):
        # A page for the earlier result, and none for what follows.
        with memory_disk("size=4k,mode=0777") as disk:
            path = disk / output
            path.write_bytes(EARLIER)
            command = [wbscope_path(), verb, place.output, "-o", path, "--force"]
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            assert ended.returncode == 5, ended.stderr
            assert ended.stderr.startswith("error[cannot-write]: "), ended.stderr
            assert (os.listdir(disk), path.read_bytes()) == ([output], EARLIER)


def test_disk_without_room_for_one_more_file(place: Place) -> None:
    with memory_disk("nr_inodes=2,mode=0777") as disk:
        full = Place(disk, place.source)
        full.reset()
        for command in _commands(full):
            ended = full.run(command)
            full.check(ended, [5])
            assert "No space left" in ended.stderr


def test_read_only_disk(place: Place) -> None:
    with memory_disk("size=1m,mode=0777") as disk:
        fixed = Place(disk, place.source)
        fixed.reset()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for command in _commands(fixed):
            ended = fixed.run(command)
            fixed.check(ended, [5])
            assert "Read-only file system" in ended.stderr


def _as_nobody(command: list[str], *writable: Path) -> subprocess.CompletedProcess[str]:
    """Run the ingester without root's powers; a copy of it, where nobody can reach it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        program = folder / "wbscope-ingest"
        shutil.copy(ingester_path(), program)
        program.chmod(0o755)
        return subprocess.run(
            [str(program), *command[1:]], user=65534, capture_output=True, text=True, check=False
        )


@pytest.fixture
def open_place(recorded_bytes: bytes) -> Place:
    """A place that other users can reach; pytest's own folders are private."""
    if os.geteuid() != 0:
        pytest.skip("not root, so cannot become nobody")
    top = Path(tempfile.mkdtemp(prefix="wbscope-faults-"))
    top.chmod(0o755)
    folder = top / "results"
    folder.mkdir()
    (top / "trace.dat").write_bytes(recorded_bytes)
    made = Place(folder, top / "trace.dat")
    made.reset()
    yield made
    shutil.rmtree(top)


def test_folder_of_somebody_else(open_place: Place) -> None:
    ended = _as_nobody(open_place.ingester())
    open_place.check(ended, [5])
    assert "Permission denied" in ended.stderr


def test_source_of_somebody_else(open_place: Place) -> None:
    open_place.source.chmod(0)
    open_place.folder.chmod(0o777)
    ended = _as_nobody(open_place.ingester())
    open_place.check(ended, [3])
    assert "Permission denied" in ended.stderr


def test_leftovers_of_somebody_else_are_no_error(open_place: Place) -> None:
    open_place.folder.chmod(0o1777)
    left = open_place.folder / ".new.db.1.part"
    left.write_bytes(b"half")
    command = open_place.ingester()
    command[command.index("-o") + 1] = str(open_place.folder / "new.db")
    ended = _as_nobody(command)
    assert ended.returncode == 0, ended.stderr
    assert sorted(os.listdir(open_place.folder)) == [".new.db.1.part", "new.db", "run.db"]


def test_target_exists(place: Place) -> None:
    for command in _commands(place):
        command.remove("--force")
        ended = place.run(command)
        place.check(ended, [2])
        assert ended.stderr.startswith("error[output-exists]: "), ended.stderr


def test_source_that_is_not_there(place: Place) -> None:
    place.source.unlink()
    for command in _commands(place):
        place.check(place.run(command), [3])


@pytest.mark.parametrize("what", ["folder", "FIFO", "socket", "device"])
def test_source_that_is_no_file(place: Place, what: str) -> None:
    place.source.unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        if what == "folder":
            place.source.mkdir()
        elif what == "FIFO":
            os.mkfifo(place.source)
        elif what == "socket":
            listening.bind(str(place.source))
        else:
            place.source = Path("/dev/null")
        for command in _commands(place):
            ended = place.run(command)
            place.check(ended, [3])
            assert str(place.source) in ended.stderr


def test_source_without_permission(place: Place) -> None:
    """The same error from both programs. Root, too, has to ask without these capabilities."""
    place.source.chmod(0)
    drop = []
    if os.geteuid() == 0:
        drop = [require_program("setpriv"), "--bounding-set=-dac_override,-dac_read_search"]
    for command in _commands(place):
        ended = place.run([*drop, *command])
        place.check(ended, [3])
        named = (place.source, os.strerror(errno.EACCES), "fix: ")
        check_error(ended.stderr, "cannot-read", *named)


def test_stream_without_a_writer_can_be_stopped(place: Place, tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    os.mkfifo(stream)
    command = [str(ingester_path()), "records", str(stream), "--trace", str(place.source)]
    process = place.start([*command, "-o", str(place.output), "--force"])
    wait_until(
        lambda: catches(process.pid, signal.SIGTERM) or process.poll() is not None, "it begins"
    )
    wait_until(lambda: waits_in(process.pid, *_WAITING) or process.poll() is not None, "it waits")
    assert process.poll() is None
    process.terminate()
    place.check(place.finish(process), [130])


def test_cache_without_permission(place: Place) -> None:
    with memory_disk("size=1m,mode=0777") as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        command = [str(wbscope_path()), "query", "event_counts", str(place.source)]
        ended = place.run(command, env={**os.environ, "WBSCOPE_CACHE_DIR": str(disk)})
    assert ended.returncode == 5, ended.stderr
    assert ended.stderr.startswith("error[no-cache]: "), ended.stderr
    assert "export WBSCOPE_CACHE_DIR=" in ended.stderr


def test_cache_without_room(place: Place) -> None:
    with memory_disk("size=64k,mode=0777,nr_inodes=1") as disk:
        command = [str(wbscope_path()), "query", "event_counts", str(place.source)]
        ended = place.run(command, env={**os.environ, "WBSCOPE_CACHE_DIR": str(disk)})
    assert ended.returncode == 5, ended.stderr
    assert "export WBSCOPE_CACHE_DIR=" in ended.stderr


def _truncate(path: Path, size: int, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(size))


def _unlink(path: Path, _size: int, _chance: random.Random) -> None:
    path.unlink()


def _grow(path: Path, _size: int, _chance: random.Random) -> None:
    with path.open("ab") as file:
        file.write(bytes(100_000))


def _replace(path: Path, size: int, _chance: random.Random) -> None:
    other = path.with_name("other")
    other.write_bytes(bytes(size))
    other.rename(path)


def _overwrite(path: Path, size: int, chance: random.Random) -> None:
    with path.open("r+b") as file:
        file.seek(chance.randrange(size))
        file.write(chance.randbytes(4096))


@pytest.mark.parametrize("change", [_truncate, _unlink, _grow, _replace, _overwrite])
def test_source_changes_while_it_is_read(
    place: Place, recorded_bytes: bytes, change: Callable[[Path, int, random.Random], None]
) -> None:
    chance = random.Random(_SEED)
    steps = place.steps(place.ingester("--json-lines"))
    first = place.run(place.ingester("--json-lines"))
    place.check(first, [0])
    whole = json.loads(first.stderr.splitlines()[-1])["events_count"]
    place.reset()
    for number in range(_CHANGES):
        place.source.write_bytes(recorded_bytes)
        process = place.start(place.ingester("--json-lines"), stdin=subprocess.DEVNULL)
        Steps(process).reach(chance.randint(0, steps))
        change(place.source, len(recorded_bytes), chance)
        ended = place.finish(process)
        said = [json.loads(line) for line in ended.stderr.splitlines()]
        assert ended.returncode in (0, 3), ended.stderr
        place.check_output(f"change {number}", leftovers=False, done=ended.returncode == 0)
        if ended.returncode == 3:
            assert said[-1]["type"] == "error", said
        else:
            warned = any(line["type"] == "warning" for line in said)
            assert warned or said[-1]["events_count"] == whole, said
        place.reset()


def test_source_that_grows_is_told(place: Place) -> None:
    """A recorder that still writes: the answer is that of the part read, and says so."""
    size = place.source.stat().st_size
    writing = 'while :; do printf x; done >> "$0"'
    recorder = subprocess.Popen(["sh", "-c", writing, place.source])
    try:
        wait_until(lambda: place.source.stat().st_size > size, "the recorder writes")
        ended = place.finish(place.start(place.ingester()))
    finally:
        recorder.kill()
        recorder.wait()
    assert ended.returncode == 0, ended.stderr
    assert "changed while it was read" in ended.stderr


@pytest.mark.parametrize(
    "words",
    ["record --duration 1s", "record --recover", "doctor", "ingest {run} -o y",
     "timeline {run} -o x", "open {run} --no-browser --wait 1ms"],
)  # fmt: skip
def test_without_proc(tmp_path: Path, place: Place, words: str) -> None:
    """As in a bare chroot: no bug, and not the trace's fault."""
    command = [wbscope_path(), *words.format(run=place.source).split()]
    script = 'mount -t tmpfs none /proc || exit 99; exec "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *command],
        cwd=tmp_path, env=dict(os.environ, WBSCOPE_CACHE_DIR=str(tmp_path / "cache")),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode in (1, 99):
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    assert done.returncode == 5, done.stderr
    told = "error[no-proc]: /proc: is not mounted\n  fix: sudo mount -t proc proc /proc\n"
    assert done.stderr == told
