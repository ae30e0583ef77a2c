# SPDX-License-Identifier: Apache-2.0
"""Dirty pages of a fast disk are no backlog of a slow one, and its limit is not theirs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import wbscope
from support.texttrace import load_lines
from wbscope.library.finding import Finding

_MIB = 1 << 20
_PAGES = 256  # in a MiB


class _Trace:
    """Lines of a text, each at its time in seconds."""

    def __init__(self) -> None:
        self._lines: list[tuple[float, str]] = []

    def event(self, ts: float, task: str, event: str, payload: str) -> None:
        self._lines.append((ts, f"{task} [000] {ts:.6f}: {event}: {payload}"))

    def request(self, ts: float, seconds: float, device: str, sector: int, count: int) -> None:
        end = f"{device} W () {sector} + {count} [0]"
        begin = f"{device} W {count * 512} () {sector} + {count} [kworker]"
        self.event(ts, "kworker/0:1-25", "block_rq_issue", begin)
        self.event(ts + seconds, "kworker/0:1-25", "block_rq_complete", end)

    def throttled(self, ts: float, task: str, bdi: str, wb_mib: float) -> None:
        """117 MiB are dirty, of a limit of 156 MiB; wb_mib of them for the bdi."""
        self.event(
            ts - 0.0002,
            task,
            "global_dirty_state",
            "dirty=10000 writeback=20000 bg_thresh=15000 thresh=40000 limit=40000"
            f" dirtied={int((ts - 100) * 25600)} written={int((ts - 100) * 25600)}",
        )
        self.event(
            ts,
            task,
            "balance_dirty_pages",
            f"bdi {bdi}: limit=40000 setpoint=33750 dirty=30000 bdi_setpoint=33000"
            f" bdi_dirty={int(wb_mib * _PAGES)} dirty_ratelimit=100000 task_ratelimit=100000"
            " dirtied=512 dirtied_pause=32 paused=0 pause=20 period=20 think=0 cgroup_ino=1",
        )

    def lines(self) -> list[str]:
        return [line for _, line in sorted(self._lines)]


def _findings(trace: _Trace, folder: Path) -> Iterator[Finding]:
    with wbscope.open(load_lines(trace.lines(), folder).path) as run:
        yield from run.findings()


@pytest.mark.parametrize("has_fast", [True, False])
def test_whose_pages_they_are(tmp_path: Path, has_fast: bool) -> None:
    """A stick of 1 MiB/s wrote 2 MiB; all others of 117 MiB are those of a disk of 100 MiB/s."""
    trace = _Trace()
    for i in range(1000 if has_fast else 0):
        trace.request(100 + i / 100, 0.0099, "8,0", 1000 + i * 2048, 2048)
    for i in range(16):
        trace.request(101 + i / 8, 0.124, "8,16", 1000 + i * 256, 256)
    for i in range(200):
        trace.throttled(100.01 + i / 20, "big-200", "8:0", 116)
    trace.throttled(101.5, "stick-300", "8:16", 0.6)
    trace.event(101.1, "edit-77", "ext4_sync_file_enter", "dev 8,16 ino 12 parent 2 datasync 0")
    trace.event(102.0, "edit-77", "ext4_sync_file_exit", "dev 8,16 ino 12 ret 0")
    by_id = {one.id: one for one in _findings(trace, tmp_path)}
    if not has_fast:
        # Nobody else wrote, as far as the trace tells: the stick has to write all of it.
        assert by_id["many_seconds"].facts["dirty_max_bytes"] == 30000 * 4096
        return
    assert "many_seconds" not in by_id
    waited = by_id["sync_waits"]
    assert waited.facts["cost_task_ns"] == 900_000_000
    assert waited.advice is not None
    assert waited.advice.settings == ()
    assert "8:16 alone" in waited.advice.text


def test_a_copy_to_a_stick_beside_a_disk(tmp_path: Path) -> None:
    """100 MiB are dirty for a stick of 4 MiB/s, which takes 25 s to write them."""
    trace = _Trace()
    for i in range(1000):
        trace.request(100 + i / 100, 0.0099, "8,0", 1000 + i * 2048, 2048)
    for i in range(80):
        trace.request(100 + i / 8, 0.124, "8,16", 1000 + i * 1024, 1024)
    for i in range(200):
        trace.throttled(100.01 + i / 20, "cp-300", "8:16", 100)
    (one,) = (one for one in _findings(trace, tmp_path) if one.id == "many_seconds")
    assert one.facts["held_bytes"] == 100 * _MIB
    assert one.facts["disk_bytes_per_s"] == pytest.approx(4.03 * _MIB, rel=0.01)
    assert one.text == "100 MiB were dirty for 8:16, which writes 4.03 MiB/s."
    assert one.advice is not None
    assert one.advice.settings == ()
