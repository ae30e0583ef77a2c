# SPDX-License-Identifier: Apache-2.0
"""Swap on a disk of its own: no dirty limit governs it, and no file waits behind it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import wbscope
from wbscope.library.finding import Finding

_FLUSHER, _KSWAPD, _SHM = "kworker/u4:1-25", "kswapd0-30", "shm-131"
_TAIL = "sync_mode=0 kupdate=0 range_cyclic=1 background=1 reason=background cgroup_ino=1"


class _Trace:
    """Lines of a text, each at its time in seconds."""

    def __init__(self) -> None:
        self._lines: list[tuple[float, str]] = []

    def event(self, ts: float, task: str, event: str, payload: str) -> None:
        self._lines.append((ts, f"{task} [000] {ts:.6f}: {event}: {payload}"))

    def request(self, ts: float, seconds: float, device: str, kib: int) -> None:
        where = f"() {int(ts * 1000)} + {kib * 2}"
        self.event(ts, _FLUSHER, "block_rq_issue", f"{device} W {kib * 1024} {where} [kworker]")
        self.event(ts + seconds, _FLUSHER, "block_rq_complete", f"{device} W {where} [0]")

    def state(self, ts: float, thresh: int) -> None:
        """The smoothed limit stays behind, as nobody has set another one."""
        self.event(
            ts,
            _FLUSHER,
            "global_dirty_state",
            f"dirty=10000 writeback=20000 bg_thresh={thresh // 2} thresh={thresh} limit=40000"
            f" dirtied={int((ts - 100) * 1000)} written={int((ts - 100) * 1000)}",
        )

    def write(self, folder: Path) -> None:
        (folder / "trace.txt").write_text("".join(f"{line}\n" for _, line in sorted(self._lines)))


def _findings(
    folder: Path, swaps: Sequence[str] = (), full_from: float = 101.5
) -> dict[str, Finding]:
    """8:0 has the files, 8:16 swap: it writes 2 MiB in 6.4 s; reclaim gave away 600 pages.

    The limit is 156 MiB, and 1.56 MiB from when memory is full. A task waits for a folio of the
    swap cache (1 s), and in direct reclaim (2 s).
    """
    trace = _Trace()
    for ts, left in ((100.1, 9000), (100.2, 8000)):
        name = "writeback_start" if left == 9000 else "writeback_written"
        trace.event(ts, _FLUSHER, name, f"bdi 8:0: sb_dev 0:0 nr_pages={left} {_TAIL}")
    for i in range(8):
        trace.request(100.2 + i / 10, 0.01, "8,0", 512)
    for i in range(16):
        trace.request(100.3 + i / 2, 0.4, "8,16", 128)
    for i in range(600):
        flags = "flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC"
        trace.event(101 + i / 1000, _KSWAPD, "mm_vmscan_write_folio", f"pfn=0x{i:x} {flags}")
    for i in range(80):
        trace.state(100 + i / 10, 40000 if 100 + i / 10 < full_from else 400)
    switch = "prev_comm=%s prev_pid=%d prev_prio=120 prev_state=%s ==> next_comm=%s next_pid=%d"
    away, back = ("shm", 131, "D", "swapper/0", 0), ("swapper/0", 0, "R", "shm", 131)
    trace.event(102, _SHM, "folio_wait_writeback", "bdi (unknown): ino=0 index=7")
    trace.event(102.0001, _SHM, "sched_switch", switch % away + " next_prio=120")
    trace.event(103.0001, "<idle>-0", "sched_switch", switch % back + " next_prio=120")
    trace.event(104, _SHM, "mm_vmscan_direct_reclaim_begin", "order=0 gfp_flags=GFP_KERNEL")
    trace.event(106, _SHM, "mm_vmscan_direct_reclaim_end", "nr_reclaimed=32")
    trace.write(folder)
    for sample, count in (("before", 0), ("after", 600)):
        text = f"nr_vmscan_write {count}\nnr_vmscan_immediate_reclaim {count}\npswpout {count}\n"
        (folder / f"vmstat.{sample}").write_text(text)
    if swaps:
        (folder / "swaps").write_text(
            "Filename Type Size Used Priority\n" + "\n".join(swaps) + "\n"
        )
        (folder / "bdis").write_text("8:0 sda /data ext4\n8:16 sdb - swap\n")
    with wbscope.open(folder) as run:
        return {one.id: one for one in run.findings()}


@pytest.mark.parametrize("swaps", [(), ("/dev/sdb partition 1 0 -2",)], ids=["untold", "told"])
def test_files_do_not_wait_behind_it(tmp_path: Path, swaps: Sequence[str]) -> None:
    found = _findings(tmp_path, swaps)
    one = found["swap_competes"]
    assert (one.title, one.cost_task_ns) == ("Tasks wait for swap", 1_000_000_000)
    assert one.confidence == ("measured" if swaps else "inferred")
    assert one.facts["swap_bdi"] == "8:16"
    disk = "sdb (-)" if swaps else "8:16"
    assert one.text == (
        f"shm 131 waited 1.00 s for memory: 600 pages of swap went to {disk}, a disk of its own."
    )
    assert one.advice is not None
    assert "another device" not in one.advice.text
    # What it writes is no dirty page of a file.
    assert "many_seconds" not in found


def test_a_disk_without_swap_counts(tmp_path: Path) -> None:
    """Swap is a file on the other disk: what is written to 8:16 are pages of files."""
    found = _findings(tmp_path, ["/data/swap file 1 0 -2"])
    assert found["many_seconds"].facts["bdi"] == "8:16"


@pytest.mark.parametrize(("full_from", "proposed"), [(106.0, 40 << 20), (101.5, None)])
def test_the_limit_that_was_set_is_lowered(
    tmp_path: Path, full_from: float, proposed: int | None
) -> None:
    """156 MiB for three quarters of the time: a quarter of it is 39.06 MiB, rounded up.

    For a fifth of the time: 40 MiB were no lower limit.
    """
    one = _findings(tmp_path, full_from=full_from)["reclaim_meets_dirty"]
    assert one.facts["proposed_bytes"] == proposed
    assert one.advice is not None
    assert [knob for knob, _ in one.advice.settings][:1] == (["vm.dirty_bytes"] if proposed else [])
