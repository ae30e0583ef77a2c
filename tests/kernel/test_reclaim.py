# SPDX-License-Identifier: Apache-2.0
"""What a booted kernel says of reclaim's writes, against everything else that was recorded."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from support.kernelchecks import fetched, wrong_zones, zones_of

_RECLAIMERS = {"kswapd": 0, "direct": 1, "memcg": 2, "proactive": 4, "other": 5}
_SUBMITTED, _DECLINED, _REFUSED, _KEPT = range(4)
_HUGE_PAGES = 512


def _vmstat(run: Path, counter: str) -> int:
    """How much the counter grew while the workload ran."""
    values = [
        int(line.split()[1])
        for when in ("before", "after")
        for line in (run / f"vmstat.{when}").read_text().splitlines()
        if line.startswith(f"{counter} ")
    ]
    return values[1] - values[0]


@pytest.mark.parametrize(
    ("outcome", "counter"),
    [(_SUBMITTED, "nr_vmscan_write"), (_DECLINED, "nr_vmscan_immediate_reclaim")],
)
def test_reclaim_pages_are_those_of_vmstat(
    outcome: int, counter: str, runs: Path, databases: dict[str, sqlite3.Connection]
) -> None:
    ((pages,),) = fetched(
        databases["reclaim"],
        f"SELECT sum(nr_pages) FROM ev_mm_vmscan_reclaim_writeback WHERE outcome = {outcome}",
    )
    assert pages == _vmstat(runs / "reclaim", counter)
    assert pages > 0


def test_reclaim_events_are_those_of_write_folio(databases: dict[str, sqlite3.Connection]) -> None:
    """One for one: those of each thread in the same order, with the same pfn and flags."""
    old, new = (
        fetched(
            databases["reclaim"],
            f"SELECT tid, pfn, reclaim_flags FROM {table} ORDER BY tid, seq",
        )
        for table in (
            "ev_mm_vmscan_write_folio",
            f"ev_mm_vmscan_reclaim_writeback WHERE outcome = {_SUBMITTED}",
        )
    )
    assert len(old) > 1000
    assert new == old


def test_folios_of_many_pages_are_counted_whole(databases: dict[str, sqlite3.Connection]) -> None:
    """Huge pages go to swap as one folio each; the sums above have all of their pages."""
    rows = fetched(
        databases["reclaim"],
        "SELECT reclaimer, nr_pages, count(*) FROM ev_mm_vmscan_reclaim_writeback"
        f" WHERE outcome = {_SUBMITTED} AND nr_pages > 1 GROUP BY 1, 2",
    )
    assert {pages for _, pages, _ in rows} == {_HUGE_PAGES}
    whole = {reclaimer: count for reclaimer, _, count in rows}
    # 13 MiB that MADV_PAGEOUT was asked for, and some of the 8 MiB of memory.reclaim.
    assert whole[_RECLAIMERS["other"]] >= 4
    assert whole[_RECLAIMERS["proactive"]] >= 1


def test_what_is_not_written_is_told(databases: dict[str, sqlite3.Connection]) -> None:
    """Shared memory in a cgroup without swap is refused, a page that a pipe refers to is kept."""
    rows = fetched(
        databases["reclaim"],
        "SELECT outcome, count(*) FROM ev_mm_vmscan_reclaim_writeback"
        f" WHERE reclaimer = {_RECLAIMERS['other']} AND reclaim_flags & 1"
        f" AND (ino > 0) = (outcome = {_REFUSED}) GROUP BY 1",
    )
    counts = dict(rows)
    assert set(counts) == {_SUBMITTED, _REFUSED, _KEPT}
    # 7 MiB, but for what waits in the CPU's list to be put on the LRU list
    assert 1700 < counts[_REFUSED] <= 7 * 256
    # Those of the pipe, and hardly another
    assert 16 <= counts[_KEPT] < 32


def test_zones_are_those_of_the_pfn(runs: Path, databases: dict[str, sqlite3.Connection]) -> None:
    zones = zones_of((runs / "reclaim/zoneinfo").read_text())
    names = dict(enumerate(("DMA", "DMA32", "Normal", "Movable")))
    told = [
        (pfn, nid, names[zid])
        for pfn, nid, zid in fetched(
            databases["reclaim"], "SELECT pfn, nid, zid FROM ev_mm_vmscan_reclaim_writeback"
        )
    ]
    assert wrong_zones(told, zones) == []
    # Whether memory is so short that zone DMA is used is chance.
    assert {"DMA32"} <= {name for _, _, name in told} <= {"DMA", "DMA32"}


def test_every_reclaimer_is_told(databases: dict[str, sqlite3.Connection]) -> None:
    """kswapd is the thread of that name, memcg has an id, and the workload made each of them."""
    rows = fetched(
        databases["reclaim"],
        "SELECT reclaimer, memcg_id != 0, count(*) FROM ev_mm_vmscan_reclaim_writeback"
        " GROUP BY 1, 2",
    )
    seen = {(reclaimer, of_memcg) for reclaimer, of_memcg, _ in rows}
    assert {reclaimer for reclaimer, _ in seen} == set(_RECLAIMERS.values()), rows
    for name in ("memcg", "proactive"):
        assert (_RECLAIMERS[name], 1) in seen
        assert (_RECLAIMERS[name], 0) not in seen
    for name in ("kswapd", "direct"):
        assert (_RECLAIMERS[name], 1) not in seen
    kswapd = fetched(
        databases["reclaim"],
        "SELECT DISTINCT e.reclaimer, t.comm FROM ev_mm_vmscan_reclaim_writeback AS e"
        " JOIN task AS t USING (tid) WHERE t.comm LIKE 'kswapd%' OR e.reclaimer = 0",
    )
    assert kswapd == [(0, "kswapd0")]


def test_counters_are_the_machines(databases: dict[str, sqlite3.Connection]) -> None:
    """One node: its counters are the machine's, and no zone has more than both."""
    wrong = fetched(
        databases["reclaim"],
        "SELECT count(*) FROM ev_mm_vmscan_reclaim_writeback WHERE z_write_pending < 0"
        # A huge page that the other CPU adds between the two reads
        f" OR abs(n_dirty - g_dirty) > 64 OR abs(n_writeback - g_writeback) > 64 + {_HUGE_PAGES}"
        " OR abs(n_inactive_file - g_inactive_file) > 64"
        " OR z_inactive_file > n_inactive_file + 512",
    )
    assert wrong == [(0,)]


def test_files_and_tmpfs_have_an_inode(databases: dict[str, sqlite3.Connection]) -> None:
    """A file has the disk's number and its own; what is anonymous has none; tmpfs has dev 0:n."""
    rows = fetched(
        databases["reclaim"],
        "SELECT DISTINCT reclaim_flags & 2, dev >> 20, ino > 0 FROM ev_mm_vmscan_reclaim_writeback",
    )
    assert {(file, major, has) for file, major, has in rows} >= {(2, 254, 1), (0, 0, 0), (0, 0, 1)}
    assert all(has for file, _, has in rows if file)
