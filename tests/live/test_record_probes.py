# SPDX-License-Identifier: Apache-2.0
"""Probes of a recording come and go; those of others, on the same machine, stay.

Where a kernel has no kprobes, uprobes stand in for what was left and for what is of others: the
kernel keeps them in the same list.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.live import Recorder, problems
from wbscope.compare.sameness import ABSENT_EVENTS, fingerprint_of
from wbscope.run.run import open_run

_TRACEFS = Path("/sys/kernel/tracing")
_LIST = _TRACEFS / "dynamic_events"
_DEAD = "wbscope_999999999_0123abcd"
_FOREIGN = ("mine", "wbscope_mine", "wbscope_1_0123abcd")  # process 1 lives
_ENTRY, _RETURN = "balance_dirty_pages_entry", "balance_dirty_pages_return"


def _append(line: str) -> None:
    number = os.open(_LIST, os.O_WRONLY | os.O_APPEND)  # open() would seek, which it refuses
    try:
        os.write(number, f"{line}\n".encode())
    finally:
        os.close(number)


def _of_others() -> list[str]:
    """Recordings that are none of ours have probes that come and go."""
    lines = _LIST.read_text().splitlines()
    return [line for line in lines if any(f":{group}/" in line for group in _FOREIGN)]


@pytest.fixture
def place(recorder: Recorder) -> str:
    """In a program that nobody runs: an enabled probe is a breakpoint, also in what is no code."""
    return f"{shutil.copy('/bin/true', recorder.folder / 'probed')}:0x1000"


@pytest.fixture
def foreign(recorder: Recorder, place: str) -> Iterator[list[str]]:
    """Probes of others, which look like ours as far as they can; and their own instance.

    Made after the recorder has looked at the machine, and gone before it looks again.
    """
    assert recorder.folder.exists()
    instance = _TRACEFS / "instances" / "test-of-others"
    try:
        for group in _FOREIGN:
            _append(f"p:{group}/{_ENTRY} {place}")
    except OSError as error:
        pytest.skip(f"no uprobes: {error.strerror}")
    instance.mkdir()
    (instance / "events/mine" / _ENTRY / "enable").write_text("1")
    before = _of_others()
    yield before
    after = _of_others()
    was_on = (instance / "events/mine" / _ENTRY / "enable").read_text().strip()
    instance.rmdir()
    for group in _FOREIGN:
        _append(f"-:{group}/{_ENTRY}")
    assert (after, was_on) == (before, "1")


@pytest.fixture
def left(foreign: list[str], place: str) -> Iterator[None]:
    """Of a recorder that was killed, and whose instance is gone."""
    for name in (_ENTRY, _RETURN):
        _append(f"p:{_DEAD}/{name} {place}")
    yield
    for name in (_ENTRY, _RETURN):
        if f":{_DEAD}/{name} " in _LIST.read_text():
            _append(f"-:{_DEAD}/{name}")


def _has_left() -> bool:
    return _DEAD in _LIST.read_text()


def _run(recorder: Recorder, *options: str) -> None:
    done = recorder.record(
        "--backend", "tracefs", "--no-report", *options, "-o", "run", "--", "true"
    )
    assert done.returncode == 0, done.stderr


def _is_absent(recorder: Recorder) -> bool:
    """For compare: a kernel that has no probes is no other way of recording."""
    with open_run(str(recorder.folder / "run")) as run:
        return f"wbscope:{_ENTRY}" in str(fingerprint_of(run)[ABSENT_EVENTS])


@pytest.mark.usefixtures("foreign")
def test_the_run_says_by_what_it_tells(recorder: Recorder) -> None:
    _run(recorder)
    meta = recorder.meta("run")
    probe = meta["probe"]
    assert problems(meta) == []
    checks = json.loads(recorder.wbscope("doctor", "--json").stdout)["rows"]
    (told,) = (row for row in checks if row["name"] == "bytes and waits")
    assert _is_absent(recorder) == (probe["kind"] is None)
    if probe["kind"] is None:
        assert told["status"] == "missing"
        assert probe["why"] in told["found"]
        return
    assert told["found"].startswith(f"exact, by {probe['kind']}")
    assert probe["events"] == [f"wbscope:{_ENTRY}", f"wbscope:{_RETURN}"]
    assert set(probe["events"]) <= set(meta["events"])
    assert probe["missed"] in (0, None)


def test_none_are_made_where_none_are_wanted(recorder: Recorder) -> None:
    _run(recorder, "--probe", "off")
    assert recorder.meta("run")["probe"] == {"kind": None, "why": "not asked for"}
    assert not _is_absent(recorder)
    done = recorder.record("--probe", "on", "-o", "run-2", "--", "true")
    assert (done.returncode, "--probe on" in done.stderr) == (2, True)


@pytest.mark.usefixtures("left")
def test_the_next_recording_removes_what_was_left(recorder: Recorder) -> None:
    done = recorder.record("--backend", "tracefs", "--no-report", "-o", "run", "--", "true")
    assert done.returncode == 0, done.stderr
    assert f"{_DEAD.replace('_', '-')}: probes removed" in done.stderr
    assert not _has_left()


@pytest.mark.usefixtures("left")
def test_doctor_tells_and_recover_removes(recorder: Recorder) -> None:
    checks = json.loads(recorder.wbscope("doctor", "--json").stdout)["rows"]
    (told,) = (row for row in checks if row["name"] == "left behind")
    assert told["fix"] == "wbscope record --recover"
    assert _has_left()
    assert recorder.record("--recover").returncode == 0
    assert not _has_left()


@pytest.mark.usefixtures("left")
def test_one_that_somebody_else_has_enabled_stays_until_they_let_go(recorder: Recorder) -> None:
    enable = _TRACEFS / "instances/test-of-others/events" / _DEAD / _ENTRY / "enable"
    enable.write_text("1")
    done = recorder.record("--recover")
    assert f"probe {_DEAD}:{_ENTRY} in use, not removed" in done.stderr
    assert f":{_DEAD}/{_ENTRY} " in _LIST.read_text()
    enable.write_text("0")
    assert recorder.record("--recover").returncode == 0
    assert not _has_left()
