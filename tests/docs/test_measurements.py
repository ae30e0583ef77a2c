# SPDX-License-Identifier: Apache-2.0
"""docs/measurements.md has every measurement, as the program knows it."""

from __future__ import annotations

import tomllib

import pytest
from support.runs import REPOSITORY
from wbscope.measure import files

_PAGE = (REPOSITORY / "docs/measurements.md").read_text(encoding="utf-8")
_TOLD = tomllib.loads((REPOSITORY / "analyzers/wbscope/measure/metrics.toml").read_text())


@pytest.mark.parametrize("section", _TOLD)
def test_every_value_is_on_the_page(section: str) -> None:
    for name, entry in _TOLD[section].items():
        better = "" if entry["better"] == "neutral" else f", {entry['better']}"
        row = f"| `{name}` | {entry['unit']}{better} | {entry['meaning']} |"
        assert row in _PAGE, f"write into docs/measurements.md: {row}"


def test_the_page_has_no_other_values() -> None:
    _, _, tables = _PAGE.partition("\n## ")  # the first one is of files
    rows = [line for line in tables.splitlines() if line.startswith("| `")]
    assert len(rows) == sum(len(entries) for entries in _TOLD.values())


@pytest.mark.parametrize("name", files.NAMES)
def test_every_file_is_on_the_page(name: str) -> None:
    assert f"`{name}`" in _PAGE
