# SPDX-License-Identifier: Apache-2.0
"""Killed at any moment: tracing is off, everything as it was, what was recorded is readable."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.live import (
    Recorder,
    lives,
    program_of_ours,
    report_counts,
    wait_while_it_runs,
)
from support.tools import wbscope_path
from support.waits import GUARD_SECONDS, wait_until
from wbscope.record.settings import restore, saved_values
from wbscope.record.tasks import read_names

# For a longer campaign: WBSCOPE_KILLS=100.
_KILLS = int(os.environ.get("WBSCOPE_KILLS", "4"))
_LATEST_SECONDS = 1.6
_LENGTH_SECONDS = 0.7
_COMMAND = "dd if=/dev/zero of=$0/k bs=1M count=13 2>/dev/null; sleep 0.4"
_OPTIONS = ("--backend", "tracefs", "--no-report", "--sysctl", "vm.dirty_bytes=32M", "-o", "run")
_PLAIN = ("--backend", "tracefs", "--no-report", "-o", "run")


def _kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _check_run(recorder: Recorder, has_begun: bool) -> None:
    """There is a whole run, or none if it had not begun; and nothing else that holds events."""
    run = recorder.folder / "run"
    assert not list(recorder.folder.glob(".run.*/.head"))
    assert not list(run.glob(".*"))
    assert run.exists() or not has_begun
    if run.exists():
        assert recorder.meta("run")["ended"]
        recorder.counts("run")
        report_counts(run / "trace.dat")


def _wait_for_start(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("recording"):
            return


@pytest.mark.parametrize("number", range(_KILLS))
@pytest.mark.parametrize("which", ["front", "recorder", "both"])
def test_kill(recorder: Recorder, disk: Path, which: str, number: int) -> None:
    chance = random.Random(f"{which}{number}")
    process = recorder.start(*_OPTIONS, "--", "sh", "-c", _COMMAND, disk)
    has_begun = number % 2 == 1
    if has_begun:  # while it records, however long it takes to start
        _wait_for_start(process)
        time.sleep(chance.uniform(0, _LENGTH_SECONDS))
    else:
        time.sleep(chance.uniform(0, _LATEST_SECONDS))
    supervisors = recorder.supervisors(process.pid)
    if which != "front":
        _kill(supervisors)
    if which != "recorder":
        _kill([process.pid])
    process.wait(GUARD_SECONDS)
    if which == "both":
        # Nobody is left, so the kernel stops tracing; the next command does the rest.
        wait_until(recorder.tracing_has_stopped, "the kernel stops tracing")
        done = recorder.record("--recover")
        assert done.returncode == 0, done.stderr
    # A recorder that has just started finds that it is alone.
    wait_until(lambda: not any(map(lives, supervisors)), "the recorder ends")
    wait_until(recorder.nothing_is_left, "all is put back")
    _check_run(recorder, has_begun)


def test_ctrl_c_ends_the_command_and_writes_the_run(recorder: Recorder) -> None:
    begun = recorder.folder / "begun"
    process = recorder.start(*_PLAIN, "--", "sh", "-c", ": > $0; exec sleep 3600", begun)
    wait_while_it_runs(process, begun.exists, "the command begins")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(GUARD_SECONDS) == 130
    meta = recorder.meta("run")
    assert meta["ended"] == "interrupted"
    assert meta["command_signal"] == signal.SIGINT
    recorder.counts("run")


def test_ctrl_c_while_it_starts(recorder: Recorder) -> None:
    process = recorder.start("--backend", "tracefs", "-o", "run", "--", "sleep", "3600")
    wait_while_it_runs(process, lambda: recorder.supervisors(process.pid), "a recorder is started")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(GUARD_SECONDS) == 130
    wait_until(recorder.nothing_is_left, "all is put back")
    assert not list(recorder.folder.glob(".run.*"))


def test_plain_kill_ends_the_command_too(recorder: Recorder) -> None:
    process = recorder.start(
        *("--backend", "tracefs", "--no-report", "-o", "run", "--", "sleep", "3600")
    )
    _wait_for_start(process)
    process.terminate()
    assert process.wait(GUARD_SECONDS) == 130
    assert recorder.meta("run")["ended"] == "interrupted"


def test_ctrl_c_is_the_end_without_a_command(recorder: Recorder) -> None:
    process = recorder.start(*_PLAIN)
    _wait_for_start(process)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(GUARD_SECONDS) == 0
    assert recorder.meta("run")["ended"] == "complete"


def test_ctrl_c_before_the_time_is_over(recorder: Recorder) -> None:
    process = recorder.start(
        *("--backend", "tracefs", "--no-report", "--duration", "3600s", "-o", "run")
    )
    _wait_for_start(process)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(GUARD_SECONDS) == 130
    assert recorder.meta("run")["ended"] == "interrupted"


# It says that it has begun, and hears nothing but SIGKILL.
_DEAF = (
    "import os, pathlib, signal, sys, time\n"
    "for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)\n"
    "pathlib.Path(sys.argv[1]).write_text(f'{sys.argv[2]} {os.getpid()}')\n"
    "time.sleep(3600)"
)


def test_ctrl_c_again_while_it_ends_what_was_started(recorder: Recorder) -> None:
    """A job that hears nothing is killed; the run says how the command ended."""
    begun = recorder.folder / "begun"
    job = '"$0" -c "$1" "$2" $$ & wait'
    process = recorder.start(
        *("--backend", "tracefs", "--no-report", "-o", "run", "--"),
        *("sh", "-c", f"trap 'exit 7' INT; {job}", sys.executable, _DEAF, begun),
    )
    wait_while_it_runs(process, lambda: begun.exists() and begun.read_text(), "the job begins")
    shell, deaf = map(int, begun.read_text().split())
    try:
        os.killpg(process.pid, signal.SIGINT)
        wait_until(lambda: not lives(shell), "the shell ends")
        time.sleep(0.5)  # or it would be the same Ctrl-C
        process.send_signal(signal.SIGINT)
        assert process.wait(GUARD_SECONDS) == 130
        assert not lives(deaf)
    finally:
        _kill([deaf])
    meta = recorder.meta("run")
    assert (meta["ended"], meta["command_exit_code"]) == ("interrupted", 7)
    assert meta["command_pid"] == shell
    assert meta["command_duration_ns"] > 0


def test_sigchld_that_was_ignored(recorder: Recorder) -> None:
    """As some service managers and test harnesses leave it."""
    done = recorder.run(
        *(wbscope_path(), "record", *_PLAIN, "--", "sh", "-c", "exit 3"),
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )
    assert done.returncode == 0, done.stderr
    assert recorder.meta("run")["command_exit_code"] == 3


def test_instances_of_others_are_left_alone(recorder: Recorder) -> None:
    """That their names begin with ours does not make them ours."""
    made = [
        Path("/sys/kernel/tracing/instances") / f"wbscope-{name}" for name in ("mine", "bench-1")
    ]
    for instance in made:
        instance.mkdir()
    try:
        done = recorder.record("--backend", "tracefs", "--no-report", "-o", "run", "--", "true")
        assert done.returncode == 0, done.stderr
        done = recorder.record("--recover")
        assert not [path.name for path in made if path.name in done.stderr]
        assert all(instance.exists() for instance in made)
    finally:
        for instance in made:
            if instance.exists():
                instance.rmdir()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_what_the_command_started_ends_too(recorder: Recorder, number: signal.Signals) -> None:
    """Background jobs of a shell do not hear Ctrl-C; a closed terminal is like Ctrl-C."""
    pids = recorder.folder / "pids"
    jobs = "sleep 3601 & echo $! >> $0; (sleep 3602 & echo $! >> $0); wait"
    process = recorder.start(
        *("--backend", "tracefs", "--no-report", "-o", "run", "--", "sh", "-c", jobs, pids)
    )
    _wait_for_start(process)
    both = lambda: pids.exists() and len(pids.read_text().split()) == 2  # noqa: E731
    wait_while_it_runs(process, both, "both jobs run")
    started = [int(pid) for pid in pids.read_text().split()]
    assert all(map(lives, started))
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    assert process.wait(GUARD_SECONDS) == 130
    assert not any(map(lives, started))
    assert recorder.meta("run")["ended"] == "interrupted"


def test_what_was_there_before_goes_on(recorder: Recorder) -> None:
    """A shell that becomes wbscope leaves it its children, which are not the command's."""
    pids, begun = recorder.folder / "pids", recorder.folder / "begun"
    script = (
        'sh -c "sleep 3603 & echo \\$\\$ \\$! > $0; wait" &'
        ' until [ -s $0 ]; do sleep 0.05; done; exec "$@"'
    )
    record = [wbscope_path(), "record", *_PLAIN, "--", "sh", "-c", ": > $0; exec sleep 3604", begun]
    process = recorder.start_command("sh", "-c", script, pids, *record, stderr=subprocess.DEVNULL)
    started = []
    try:
        wait_while_it_runs(process, begun.exists, "the command begins")
        started = [int(pid) for pid in pids.read_text().split()]
        process.terminate()
        assert process.wait(GUARD_SECONDS) == 130
        assert recorder.meta("run")["ended"] == "interrupted"
        assert len(started) == 2
        assert all(map(lives, started))
    finally:
        _kill([*started, process.pid])


@pytest.fixture
def before() -> dict[str, str]:
    """What of vm.dirty_ratio and vm.dirty_bytes is in force."""
    return saved_values(["vm.dirty_bytes"])


@pytest.fixture
def killed(
    recorder: Recorder, before: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A recording whose recorder is killed after dd has written; the command waits for a file.

    Whatever a test sets, vm.dirty_* are afterwards as they were.
    dd lives until its name is saved: the kernel's own list now and then lacks a task that ran for
    ms. It is gone, and what it wrote is on the disk, when the recorder is killed.
    """
    go, named, dd = (*(recorder.folder / name for name in ("go", "named")), _dd(recorder))
    command = (
        "{ head -c 28007 /dev/zero; until [ -e $1 ]; do sleep 0.05; done; }"
        " | $2 of=/dev/null bs=7 iflag=fullblock status=none;"
        " : > $1.over; until [ -e $0 ]; do sleep 0.05; done; exit 3"
    )
    process = recorder.start(
        *("--backend", "tracefs", "--profile", "custom", "-e", "syscalls:sys_exit_write"),
        *("--sample", "100ms", "--sysctl", "vm.dirty_bytes=32M", "--no-report", "-o", "run"),
        *("--", "sh", "-c", command, go, named, dd),
    )
    wait_while_it_runs(process, lambda: _saved_name(recorder, dd.name), "the name of dd is saved")
    named.touch()
    wait_while_it_runs(process, named.with_suffix(".over").exists, "dd ends")
    yield process, go
    go.touch()
    assert restore(before) == []


def _dd(recorder: Recorder) -> Path:
    return program_of_ours(recorder.folder, "dd")


def _saved_name(recorder: Recorder, name: str) -> bool:
    return any(name in read_names(folder).values() for folder in recorder.folder.glob(".run.*"))


def _writes_of_dd(recorder: Recorder) -> int:
    """By the name that it has in the run."""
    (row,) = recorder.sql(
        "run",
        "SELECT COUNT(*) AS n FROM ev_sys_exit_write AS w JOIN task AS t USING (tid)"
        f" WHERE w.ret = 7 AND t.comm = 'dd-{os.getpid()}'",
    )
    return int(row["n"])


@pytest.mark.usefixtures("cgroups")
def test_run_of_a_killed_recorder_has_names_and_facts(
    recorder: Recorder, killed: tuple[subprocess.Popen[str], Path]
) -> None:
    process, go = killed
    _kill(recorder.supervisors(process.pid))
    wait_until((recorder.folder / "run/meta.json").exists, "there is a run")
    go.touch()
    _, said = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 5, said
    assert "warning[recorder-killed]" in said
    assert "error[recording-cut-short]" in said
    meta = recorder.meta("run")
    assert meta["ended"] == "recorder killed"
    assert meta["command_exit_code"] == 3
    assert meta["started_ts_ns"] < meta["command_started_ts_ns"] < meta["ended_ts_ns"]
    assert meta["ended_ts_ns"] < meta["command_ended_ts_ns"]
    assert meta["sampler_tid"] > 0
    assert (recorder.folder / "run/cgroups").stat().st_size > 0
    assert 0 < _writes_of_dd(recorder) <= 4001
    gate = recorder.wbscope("compare", "run", "--against", "run")
    assert (gate.returncode, "error[damaged-run]" in gate.stderr) == (4, True)


def test_recorder_that_is_told_to_end(
    recorder: Recorder, killed: tuple[subprocess.Popen[str], Path]
) -> None:
    """A plain kill of it: a whole run at once, and what the command did is in it later."""
    process, go = killed
    (supervisor,) = recorder.supervisors(process.pid)
    os.kill(supervisor, signal.SIGTERM)
    wait_until((recorder.folder / "run/meta.json").exists, "there is a run")
    assert process.poll() is None
    go.touch()
    _, said = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 5, said
    assert "warning[recorder-ended]: the recorder was told to end" in said
    assert "was killed" not in said
    meta = recorder.meta("run")
    assert (meta["ended"], meta["command_exit_code"]) == ("recorder terminated", 3)
    assert meta["ended_ts_ns"] < meta["command_ended_ts_ns"]
    assert _writes_of_dd(recorder) > 0


def test_recovery_later_leaves_what_was_set_since(
    recorder: Recorder, killed: tuple[subprocess.Popen[str], Path]
) -> None:
    process, go = killed
    bytes_, ratio = Path("/proc/sys/vm/dirty_bytes"), Path("/proc/sys/vm/dirty_ratio")
    assert bytes_.read_text().strip() == str(32 << 20)
    _kill([process.pid, *recorder.supervisors(process.pid)])
    process.wait(GUARD_SECONDS)
    go.touch()
    wait_until(recorder.tracing_has_stopped, "the kernel stops tracing")
    ratio.write_text("23")
    done = recorder.record("--recover")
    assert done.returncode == 0, done.stderr
    assert "vm.dirty_ratio left as it was set since" in done.stderr
    assert ratio.read_text().strip() == "23"
    assert recorder.meta("run")["ended"] == "recorder killed"
    assert _writes_of_dd(recorder) > 0


def test_recovery_later_puts_back_what_is_still_ours(
    recorder: Recorder, before: dict[str, str], killed: tuple[subprocess.Popen[str], Path]
) -> None:
    process, go = killed
    _kill([process.pid, *recorder.supervisors(process.pid)])
    process.wait(GUARD_SECONDS)
    go.touch()
    wait_until(recorder.tracing_has_stopped, "the kernel stops tracing")
    done = recorder.record("--recover")
    for name, value in before.items():
        assert f"{name} = {value} put back" in done.stderr


def test_folder_of_a_front_that_was_killed_early(recorder: Recorder) -> None:
    """Nothing was recorded, and nothing but --recover knows of it."""
    left = recorder.folder / ".run.wbscope-999999999-aaaaaaaa"
    left.mkdir()
    (left / ".plan").touch()
    whole = recorder.folder / ".run.wbscope-999999999-bbbbbbbb"
    whole.mkdir()
    (whole / ".head").touch()
    done = recorder.record("--recover")
    assert f"{left.name}: removed" in done.stderr
    assert not left.exists()
    assert whole.exists()
