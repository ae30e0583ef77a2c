# SPDX-License-Identifier: Apache-2.0
"""The table of mmtests and the facts of a run, against the files beside the trace."""

from __future__ import annotations

import pytest
from support.cli import Wbscope
from support.report import parse_report, report_lines
from support.runs import RecordedRun
from support.sidecars import vmstat_delta, vmstat_names

# Line of the table -> counters that are added up.
_SUMS = {
    "Major Faults": ("pgmajfault",),
    "Page Ins": ("pgpgin",),
    "Page Outs": ("pgpgout",),
    "Swap Ins": ("pswpin",),
    "Swap Outs": ("pswpout",),
    "Swap total": ("pswpin", "pswpout"),
    "Direct pages scanned": ("pgscan_direct",),
    "Kswapd pages scanned": ("pgscan_kswapd",),
    "Kswapd pages reclaimed": ("pgsteal_kswapd",),
    "Direct pages reclaimed": ("pgsteal_direct",),
    "Page writes by reclaim": ("nr_vmscan_write",),
    "Page writes anon": ("pswpout",),
    "Page reclaim immediate": ("nr_vmscan_immediate_reclaim",),
    "Slabs scanned": ("slabs_scanned",),
    "Direct inode steals": ("pginodesteal",),
    "Kswapd inode steals": ("kswapd_inodesteal",),
}


def test_every_line_of_the_mmtests_table(wbscope: Wbscope, recorded: RecordedRun) -> None:
    if not recorded.has("vmstat.before", "vmstat.after"):
        pytest.skip("the run has no vmstat samples")

    def delta(*names: str) -> int:
        return sum(vmstat_delta(recorded.folder, name) for name in names)

    expected: dict[str, float | None] = {name: delta(*c) for name, c in _SUMS.items()}
    stalls = [name for name in vmstat_names(recorded.folder) if name.startswith("allocstall")]
    assert stalls
    expected["Allocation stalls"] = delta(*stalls)
    expected["Minor Faults"] = delta("pgfault") - delta("pgmajfault")
    expected["Page writes file"] = delta("nr_vmscan_write") - delta("pswpout")
    ends = [event.ts for event in parse_report(report_lines(recorded.trace))]
    seconds = (max(ends) - min(ends)) / 1e9
    scanned = delta("pgscan_kswapd"), delta("pgscan_direct")
    for who, count in (("Kswapd", scanned[0]), ("Direct", scanned[1])):
        freed = delta(f"pgsteal_{who.lower()}")
        expected[f"{who} efficiency"] = 100 * freed / count if count else None
        expected[f"{who} velocity"] = count / seconds
    both = sum(scanned)
    expected["Percentage direct scans"] = 100 * scanned[1] / both if both else None
    rows = wbscope.query("mmtests_vmstat", recorded.folder)
    found = {row["name"]: row["value"] for row in rows}
    wanted = {name: value for name, value in expected.items() if value is not None}
    assert {name: value for name, value in found.items() if value is not None} == {
        name: pytest.approx(value, rel=1e-9) for name, value in wanted.items()
    }


def test_facts_of_the_run(wbscope: Wbscope, recorded: RecordedRun) -> None:
    facts = {row["key"]: row["value"] for row in wbscope.query("run_summary", recorded.folder)}
    events = list(parse_report(report_lines(recorded.trace)))
    ends = [event.ts for event in events]
    assert facts["events_count"] == len(events)
    assert facts["tasks_count"] == len({event.tid for event in events})
    assert facts["duration_ns"] == max(ends) - min(ends)
    assert facts["page_bytes"] == recorded.page_bytes
    assert facts["clock"] == recorded.clock
    # Debian's kernels have HZ = 250.
    assert facts["hz"] == "250"
    if recorded.has("uname"):
        assert facts["kernel"] in (recorded.folder / "uname").read_text().split()
    if recorded.has("meminfo"):
        words = (recorded.folder / "meminfo").read_text().split()
        assert facts["memory_bytes"] == int(words[words.index("MemTotal:") + 1]) * 1024
