# SPDX-License-Identifier: Apache-2.0
"""nr_vmscan_write behind the events of a trace: by no more than a CPU keeps to itself, or by more.

By hand, one CPU, which keeps 125 pages to itself at most. reclaim writes 300 pages in 300 events.
  .      vmstat gained 175: 125 fewer, the counter lags, and nothing is wrong
  short  vmstat gained 174: 126 fewer, so the two files do not enclose the trace
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_EVENTS = 300


def _make(folder: Path, gained: int) -> None:
    folder.mkdir(exist_ok=True)
    trace = Trace(formats("mm_vmscan_write_folio"), cmdlines={42: "kswapd0"})
    for number in range(_EVENTS):
        values = {"pfn": 4100 + number, "reclaim_flags": 9}
        trace.event(0, 10_000_000_000 + number * 1_000_000, 42, "mm_vmscan_write_folio", values)
    trace.write(folder / "trace.dat")
    (folder / "vmstat.before").write_text("nr_vmscan_write 100\n")
    (folder / "vmstat.after").write_text(f"nr_vmscan_write {100 + gained}\n")


def make(folder: Path) -> None:
    _make(folder, 175)
    _make(folder / "short", 174)


_ASKED = "SELECT count(*) AS told FROM wb_warning WHERE slug = 'vmstat-below-events'"

CHECKS = [
    Check(sql=_ASKED, rows=[{"told": 0}]),
    Check(sql=_ASKED, folder="short", rows=[{"told": 1}]),
]
