# SPDX-License-Identifier: Apache-2.0
"""Output of the scripts in kernel-tracepoints/bpf/, recorded on stock kernels: read, and answered.

What is right is read from the lines themselves, key by key.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from support.cli import Wbscope

_DATA = Path(__file__).parents[1] / "data" / "text"
_LINE = re.compile(r"^ *(?P<comm>.+)-(?P<tid>\d+) +\[\d+\] [\d.]+: (?P<event>\w+): (?P<text>.*)$")
_PAIR = re.compile(r"(\w+)=(\S+)")


def _lines(name: str, event: str) -> list[dict[str, str]]:
    """The keys and values of each line of events that a pattern names, and its tid."""
    found = []
    for line in (_DATA / name).read_text().splitlines():
        match = _LINE.match(line)
        if match and re.fullmatch(event, match["event"]):
            found.append({"tid": match["tid"], **dict(_PAIR.findall(match["text"]))})
    assert found
    return found


@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("bpf-waits-6.1.txt", ("balance_dirty_pages", "balance_dirty_pages_done")),
        ("bpf-domains-6.1.txt", ("wb_domain_dirty_state",)),
        ("bpf-reclaim-6.1.txt", ("mm_vmscan_reclaim_writeback",)),
    ],
)
def test_every_line_is_a_record(wbscope: Wbscope, name: str, events: tuple[str, ...]) -> None:
    counts = wbscope.document("query", "event_counts", _DATA / name)
    assert not [w for w in counts["warnings"] if w["slug"] == "lines-not-understood"]
    assert {row["event"].partition(":")[2]: row["loaded_count"] for row in counts["rows"]} == {
        event: len(_lines(name, event)) for event in events
    }


def test_waits_are_those_that_were_measured(wbscope: Wbscope) -> None:
    name = "bpf-waits-6.1.txt"
    done = _lines(name, "balance_dirty_pages_done")
    assert sum(int(line["sleeps"]) for line in done) > 10
    assert max(int(line["loops"]) for line in done) > 2
    sql = (
        "SELECT t.tid, sum(t.slept_ns) AS slept_ns FROM wb_throttle AS t"
        " WHERE t.slept_basis = 'measured' GROUP BY t.tid"
    )
    slept = {row["tid"]: row["slept_ns"] for row in wbscope.sql(_DATA / name, sql)}
    told: dict[int, int] = defaultdict(int)
    # A call that began before the file has fewer events than loops: its wait is not all in it.
    events: Counter[str] = Counter()
    partial = 0
    for line in _lines(name, "balance_dirty_pages.*"):
        if "loops" not in line:
            events[line["tid"]] += 1
            continue
        if events.pop(line["tid"], 0) == int(line["loops"]):
            told[int(line["tid"])] += int(line["wait_ns"])
        else:
            partial += 1
    assert 0 < partial < 4
    assert slept == told


def test_domains_are_those_that_were_seen(wbscope: Wbscope) -> None:
    name = "bpf-domains-6.1.txt"
    rows = wbscope.document("query", "dirty_domains", _DATA / name)["rows"]
    lines = _lines(name, "wb_domain_dirty_state")
    assert {(row["domain"], row["cgroup_ino"]) for row in rows} == {
        ("memcg" if line["domain"] == "1" else "global", int(line["cgroup_ino"])) for line in lines
    }
    assert len(rows) == 2
    for row in rows:
        own = [line for line in lines if int(line["cgroup_ino"]) == row["cgroup_ino"]]
        assert row["basis"] == "domain_dirty_state"
        assert row["events_count"] == len(own)
        assert row["dirty_max_bytes"] == 4096 * max(int(line["dirty"]) for line in own)
        assert row["thresh_min_bytes"] == 4096 * min(int(line["thresh"]) for line in own)
        assert row["by_dirtier_count"] == sum(line["caller"] == "0" for line in own)
        assert row["by_flusher_count"] == sum(line["caller"] == "1" for line in own) > 0


def test_writes_are_exact(wbscope: Wbscope) -> None:
    name = "bpf-reclaim-6.1.txt"
    rows = wbscope.document("query", "reclaim_writes", _DATA / name)["rows"]
    pages: Counter[tuple[int, str, str]] = Counter()
    who = ("kswapd", "direct", "memcg", "node", "proactive", "other")
    for line in _lines(name, "mm_vmscan_reclaim_writeback"):
        pages[int(line["nid"]), line["zone"], who[int(line["reclaimer"])]] += int(line["nr_pages"])
    assert {row["basis"] for row in rows} == {"reclaim_writeback"}
    assert {
        (row["node"], row["zone"], row["reclaimer"]): row["pages_count"] for row in rows
    } == pages
