# SPDX-License-Identifier: Apache-2.0
"""Pages written to swap are in the kernel's counts of writing, and nobody dirtied them.

By hand, in pages of 4 KiB; windows of 2 s from 10 s. global_dirty_state at
       s  dirtied  written  dirty and writeback
      10        0        0                    0
      11     1000      600                  410   reclaim gave 10 away before: 1000 - 600 + 10 - 410
      13     2000     1490                  700   200 more: 1000 - 890 + 200 - 290 = 20 of 1000
      15     2100     1800                  690   10 more: 100 - 310 + 10 + 10 = -190 of 100: what
                                                  the counters lag (125) does not explain that
      17     2200     1970                  640   none: 100 - 170 + 50 = -20: within what they lag
  redirty_ratio 0, 0.02, not known, 0. All 220 pages reached the swap device.
  "zeros": the same with 100 of the 220 zero-filled, nobody knows in which window: only the last
    window, without any, has a ratio.
  "untold": without the events, and 220 pages swapped: no window has one.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_STATES = ((0, 0, 0, 0), (1000, 1000, 600, 410), (3000, 2000, 1490, 700), (5000, 2100, 1800, 690))
_LAST = (7000, 2200, 1970, 640)
_WRITES = {500: 10, 2000: 200, 4500: 10}


def _run(folder: Path, *, with_events: bool, **gained: int) -> None:
    folder.mkdir(exist_ok=True)
    names = (
        ("global_dirty_state", "mm_vmscan_write_folio") if with_events else ("global_dirty_state",)
    )
    trace = Trace(
        formats(*names),
        cmdlines={42: "kswapd0", 50: "kworker/u4:1"},
        uname="Linux synthetic 6.12.5-test x86_64",
    )
    steps: list[tuple[int, int, str, dict[str, int]]] = []
    for ms, dirtied, written, dirty in (*_STATES, _LAST):
        values = {"nr_dirty": dirty, "nr_dirtied": dirtied, "nr_written": written}
        steps.append((ms * 1000, 50, "global_dirty_state", values))
    if with_events:
        for ms, pages in _WRITES.items():
            for place in range(pages):
                values = {"pfn": place, "reclaim_flags": 0x9}
                steps.append((ms * 1000 + place, 42, "mm_vmscan_write_folio", values))
    for us, tid, name, values in sorted(steps, key=lambda step: step[0]):
        trace.event(0, 10_000 * _MS + us * 1000, tid, name, values)
    trace.write(folder / "trace.dat")
    (folder / "vmstat.before").write_text("".join(f"{name} 0\n" for name in gained))
    (folder / "vmstat.after").write_text("".join(f"{n} {v}\n" for n, v in gained.items()))


def make(folder: Path) -> None:
    _run(folder, with_events=True, nr_vmscan_write=220, pswpout=220, swpout_zero=0)
    zeros = {"pswpout": 120, "swpout_zero": 100}
    _run(folder / "zeros", with_events=True, nr_vmscan_write=220, **zeros)
    _run(folder / "untold", with_events=False, nr_vmscan_write=220, pswpout=220)


def _ratios(folder: str, *ratios: float | None) -> Check:
    rows: list[Expected] = [
        {"window_start_ns": (10_000 + 2000 * place) * _MS, "redirty_ratio": ratio}
        for place, ratio in enumerate(ratios)
    ]
    return Check(query="throughput", folder=folder, ordered=True, rows=rows)


CHECKS = [
    _ratios("", 0.0, 0.02, None, 0.0),
    _ratios("zeros", None, None, None, 0.0),
    _ratios("untold", None, None, None, None),
]
