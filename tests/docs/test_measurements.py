# SPDX-License-Identifier: Apache-2.0
"""docs/measurements.md has every measurement, as the program knows it."""

from __future__ import annotations

import tomllib
from itertools import groupby
from operator import itemgetter

import pytest
from support.runs import REPOSITORY
from wbscope.measure import files

_PAGE = (REPOSITORY / "docs/measurements.md").read_text(encoding="utf-8")
_TOLD = tomllib.loads((REPOSITORY / "analyzers/wbscope/measure/metrics.toml").read_text())


def _rows(section: str) -> list[str]:
    """A row for each value, or for neighbours that are one thing under several names."""
    rows = []
    entries = _TOLD[section].items()
    for (unit, better, meaning), same in groupby(
        entries, lambda item: itemgetter("unit", "better", "meaning")(item[1])
    ):
        names = ", ".join(f"`{name}`" for name, _ in same)
        told = unit if better == "neutral" else f"{unit}, {better}"
        rows.append(f"| {names} | {told} | {meaning} |")
    return rows


@pytest.mark.parametrize("section", _TOLD)
def test_every_value_is_on_the_page(section: str) -> None:
    for row in _rows(section):
        assert row in _PAGE, f"write into docs/measurements.md: {row}"


def test_the_page_has_no_other_values() -> None:
    _, _, tables = _PAGE.partition("\n## ")  # the first one is of files
    rows = [line for line in tables.splitlines() if line.startswith("| `")]
    assert len(rows) == sum(len(_rows(section)) for section in _TOLD)


@pytest.mark.parametrize("name", files.NAMES)
def test_every_file_is_on_the_page(name: str) -> None:
    assert f"`{name}`" in _PAGE
