# SPDX-License-Identifier: Apache-2.0
"""Each habit of habits.md names a test, and the test is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from support.runs import REPOSITORY

_TESTS = REPOSITORY / "tests"
_PAGE = (_TESTS / "docs" / "habits.md").read_text(encoding="utf-8")
_TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)(?:\[(.+?)\])?`")
_HEADS = ("habit", "---")


def _rows() -> list[list[str]]:
    """The cells of every row of the page's tables."""
    lines = [line for line in _PAGE.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in rows if not row[0].startswith(_HEADS)]


def _functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("file", "name", "case"), sorted(set(_TEST.findall(_PAGE))))
def test_the_test_is_there(file: str, name: str, case: str) -> None:
    path = _TESTS / file
    assert name in _functions(path)
    # A case is called as the text that stands for it in the file.
    assert not case or f'"{case}": ' in path.read_text(encoding="utf-8")


def test_what_works_is_shown() -> None:
    assert len(_rows()) == 56
    for row in _rows():
        assert _TEST.search(row[-1]), row
        assert len(row) == 2, row
