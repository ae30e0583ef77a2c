# SPDX-License-Identifier: Apache-2.0
"""docs/compare.md names every key of a policy and every fact of a fingerprint."""

from __future__ import annotations

from dataclasses import fields

from support.runs import REPOSITORY
from wbscope.compare.policy import Policy, Rule
from wbscope.compare.sameness import FACTS

_PAGE = (REPOSITORY / "docs" / "compare.md").read_text(encoding="utf-8")
_STATISTICS = (REPOSITORY / "docs" / "statistics.md").read_text(encoding="utf-8")


def test_every_key_of_a_policy() -> None:
    keys = [field.name for one in (Policy, Rule) for field in fields(one)]
    for key in set(keys) - {"rules", "pattern", "source", "is_alone"}:
        assert f"| `{key}` |" in _PAGE


def test_every_fact() -> None:
    for name, meaning in FACTS.items():
        assert f"| `{name}` | {meaning} |" in _PAGE


def test_the_validation_is_there() -> None:
    table = _STATISTICS.partition("<!-- validation -->")[2].partition("<!-- /validation -->")[0]
    assert "`wbscope gate`: FAIL" in table
    assert "](statistics.md)" in _PAGE
