# SPDX-License-Identifier: Apache-2.0
"""Which words of `patch` mean that a kernel series does not fit its source any more."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
from support.runs import REPOSITORY

_PATCHING = "patching file mm/vmscan.c"
# Words of GNU patch 2.7.6; the first are of series/6.12/0001 on 6.12.117.
_OFFSET = "Hunk #6 succeeded at 7599 (offset -12 lines)."
_ONE_LINE = "Hunk #1 succeeded at 9 (offset 1 line)."
_FUZZ = "Hunk #1 succeeded at 8 with fuzz 1."
_FUZZ_AND_OFFSET = "Hunk #1 succeeded at 9 with fuzz 1 (offset 1 line)."


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = REPOSITORY / "tools/kernel_build.py"
    spec = importlib.util.spec_from_file_location("kernel_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "kernel_build", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("fetched", "line", "wrong"),
    [
        ("6.12.107-1", _PATCHING, False),
        ("6.12.107-1", _OFFSET, True),
        ("6.12.117-1", _OFFSET, False),
        ("6.12.117-1", _ONE_LINE, False),
        ("6.12.117-1", _FUZZ, True),
        ("6.12.117-1", _FUZZ_AND_OFFSET, True),
        # An older one, and another series.
        ("6.12.90-1", _OFFSET, True),
        ("6.13.2-1", _OFFSET, True),
    ],
)
def test_only_a_newer_stable_release_may_move_lines(
    tool: ModuleType, fetched: str, line: str, wrong: bool
) -> None:
    assert tool.misplaced([line], "6.12.107-1", fetched) == ([line] if wrong else [])


def test_each_cover_letter_names_its_source(tool: ModuleType) -> None:
    made = {series: tool.made_for(series) for series in tool.SERIES}
    assert made == {"6.1": "6.1.176-1", "6.12": "6.12.107-1", "7.2": "7.2.13-1"}
