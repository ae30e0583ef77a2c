# SPDX-License-Identifier: Apache-2.0
"""The report: order of sections, questions that cannot be answered, files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import line_of
from wbscope.explain.verdict import page_window_ns

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
    verdict = "no verdict, for no rule could be asked\n"
    assert ran.out.startswith((f"{trace}: {verdict}", f"{trace}:\n{verdict}"))


@pytest.mark.parametrize(
    ("seconds", "window"), [(0, 2), (32, 2), (33, 5), (600, 60), (10_000_000, 625_000)]
)
def test_windows_of_a_report_fit_a_page(seconds: int, window: int) -> None:
    assert page_window_ns(seconds * 10**9) == window * 10**9


def test_what_a_table_has_is_chosen(cli: Cli, database: Path, tmp_path: Path) -> None:
    words = ("report", database, "--section", "throttle_by_task")
    chosen = ("--sort=-tid", "--columns", "pause_total_ns,tid", "--limit", "1")
    page = " ".join(cli(*words, *chosen).out.split())
    assert f" 100 ms 13 1 more row: wbscope query throttle_by_task {database} " in page
    ran = cli(*words, *chosen, "--json")
    assert ran.json()["rows"][0]["rows"] == [{"pause_total_ns": 100_000_000, "tid": 13}]
    line_of(ran.err, "throttle_by_task: ", 1, 2, "--limit")
    for end, row in ((".md", "| 100 ms | 13 |"), (".html", "1 of 2 rows. All of them:")):
        page = tmp_path / f"page{end}"
        assert cli(*words, *chosen, "-o", page).code == 0
        assert row in page.read_text()


def test_a_name_that_promises_something_else(cli: Cli, database: Path, tmp_path: Path) -> None:
    ran = cli("report", database, "-o", tmp_path / "a b.pdf")
    assert (ran.code, "error[unknown-format]: " in ran.err) == (2, True)
    assert f"  fix: -o '{tmp_path}/a b.html'\n" in ran.err
    assert not (tmp_path / "a b.pdf").exists()
    assert cli("report", database, "-o", tmp_path / "notes.log").code == 0


def test_width_of_a_page(cli: Cli, database: Path, tmp_path: Path) -> None:
    words = ("report", database, "--section", "throttle_by_task")
    narrow = cli(*words, "--width", "40").out
    assert max(map(len, narrow[narrow.index("Who was") :].splitlines()[2:6])) <= 40
    output = tmp_path / "report.txt"
    assert cli(*words, "--width", "40", "-o", output).code == 0
    assert output.read_text() == narrow


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["--limit", "3"], "no-section"),
        (["--full", "--section", "windows", "--sort", "tid"], "no-section"),
        (["--section", "throttle_by_task", "--columns", "tit"], "unknown-column"),
        (["--section", "throttle_by_task", "--sort=-tit"], "unknown-column"),
        (["--section", "windows", "--limit", "0"], "bad-number"),
        (["--width", "9"], "bad-number"),
        (["--width", "90", "--json"], "two-formats"),
        (["--width", "90", "-o", "page.html"], "two-formats"),
    ],
)
def test_a_choice_that_cannot_be_made(
    cli: Cli, tmp_path: Path, words: list[str], slug: str
) -> None:
    ran = cli("report", tmp_path / "nothing.db", *words)
    assert ran.code == 2
    assert f"error[{slug}]" in ran.err or ran.error()["slug"] == slug
