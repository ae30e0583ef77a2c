# SPDX-License-Identifier: Apache-2.0
"""The report: order of sections, questions that cannot be answered, files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wbscope.explain.report import page_window_ns

Cli = Callable[..., Any]


def test_sections_come_in_order_and_a_missing_event_is_said(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(database.parent)  # a long path has a line of its own
    ran = cli("report", database.name, "--full")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[:6] == [
        f"{database.name}: no verdict, for no rule could be asked",
        "6.1.0",
        "",
        "kernel  6.1.0",
        "length  2.00 s",
        "",
    ]
    titles = ["Who was throttled", "Did reclaim write"]
    positions = [ran.out.index(f"{title}\n{'=' * len(title)}\n") for title in titles]
    assert positions == sorted(positions)
    assert "not answered: needs vmscan:mm_vmscan_write_folio or" in ran.out
    assert "How to read it: A long pause is a wait that the kernel ordered." in ran.out
    assert "* pause_total_ns (ns, lower is better): time that the kernel held the" in ran.out
    assert "warning[lower-bound]: pages are a lower bound" in ran.out
    assert "The window length" not in ran.out


def test_the_short_report_has_one_block_of_each_table(cli: Cli, database: Path) -> None:
    out = cli("report", database).out
    assert "Who was throttled\n" in out
    assert "How to read it" not in out
    assert "Words\n" not in out


def test_a_section_that_is_no_query_is_refused(cli: Cli, database: Path) -> None:
    ran = cli("report", database, "--section", "throtle_by_task")
    assert ran.code == 2
    assert "throttle_by_task" in ran.err


def test_json_has_a_row_for_each_section(cli: Cli, database: Path) -> None:
    document = cli("report", database, "--json").json()
    assert document["schema"] == "wbscope.report/1"
    assert document["summary"] == [
        {"key": "kernel", "value": "6.1.0"},
        {"key": "length_ns", "value": 2000000000},
    ]
    throttled, reclaim = document["rows"]
    assert throttled["units"] == {"pauses_count": "count", "pause_total_ns": "ns"}
    assert reclaim["skipped"]["slug"] == "missing-event"
    assert "rows" not in reclaim


def test_report_to_a_file(cli: Cli, database: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.txt"
    ran = cli("report", database, "-o", output)
    assert (ran.code, ran.out, ran.err) == (0, "", f"wrote {output}\n")
    assert output.read_text() == cli("report", database, "-o", "-").out
    assert cli("report", database, "-o", output).code == 2
    assert cli("report", database, "-o", output, "--force", "--json").code == 0
    assert output.read_text().startswith("{")
    assert cli("report", database, "-o", database, "--force").code == 2


@pytest.mark.usefixtures("ingester")
def test_report_of_a_trace(cli: Cli, trace: Path) -> None:
    ran = cli("report", trace)
    assert (ran.code, ran.err) == (0, "")
    told = "no verdict, for no rule could be asked\n"
    assert ran.out.startswith((f"{trace}: {told}", f"{trace}:\n{told}"))


@pytest.mark.parametrize(
    ("seconds", "window"), [(0, 2), (32, 2), (33, 5), (600, 60), (10_000_000, 625_000)]
)
def test_windows_of_a_report_fit_a_page(seconds: int, window: int) -> None:
    assert page_window_ns(seconds * 10**9) == window * 10**9
