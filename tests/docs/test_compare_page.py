# SPDX-License-Identifier: Apache-2.0
"""docs/compare.md names every key of a policy and every fact of a fingerprint, and the pages on
statistics say what was simulated."""

from __future__ import annotations

import re
from dataclasses import fields
from itertools import chain

from support.runs import REPOSITORY
from wbscope.compare.policy import Policy, Rule
from wbscope.compare.sameness import FACTS

_PAGE = (REPOSITORY / "docs" / "compare.md").read_text(encoding="utf-8")
_STATISTICS = (REPOSITORY / "docs" / "statistics.md").read_text(encoding="utf-8")
_SIMULATED = (REPOSITORY / "tests/unit/stats/simulated.md").read_text(encoding="utf-8")


def test_every_key_of_a_policy() -> None:
    keys = [field.name for one in (Policy, Rule) for field in fields(one)]
    for key in set(keys) - {"rules", "pattern", "source", "is_alone"}:
        assert f"| `{key}` |" in _PAGE


def test_every_fact() -> None:
    for name, meaning in FACTS.items():
        assert f"| `{name}` | {meaning} |" in _PAGE


def test_the_statistics_are_those_of_the_simulation() -> None:
    """A cell of the page is a cell of that row, or the first number of one."""
    rows = _rows(_STATISTICS)
    assert len(rows) == 11
    for name, *cells in rows:
        (*simulated,) = chain.from_iterable(row[1:] for row in _rows(_SIMULATED) if row[0] == name)
        known = {*simulated, *(cell.partition(" / ")[0] for cell in simulated)}
        assert set(cells) <= known, name


def test_what_other_pages_say_of_the_simulation() -> None:
    gate = dict(zip(_row("rule"), _row("**`wbscope gate`: FAIL**"), strict=True))
    false, found = map(float, gate["normal, n = 10"].split(" / "))
    assert f"did not change in {false} of 100 cases" in _words("compare")
    assert f"worse by 10 % in {found:.0f}" in _words("compare")
    drifts = dict(zip(_row("sessions"), _row("1 + 1 sessions of 10"), strict=True))
    for drift in ("3 %", "5 %"):
        fails = drifts[drift].partition(" / ")[0]
        assert re.search(rf"differ by {drift}[ (s.d)]* fail {fails}\b", _words("ci")), drift
    alarms, _, _, _, correlated, drift, _ = _last(2)[1:]
    assert f"{alarms} to 1 false alarms ({drift} to {correlated} where" in _words("history")
    steps = _last(1)
    assert f"{steps[1].partition(' / ')[0]} of 100 steps of 5 %" in _words("history")


def _words(page: str) -> str:
    return " ".join((REPOSITORY / f"docs/{page}.md").read_text(encoding="utf-8").split())


def _rows(text: str) -> list[list[str]]:
    """The cells of the tables' rows that have a name, without their heads."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row] for row in rows]
    return [row for row in cells if row[0] and row[0] not in {"rule", "sessions"}]


def _row(name: str) -> list[str]:
    """The first row of the simulation of that name."""
    lines = (line for line in _SIMULATED.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in next(lines).strip("|").split("|")]


def _last(back: int) -> list[str]:
    """wbscope's row of the last tables of change points: of alarms (2), of steps (1)."""
    rows = [row for row in _rows(_SIMULATED) if row[0].startswith("**wbscope: ruptures")]
    return rows[-1 - back]
