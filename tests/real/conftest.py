# SPDX-License-Identifier: Apache-2.0
"""Tests in this folder run on every recorded run: one test for each, named after its folder."""

from __future__ import annotations

import pytest
from support.runs import RecordedRun, all_runs
from support.tools import missing


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "recorded" in metafunc.fixturenames:
        runs: tuple[RecordedRun | None, ...] = all_runs() or (None,)
        metafunc.parametrize("recorded", runs, ids=str, indirect=True, scope="session")


@pytest.fixture(scope="session")
def recorded(request: pytest.FixtureRequest) -> RecordedRun:
    """A recorded run."""
    run = request.param
    if run is None:
        missing("there is no recorded run in examples/ nor in $WBSCOPE_RUNS")
    assert isinstance(run, RecordedRun)
    return run
