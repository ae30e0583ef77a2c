# SPDX-License-Identifier: Apache-2.0
"""Where the pages went that reclaim gave away: by counters of /proc/vmstat, where they close.

By hand. pswpout has what zswap wrote out later (zswpwb), which reclaim did not give away then.
  run     kernel  events            counters' gains                        what follows
  zswap   6.12.5  9 anon, 1 file    nr_vmscan_write 10, pswpout 3,         device 3 - 1 = 2, file 1,
                                    zswpwb 1, zswpout 2, swpout_zero 5     zswap 2, zero 5, rest 0;
    7 of 10 reached no device; 2 of 9 anon pages the swap device. mmtests would print 10 - 3 = 7 as
    file and 3 as anon; the events say 1 and 9
  closes  6.1.0   6 anon, 2 file    nr_vmscan_write 8, pswpout 6           nothing is left for
    zswap, which has no counter here, and 6.1 does not look for zeros
  freed   6.1.0   the same          nr_vmscan_write 8, pswpout 5           zswap not known, rest 1
  early   6.12.0  4 anon            nr_vmscan_write 4, pswpout 1           neither counter: rest 3
  more    6.1.0   4 anon            nr_vmscan_write 4, pswpout 12          others swap, too: no rest
  untold  5.10.0  none recorded     nr_vmscan_write 10, pswpout 6          file not known, rest 4
  new     6.18.0  none recorded     nr_vmscan_write 10, pswpout 4,         file 0: from 6.16 on
                                    swpout_zero 6                          reclaim writes no files
  folios  6.12.5  2 anon, of 16     nr_vmscan_write 32, pswpout 16,        device 16, zero 16
                  pages each        swpout_zero 16, zswpout 0
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_ANON, _FILE = 0x9, 0xA


def _run(folder: Path, kernel: str, anon: int | None, file: int, **gained: int) -> None:
    folder.mkdir()
    known = formats("mm_vmscan_kswapd_wake")
    if anon is not None:
        known += formats("mm_vmscan_write_folio")
    trace = Trace(known, cmdlines={42: "kswapd0"}, uname=f"Linux synthetic {kernel}-test x86_64")
    trace.event(0, 10_000 * _MS, 42, "mm_vmscan_kswapd_wake")
    kinds = [_ANON] * (anon or 0) + [_FILE] * file
    for place, kind in enumerate(kinds, 1):
        values = {"pfn": 4096 + place, "reclaim_flags": kind}
        trace.event(0, (10_000 + place) * _MS, 42, "mm_vmscan_write_folio", values)
    trace.write(folder / "trace.dat")
    (folder / "vmstat.before").write_text("".join(f"{name} 100\n" for name in gained))
    after = "".join(f"{name} {100 + value}\n" for name, value in gained.items())
    (folder / "vmstat.after").write_text(after)


def make(folder: Path) -> None:
    swap = {"pswpout": 3, "zswpwb": 1, "zswpout": 2, "swpout_zero": 5}
    _run(folder / "zswap", "6.12.5", 9, 1, nr_vmscan_write=10, **swap)
    _run(folder / "closes", "6.1.0", 6, 2, nr_vmscan_write=8, pswpout=6)
    _run(folder / "freed", "6.1.0", 6, 2, nr_vmscan_write=8, pswpout=5)
    _run(folder / "early", "6.12.0", 4, 0, nr_vmscan_write=4, pswpout=1)
    _run(folder / "more", "6.1.0", 4, 0, nr_vmscan_write=4, pswpout=12)
    _run(folder / "untold", "5.10.0", None, 0, nr_vmscan_write=10, pswpout=6)
    _run(folder / "new", "6.18.0", None, 0, nr_vmscan_write=10, pswpout=4, swpout_zero=6)
    swap = {"pswpout": 16, "zswpout": 0, "swpout_zero": 16}
    _run(folder / "folios", "6.12.5", 2, 0, nr_vmscan_write=32, **swap)


def _split(
    folder: str, *pages: int | None, total: int | None, rest_is_device: int | None = 0, words: str
) -> Check:
    names = ("swap device", "file", "zswap", "zero-filled", "rest")
    is_device = (1, 1, 0, 0, rest_is_device)
    rows: list[Expected] = [
        {
            "destination": name,
            "pages_count": count,
            "share_ratio": None if count is None or total is None else count / total,
            "is_device": device,
        }
        for name, count, device in zip(names, pages, is_device, strict=True)
    ]
    return Check(
        query="reclaim_destinations",
        folder=folder,
        ordered=True,
        rows=rows,
        warning_words=(words,) if words else (),
    )


def _page_writes(folder: str, file: int, anon: int) -> Check:
    return Check(
        query="mmtests_vmstat",
        folder=folder,
        keep=lambda row: str(row["name"]).startswith("Page writes"),
        ordered=True,
        rows=[
            {"name": "Page writes by reclaim", "value": float(file + anon)},
            {"name": "Page writes file", "value": float(file)},
            {"name": "Page writes anon", "value": float(anon)},
        ],
    )


def _written(folder: str, kind: str, pages: int, ratio: float | None) -> Check:
    return Check(
        query="reclaim_writes",
        folder=folder,
        keep=lambda row: row["kind"] == kind,
        rows=[{"pages_count": pages, "swap_device_ratio": ratio}],
    )


CHECKS = [
    _split("zswap", 2, 1, 2, 5, 0, total=10, words="7 of 10 pages (70 %)"),
    _split("closes", 6, 2, 0, 0, 0, total=8, words=""),
    _split("freed", 5, 2, None, 0, 1, total=8, words="no counter tells of 1"),
    _split("early", 1, 0, None, None, 3, total=4, words="3 of 4 pages (75 %)"),
    _split("more", 12, 0, None, 0, None, total=None, words="others also write to swap"),
    _split("untold", 6, None, None, 0, 4, total=10, rest_is_device=None, words=""),
    _split("new", 4, 0, 0, 6, 0, total=10, words="6 were zero-filled"),
    _split("folios", 16, 0, 0, 16, 0, total=32, words="16 were zero-filled"),
    _page_writes("zswap", 1, 9),
    _page_writes("closes", 2, 6),
    _page_writes("early", 0, 4),
    _page_writes("untold", 4, 6),
    _page_writes("new", 0, 10),
    _written("zswap", "anon", 9, 2 / 9),
    _written("zswap", "file", 1, None),
    _written("closes", "anon", 6, 1.0),
    _written("more", "anon", 4, None),
    _written("folios", "anon", 32, 0.5),
    Check(
        query="task_faults",
        folder="zswap",
        rows=[{"tid": 42, "swapped_out_count": 9, "swap_device_ratio": 2 / 9}],
    ),
    Check(
        query="mmtests_vmstat",
        folder="zswap",
        keep=lambda row: str(row["name"]).startswith("Swap Outs"),
        rows=[
            {"name": "Swap Outs", "value": 3.0},
            {"name": "Swap Outs to zswap", "value": 2.0},
            {"name": "Swap Outs zero-filled", "value": 5.0},
        ],
    ),
]
