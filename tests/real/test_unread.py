# SPDX-License-Identifier: Apache-2.0
"""Records and fields that cannot be read: no all-clear, and no budget that holds.

One run of 50 pauses of 200 ms, 100 ms apart, so 10 s in all; some of its bytes are changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.kernel_events import formats
from support.tracedat import Trace

_EVENT = "balance_dirty_pages"
_PAUSE = {
    **{"bdi": "8:0", "cgroup_ino": 1, "limit": 100_000, "setpoint": 80_000, "dirty": 85_000},
    **{"bdi_setpoint": 40_000, "bdi_dirty": 42_000, "dirty_ratelimit": 4_000},
    **{"task_ratelimit": 4_000, "dirtied": 200, "dirtied_pause": 200, "paused": 0, "pause": 200},
    **{"period": 200, "think": 0},
}
Payload = Callable[[int, bytes], bytes]


def _trace(payload: Payload) -> bytes:
    known = formats(_EVENT)
    trace = Trace(known, cmdlines={11: "dd"}, uname="Linux test 8.0.0 x86_64")
    for number in range(50):
        whole = known[0].encode(_PAUSE, 11, "little")
        trace.raw(0, (10_000 + 100 * number) * 10**6, payload(number, whole))
    return trace.encode()


@dataclass(frozen=True)
class Case:
    """How it is changed, and what is then told."""

    slug: str
    sentence: str
    payload: Payload = lambda _, whole: whole
    replaced: tuple[bytes, bytes] = (b"", b"")

    def write(self, run: Path) -> Path:
        old, new = self.replaced
        run.mkdir()
        content = _trace(self.payload)
        assert len(old) == len(new)
        assert old in content
        (run / "trace.dat").write_bytes(content.replace(old, new) if old else content)
        return run


def _short(number: int, whole: bytes) -> bytes:
    return whole[:60] if number % 2 else whole


def _unknown(number: int, whole: bytes) -> bytes:
    return (9_999).to_bytes(2, "little") + whole[2:] if number % 2 else whole


_LACKS = "No verdict, the trace cannot be read in full: no record has the field"
_CASES = {
    "short records": Case(
        "records-not-read",
        "No verdict, the trace is not whole: 25 records could not be read; what",
        _short,
    ),
    "an event without a format": Case(
        "records-not-read",
        "No verdict, the trace is not whole: 25 records could not be read; what",
        _unknown,
    ),
    "none has one": Case(
        "records-not-read",
        "No verdict, the trace is not whole: 50 records could not be read; what",
        lambda _, whole: (9_999).to_bytes(2, "little") + whole[2:],
    ),
    "a field of another name": Case(
        "missing-field",
        f"{_LACKS} pause of {_EVENT}; what",
        replaced=(b"field:long pause;", b"field:long sleep;"),
    ),
    "a format that is not understood": Case(
        "missing-field",
        f"{_LACKS} bdi of {_EVENT}, pause of {_EVENT}, dirtied of {_EVENT}, task_ratelimit of",
        replaced=(b"field:unsigned long limit;", b"field:unsigned(long limit;"),
    ),
}


@pytest.fixture(params=_CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return _CASES[request.param]


def test_it_is_no_all_clear(wbscope: Wbscope, case: Case, tmp_path: Path) -> None:
    document = wbscope.document("explain", case.write(tmp_path / "run"))
    row = document["rows"][0]
    assert (row["id"], row["severity"], document["is_whole"]) == ("no_verdict", "severe", False)
    assert row["text"].startswith(case.sentence)
    assert "nothing_wrong" not in [one["id"] for one in document["rows"]]
    assert case.slug in [one["slug"] for one in document["warnings"]]


def test_no_budget_holds(wbscope: Wbscope, case: Case, tmp_path: Path) -> None:
    whole = Case("", "").write(tmp_path / "whole")
    budget = ("--budget", "throttle_summary.pause_total_ns <= 6s")
    assert wbscope.run("gate", whole, *budget).returncode == 1
    done = wbscope.run("gate", case.write(tmp_path / "run"), *budget)
    assert done.returncode == 4, done.stdout + done.stderr


def test_check_says_so(wbscope: Wbscope, tmp_path: Path) -> None:
    run = _CASES["short records"].write(tmp_path / "run")
    (row,) = [row for row in wbscope.query("check", run) if row["what"] == "damage"]
    assert row["verdict"] == "differs"
    assert "short_records is not 0" in row["why"]


def test_each_event_tells_its_own(wbscope: Wbscope, tmp_path: Path) -> None:
    """A field that another event lacks is told of that one."""
    known = formats("global_dirty_state")
    trace = Trace(known, cmdlines={11: "dd"})
    trace.event(0, 10**9, 11, "global_dirty_state", {"nr_dirty": 7, "dirty_limit": 9})
    run = tmp_path / "run"
    run.mkdir()
    content = trace.encode()
    assert b"nr_dirty;" in content
    (run / "trace.dat").write_bytes(content.replace(b"nr_dirty;", b"nr_soily;"))
    warnings = wbscope.document("query", "event_counts", run)["warnings"]
    assert [one["message"] for one in warnings if one["slug"] == "missing-field"] == [
        "global_dirty_state has no field nr_dirty that wbscope knows, so what is made of it is"
        " missing (the kernel is 6.1.0-test)"
    ]
