# SPDX-License-Identifier: Apache-2.0
"""A finding about a device has to tell of most of the time that its writers were held up.

By hand: dd is held up for five sleeps of 200 ms, as intended, one each 300 ms. `few` of them are
for one reason; in the others the disk writes, 64 KiB in 210 ms: it is what limits. Two of five are
400 of 1000 ms, less than half; three are more; and of four sleeps two are just half.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from support.texttrace import load_lines
from wbscope.explain.remedy import prove
from wbscope.library.finding import Finding

_MS = 1_000_000
_LIMIT, _SETPOINT = 10_000, 8_750  # pages; free run ends at 7500
_OVER = 9_500  # x = -0.6, so the machine's factor is 1 - 0.216
_SHARES = pytest.mark.parametrize(("few", "others"), [(2, 3), (2, 2), (3, 2)])


class _Trace:
    """Lines of a text, each at its time in seconds."""

    def __init__(self) -> None:
        self._lines: list[tuple[float, str]] = []
        # Both disks had a request before anybody waited: theirs are recorded.
        self.request(99.0, "8,0")
        self.request(99.0, "8,16")

    def event(self, ts: float, task: str, event: str, payload: str) -> None:
        self._lines.append((ts, f"{task} [000] {ts:.6f}: {event}: {payload}"))

    def request(self, ts: float, device: str) -> None:
        """Of 64 KiB in 210 ms, as a sleep of 200 ms begins at 5 ms: 305 KiB/s."""
        sector = int(ts * 1000)
        begin = f"{device} W 65536 () {sector} + 128 [kworker]"
        self.event(ts, "kworker/0:1-25", "block_rq_issue", begin)
        end = f"{device} W () {sector} + 128 [0]"
        self.event(ts + 0.21, "kworker/0:1-25", "block_rq_complete", end)

    def held(
        self,
        ts: float,
        *,
        writeback: int,
        dirty: int = _OVER,
        own: int = _OVER,
        wb_setpoint: int = _SETPOINT,
        rate: int = 784,
        task: str = "dd-11",
        bdi: str = "8:0",
    ) -> None:
        """200 ms, with so many pages dirty and under writeback."""
        self.event(
            ts + 0.004,
            task,
            "global_dirty_state",
            f"dirty={dirty - writeback} writeback={writeback} bg_thresh=5000 thresh={_LIMIT}"
            f" limit={_LIMIT} dirtied={int(ts * 100)} written={int(ts * 100)}",
        )
        self.event(
            ts + 0.005,
            task,
            "balance_dirty_pages",
            f"bdi {bdi}: limit={_LIMIT} setpoint={_SETPOINT} dirty={dirty}"
            f" bdi_setpoint={wb_setpoint} bdi_dirty={own} dirty_ratelimit=1000"
            f" task_ratelimit={rate} dirtied=8 dirtied_pause=32 paused=0 pause=200 period=200"
            " think=0 cgroup_ino=1",
        )

    def found(self, folder: Path) -> dict[str, Finding]:
        lines = [line for _, line in sorted(self._lines)]
        with wbscope.open(load_lines(lines, folder).path) as run:
            found = run.findings()
            for one in found:
                assert all(proven.holds for proven in prove(run, one)), one
        return {one.id: one for one in found}


def _times(few: int, others: int) -> tuple[list[float], list[float]]:
    times = [100 + 0.3 * i for i in range(few + others)]
    return times[:few], times[few:]


def _cost(found: dict[str, Finding], rule: str) -> int | None:
    return found[rule].cost_task_ns if rule in found else None


@_SHARES
def test_strict_limit(tmp_path: Path, few: int, others: int) -> None:
    """Below free run only the wb's own limit holds it up; that is 100 pages, 1.3 s of this disk."""
    trace = _Trace()
    for times, is_busy in zip(_times(few, others), (False, True), strict=True):
        for ts in times:
            trace.held(ts, writeback=50, dirty=500, own=100, wb_setpoint=88, rate=0)
            if is_busy:
                trace.request(ts, "8,0")
    found = trace.found(tmp_path)
    # With a busy disk, too.
    assert _cost(found, "slow_device") is None
    assert _cost(found, "strict_limit") == (few + others) * 200 * _MS


@_SHARES
def test_device_idle(tmp_path: Path, few: int, others: int) -> None:
    trace = _Trace()
    for times, is_busy in zip(_times(few, others), (False, True), strict=True):
        for ts in times:
            trace.held(ts, writeback=4000)
            if is_busy:
                trace.request(ts, "8,0")
    found = trace.found(tmp_path)
    assert _cost(found, "slow_device") == others * 200 * _MS
    assert _cost(found, "device_idle") == (few * 200 * _MS if few >= others else None)


@_SHARES
def test_no_writeback(tmp_path: Path, few: int, others: int) -> None:
    trace = _Trace()
    for times, is_busy in zip(_times(few, others), (False, True), strict=True):
        for ts in times:
            trace.held(ts, writeback=4000 if is_busy else 0)
            if is_busy:
                trace.request(ts, "8,0")
    found = trace.found(tmp_path)
    assert _cost(found, "slow_device") == others * 200 * _MS
    assert _cost(found, "no_writeback") == (few * 200 * _MS if few >= others else None)


@_SHARES
def test_slow_bdi_starves(tmp_path: Path, few: int, others: int) -> None:
    """While 9000 of the 9500 pages are those of 8:16, and then while they are its own."""
    trace = _Trace()
    starved, slowed = _times(few, others)
    for ts in starved:
        trace.held(ts - 0.01, writeback=4000, own=9000, task="cp-12", bdi="8:16")
        trace.request(ts - 0.01, "8,16")
        trace.held(ts, writeback=4000, own=500, wb_setpoint=4375)
        trace.request(ts, "8,0")
    for ts in slowed:
        trace.held(ts, writeback=4000, own=9000)
        trace.request(ts, "8,0")
    one = trace.found(tmp_path)["slow_bdi_starves"]
    assert (one.cost_task_ns, one.facts["holder_bdi"]) == (few * 200 * _MS, "8:16")
    assert one.severity == ("severe" if few >= others else "warning")
