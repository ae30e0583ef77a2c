# SPDX-License-Identifier: Apache-2.0
"""tools/changepoints.py: the series that libraries are compared by, and the page's real runs."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = spec_from_file_location("changepoints_tool", ROOT / "tools" / "changepoints.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_same_series_at_each_run(tool: ModuleType) -> None:
    for noise, steps in tool.STEPS.values():
        (one, places), (again, _), (other, _) = (
            tool.drawn(noise, steps, seed) for seed in (3, 3, 4)
        )
        assert np.array_equal(one, again)
        assert not np.array_equal(one, other)
        assert all(5 <= place <= 26 for place in places)


def test_steps_are_where_they_are_said_to_be(tool: ModuleType) -> None:
    noise, steps = tool.STEPS["10 %, and back"]
    drawn = [tool.drawn(noise, steps, seed)[0] for seed in range(200)]
    levels = np.mean(drawn, axis=0) / 100
    wanted = [1.0] * 10 + [1.1] * 10 + [1.0] * 10
    assert levels == pytest.approx(wanted, abs=0.006)  # 2 % / sqrt(200), four times


def test_judged_by_points_that_are_known(tool: ModuleType) -> None:
    told: dict[str, Any] = tool.judged(lambda _values: [26, 3])
    assert set(told["alarms"].values()) == {100}
    assert told["found"]["10 %, last 4"] == (100, 0.0, 100)
    assert tool.judged(lambda _values: [])["found"]["10 %"] == (0, None, 0)


def test_the_page_says_of_the_real_runs_what_is_found(tool: ModuleType) -> None:
    (points,) = tool.methods("wbscope").values()
    found = [", ".join(map(str, points(values))) for _, values in tool.real()]
    page = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| **wbscope")]
    row = rows[-1]  # of the last table
    assert [cell.strip() for cell in row.split("|")[2:5]] == found
