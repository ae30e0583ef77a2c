# SPDX-License-Identifier: Apache-2.0
"""Each habit of docs/habits.md that works names a test, and the test is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from support.runs import REPOSITORY

_TESTS = REPOSITORY / "tests"
_PAGE = (REPOSITORY / "docs" / "habits.md").read_text(encoding="utf-8")
_TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)(?:\[(.+?)\])?`")
_HEADS = ("habit", "mistake", "---")


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
    assert len(_rows()) > 60
    for row in _rows():
        if row[2].startswith("no: "):
            continue  # told, with what does it
        assert _TEST.search(row[-1]), row
        assert len(row) == 3 or row[2].startswith(("works", "an error in ")), row


def test_every_mistake_is_on_the_page() -> None:
    named = {case for file, name, case in _TEST.findall(_PAGE) if name == "test_the_fix_works"}
    text = (_TESTS / "unit/analyzers/test_fix_lines.py").read_text(encoding="utf-8")
    assert set(re.findall(r'^    "(.+)": Mistake\($', text, re.MULTILINE)) == named - {""}
