# SPDX-License-Identifier: Apache-2.0
"""Links between the pages lead somewhere, and the generated pages leave nothing out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.browser import dead_links
from support.runs import REPOSITORY
from wbscope.base.result import Column
from wbscope.library.library import load_library

_PATTERNS = (
    "*.md",
    *(f"{folder}/**/*.md" for folder in ("docs", "examples", "kernel-tracepoints", "tests", "ui")),
)
_PAGES = sorted(page for pattern in _PATTERNS for page in REPOSITORY.glob(pattern))
_LIBRARY = load_library(REPOSITORY / "sql")


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page: Path) -> None:
    assert list(dead_links(page)) == []


def test_every_query_has_its_entry_with_all_columns_and_metrics() -> None:
    page = (REPOSITORY / "docs" / "queries.md").read_text(encoding="utf-8")
    for query in _LIBRARY.queries():
        _, found, entry = page.partition(f"\n### {query.name}\n")
        assert found, query.name
        entry = entry.split("\n### ")[0].split("\n## ")[0]
        rows = re.findall(r"^\| `(\w+)` \|", entry, re.MULTILINE)
        metrics = [metric.column for metric in query.metrics]
        assert rows == [*_named(query.columns), *metrics]
        assert "- Options: " in entry
        for event in {event for group in query.events for event in group}:
            assert f"`{event}`" in entry


def test_every_view_has_its_entry_with_all_columns() -> None:
    """Once, and no step."""
    page = (REPOSITORY / "docs" / "views.md").read_text(encoding="utf-8")
    for file in _LIBRARY.files.values():
        if file.kind == "raw":
            assert f"\n| `{file.name}` | " in page
        elif file.kind == "view" and file.is_private():
            assert not re.search(rf"\b{file.name}\b", page), file.name
        elif file.kind == "view" and not file.is_public():
            assert f"#### {file.name}\n" not in page, file.name
        elif file.kind == "view":
            assert page.count(f"\n#### {file.name}\n") == 1, file.name
            _, found, entry = page.partition(f"\n#### {file.name}\n")
            assert found, file.name
            entry = re.split(r"\n##+ ", entry)[0]
            assert re.findall(r"^\| `(\w+)` \|", entry, re.MULTILINE) == _named(file.columns)
            assert f"- One row: {file.grain}" in entry


def test_every_threshold_has_its_value() -> None:
    """As the view gives it."""
    page = (REPOSITORY / "docs" / "views.md").read_text(encoding="utf-8")
    entry = page.partition("\n#### wb_rule\n")[2].partition("\n## ")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", entry, re.MULTILINE))
    rule = _LIBRARY.files["wb_rule"]
    assert list(told) == _named(rule.columns)
    known = {"pause_max_ns": "200 ms", "most_ratio": "50.0 %", "leaked_bytes": "512 KiB"}
    assert {name: told[name] for name in known} == known


def test_the_index_has_every_page() -> None:
    page = (REPOSITORY / "docs" / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w-]+\.md)[)#]", page))
    there = {path.name for path in (REPOSITORY / "docs").glob("*.md")} - {"README.md"}
    assert linked == there


def _named(columns: tuple[Column, ...]) -> list[str]:
    return [column.name for column in columns]


def test_every_question_of_the_report_says_what_its_numbers_mean() -> None:
    for query in _LIBRARY.queries():
        if query.order == 0:
            continue
        assert query.title, query.name
        assert query.read, query.name
        assert query.metrics, query.name
        for metric in query.metrics:
            assert len(metric.meaning.split()) > 5, (query.name, metric.column)


def test_every_query_was_timed() -> None:
    """A new one that is slow is seen before it is slow for somebody."""
    table = (REPOSITORY / "tests/docs/query-times.md").read_text(encoding="utf-8")
    timed = re.findall(r"^\| (\w+) \| (?:[\d,]+|not recorded) \|", table, re.MULTILINE)
    assert timed == sorted(query.name for query in _LIBRARY.queries())


def test_variables_are_documented() -> None:
    """Each that the program reads, in a table of one of the pages."""
    texts = [path.read_text() for path in (REPOSITORY / "analyzers").rglob("*.py")]
    read = {name for text in texts for name in re.findall(r'"(WBSCOPE_[A-Z_]+)"', text)}
    assert "WBSCOPE_RUN_DIR" in read
    pages = "".join(page.read_text() for page in (REPOSITORY / "docs").glob("*.md"))
    told = set(re.findall(r"^\| `(WBSCOPE_[A-Z_]+)` \|", pages, re.MULTILINE))
    assert read - told == set()
