# SPDX-License-Identifier: Apache-2.0
"""The dirty limit is changed in the middle of a run: what waits then is told of the change."""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from support.textrun import proven_findings
from support.texttrace import load_lines
from wbscope.base.span import parse_span
from wbscope.explain.remedy import prove
from wbscope.run.filters import Filters

_MIB = 1 << 20
_PAGES = 256  # in a MiB
_DIRTY = 32 * _PAGES
_WARNING = "limit-changed"


class _Trace:
    """Lines of a text, each at its time in seconds."""

    def __init__(self) -> None:
        self._lines: list[tuple[float, str]] = []

    def event(self, ts: float, task: str, event: str, payload: str) -> None:
        self._lines.append((ts, f"{task} [000] {ts:.6f}: {event}: {payload}"))

    def state(
        self,
        ts: float,
        thresh: int,
        dirty: int,
        task: str = "kworker/0:1-25",
        limit: int | None = None,
    ) -> None:
        """The smoothed limit is that of the setting, unless another is told."""
        self.event(
            ts,
            task,
            "global_dirty_state",
            f"dirty={dirty // 2} writeback={dirty - dirty // 2} bg_thresh={thresh // 2}"
            f" thresh={thresh} limit={limit or thresh}"
            f" dirtied={int(ts * 1000)} written={int(ts * 1000)}",
        )

    def throttled(self, ts: float, thresh: int, dirty: int, paused_ms: int) -> None:
        """A sleep of 200 ms; a call's first has nothing behind it."""
        self.state(ts - 0.0001, thresh, dirty, "dd-200")
        self.event(
            ts,
            "dd-200",
            "balance_dirty_pages",
            f"bdi 8:0: limit={thresh} setpoint={thresh * 7 // 8} dirty={dirty}"
            f" bdi_setpoint={thresh * 7 // 8} bdi_dirty={dirty} dirty_ratelimit=6000"
            f" task_ratelimit=0 dirtied=32 dirtied_pause=32 paused={paused_ms} pause=200"
            " period=200 think=0 cgroup_ino=1",
        )

    def busy(self, begin: float, end: float) -> None:
        """8:0 writes 6 MiB/s all the time, and the kernel takes it for a disk of 100 MiB/s."""
        for i in range(int((end - begin) * 6)):
            place = f"{1000 + i * 2048} + 2048"
            ts = begin + i / 6
            self.event(
                ts, "kworker/0:1-25", "block_rq_issue", f"8,0 W 1048576 () {place} [kworker]"
            )
            self.event(ts + 0.166, "kworker/0:1-25", "block_rq_complete", f"8,0 W () {place} [0]")
            self.event(
                ts + 0.001,
                "dd-200",
                "bdi_dirty_ratelimit",
                "bdi 8:0: write_bw=102400 awrite_bw=102400 dirty_rate=6000 dirty_ratelimit=6000"
                " task_ratelimit=6000 balanced_dirty_ratelimit=6000 cgroup_ino=1",
            )

    def write(self, folder: Path) -> Path:
        return load_lines([line for _, line in sorted(self._lines)], folder).path


def _lowered() -> _Trace:
    """At 106 s from 64 to 2 MiB, with 32 MiB dirty; no more than the limit from 109 s on.

    One call waits 15 times 200 ms, from 106.01 s on: 3.0 s. Behind 109 s there are five more.
    """
    trace = _Trace()
    trace.busy(100, 112)
    for i in range(24):
        trace.state(100 + i / 4, 64 * _PAGES, _DIRTY * i // 24)
    for i in range(15):
        trace.throttled(106.01 + i / 5, 2 * _PAGES, _DIRTY, i * 200)
    trace.state(109.0095, 2 * _PAGES, 2 * _PAGES)
    for i in range(5):
        trace.throttled(109.5 + i / 2, 2 * _PAGES, 2 * _PAGES - 8, 0)
    return trace


def _warned(path: Path) -> tuple[list[dict[str, int]], list[str]]:
    """Rows of dirty_limits, and their warnings of a change."""
    with wbscope.open(path) as run:
        told = run.query("dirty_limits")
        return told.records(), [one.message for one in told.warnings if one.slug == _WARNING]


def test_waits_for_what_the_old_limit_let_gather(tmp_path: Path) -> None:
    by_id = proven_findings(_lowered().write(tmp_path))
    one = by_id["limit_changed"]
    assert one.severity == "warning"
    assert one.text == (
        "The dirty limit changed from 64.0 MiB to 2.00 MiB after 6.01 s, when 32.0 MiB were dirty:"
        " dd 200 waited 3.00 s until no more was dirty than it lets, and one write was held for"
        " 3.00 s of that."
    )
    # Nobody was throttled before, but that says nothing of the disk.
    assert "new_bdi_bandwidth" not in by_id or by_id["new_bdi_bandwidth"].cost_task_ns <= 10**9


def test_a_part_behind_the_change(tmp_path: Path) -> None:
    """From 108 s on five sleeps of 200 ms are left of the drain: they begin at 108.01 s."""
    span = parse_span("8s")
    with wbscope.open(_lowered().write(tmp_path)) as run:
        (one,) = (one for one in run.findings(span) if one.id == "limit_changed")
        assert all(proven.holds for proven in prove(run, one, Filters(span=span)))
    assert one.severity == "warning"
    assert one.text == (
        "dd 200 waited 1.00 s until no more was dirty than the limit lets, which was lowered before"
        " this part, and one write was held for 1.00 s of that."
    )


def test_no_limit_is_proposed_above_the_one_in_force(tmp_path: Path) -> None:
    """What 8:0 writes in two seconds are 12 MiB: less than 64, and more than 2."""
    by_id = proven_findings(_lowered().write(tmp_path))
    assert by_id["many_seconds"].facts["dirty_max_bytes"] == 32 * _MIB
    settings = [pair for one in by_id.values() if one.advice for pair in one.advice.settings]
    assert not [value for knob, value in settings if knob == "vm.dirty_bytes"]


def test_a_limit_is_no_mean_of_two(tmp_path: Path) -> None:
    rows, warnings = _warned(_lowered().write(tmp_path))
    assert [row["thresh_bytes"] for row in rows] == [2 * _MIB]
    assert [row["bg_thresh_bytes"] for row in rows] == [_MIB]
    (message,) = warnings
    assert "from 64.0 to 2.0 MiB after 6.0 s" in message


def test_a_limit_that_rises_holds_up_nobody(tmp_path: Path) -> None:
    trace = _Trace()
    trace.busy(100, 112)
    for i in range(48):
        trace.state(100 + i / 4, (4 if i < 24 else 96) * _PAGES, 2 * _PAGES)
    path = trace.write(tmp_path)
    one = proven_findings(path)["limit_changed"]
    assert (one.severity, one.cost_task_ns) == ("note", 0)
    assert one.text == (
        "The dirty limit changed from 4.00 MiB to 96.0 MiB after 6.00 s, when 2.00 MiB were dirty."
    )
    # Not in a part in which it does not change.
    with wbscope.open(path) as run:
        assert "limit_changed" not in {one.id for one in run.findings(parse_span("0s", "5s"))}


def _real_time(i: int) -> int:
    """Three of ten samples are a real-time task's, right behind a higher limit: 2 MiB, a quarter of
    that and a part of the limit before."""
    return 1152 if 5 <= i % 10 < 8 else 512


@pytest.mark.parametrize("kind", ["memory", "taken", "freed", "real-time"])
def test_what_is_no_change_of_the_limit(kind: str, tmp_path: Path) -> None:
    """A ratio's threshold follows free memory; a real-time task has a threshold of its own."""
    trace = _Trace()
    trace.busy(100, 112)
    for i in range(100):
        ts = 100 + i / 10
        if kind == "memory":
            trace.state(ts, 20000 - i * 180, 100, limit=20000)
        elif kind == "taken":
            # At once, and the smoothed limit stays where it was.
            trace.state(ts, 20000 - i if i < 50 else 9000 - i, 100, limit=20000)
        elif kind == "freed":
            # 2.1 s without a sample.
            trace.state(ts if i < 50 else ts + 2.1, 9000 + i if i < 50 else 20000 + i, 100)
        else:
            trace.state(ts, _real_time(i), 100, limit=512)
    path = trace.write(tmp_path)
    assert "limit_changed" not in proven_findings(path)
    assert _warned(path)[1] == []


def test_a_warning_of_many_changes_names_three(tmp_path: Path) -> None:
    """Whoever changes it for each event has no message of megabytes."""
    trace = _Trace()
    for second in range(40):
        for i in range(10):
            trace.state(100 + second + i / 10, (64 if second % 2 else 2) * _PAGES, _PAGES)
    _, warned = _warned(trace.write(tmp_path))
    (message,) = warned
    assert message.count(" MiB after ") == 3
    assert " and 36 more (" in message
