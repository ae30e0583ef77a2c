# SPDX-License-Identifier: Apache-2.0
"""What threads dirtied, by the kernel's count, against the sizes of files that are known."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from support.live import Recorder, program_of_ours, sysctls_of_machine

_PAGE = 4096
_COUNTS = (37, 101)
_BLOCK = 64 << 10
# The kernel tells of every thread of the machine, and dd and sleep run elsewhere, too.
_DD = f"dd-{os.getpid()}"
_SLEEP = f"sleep-{os.getpid()}"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, disk: Path) -> Recorder:
    """Two dd that end, and one child that the recording outlives."""
    if not Path("/proc/self/io").exists():
        pytest.skip("this kernel counts no I/O of tasks")
    recorder = Recorder(tmp_path_factory.mktemp("task-io"))
    dd, sleep = (program_of_ours(recorder.folder, name) for name in ("dd", "sleep"))
    assert (dd.name, sleep.name) == (_DD, _SLEEP)
    script = recorder.folder / "workload"
    script.write_text(
        "".join(
            f"{dd} if=/dev/zero of=$1/copy-{count} bs={_BLOCK} count={count} 2>/dev/null\n"
            for count in _COUNTS
        )
        + "(i=0; while [ $i -lt 19 ]; do printf %4096s; i=$((i + 1)); done > $1/left;"
        + f" exec {sleep} 3600)"
        + " >/dev/null 2>&1 &\n"
        + "echo $! > left\n"
        + 'until [ "$(stat -c %s $1/left)" = 77824 ]; do sleep 0.1; done\n'
    )
    before = sysctls_of_machine()
    try:
        done = recorder.record("--no-report", "-o", "run", "--", "sh", script, disk)
    finally:
        if (pid := recorder.folder / "left").exists():
            os.kill(int(pid.read_text()), signal.SIGKILL)
    assert done.returncode == 0, done.stderr
    assert (recorder.left(), sysctls_of_machine()) == ([], before)
    return recorder


def _lines(recorder: Recorder) -> list[dict[str, str]]:
    text = (recorder.folder / "run/task_io").read_text(errors="replace")
    found = re.findall(r"^(start|exit|end) (.*) comm=(.*)$", text, re.MULTILINE)
    assert len(found) == len(text.splitlines())
    return [
        {"when": when, "comm": comm, **dict(pair.split("=") for pair in pairs.split())}
        for when, pairs, comm in found
    ]


def test_exits_tell_the_size_of_the_file(recorded: Recorder) -> None:
    facts = recorded.meta("run")["task_io"]
    if facts["exits"] is None:
        pytest.skip(facts["why_not"])
    written = sorted(
        int(line["write_bytes"])
        for line in _lines(recorded)
        if line["when"] == "exit" and line["comm"] == _DD
    )
    assert len(written) == len(_COUNTS)
    for bytes_, count in zip(written, _COUNTS, strict=True):
        assert 0 <= bytes_ - count * _BLOCK <= _PAGE  # the page of the folder
    assert (facts["exits_lost"], facts["left_out_count"]) == (False, 0)
    assert recorded.meta("run")["problems"] == []


def test_every_line_is_a_row(recorded: Recorder) -> None:
    keys = ("tid", "tgid", "write_bytes", "cancelled_write_bytes", "write_char_bytes")
    names = ", ".join(("sample", "comm", *keys))
    rows = recorded.sql("run", f"SELECT {names} FROM sidecar_task_io")
    told = [
        (line["when"], line["comm"], *(int(line[key]) for key in keys)) for line in _lines(recorded)
    ]
    assert sorted(tuple(row.values()) for row in rows) == sorted(told)


def test_those_that_live_are_told_of_once(recorded: Recorder) -> None:
    lines = _lines(recorded)
    for when in ("start", "end"):
        tids = [line["tid"] for line in lines if line["when"] == when]
        assert len(tids) == len(set(tids)) == recorded.meta("run")["task_io"][f"{when}_count"]
    ended = {line["tid"] for line in lines if line["when"] == "exit"}
    assert not ended & {line["tid"] for line in lines if line["when"] == "end"}
    began = {line["tid"] for line in lines if line["when"] == "start"}
    (left,) = (
        int(line["write_bytes"])
        for line in lines
        if (line["when"], line["comm"]) == ("end", _SLEEP) and line["tid"] not in began
    )
    assert 0 <= left - 19 * _PAGE <= _PAGE
