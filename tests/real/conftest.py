# SPDX-License-Identifier: Apache-2.0
"""Tests in this folder run on every recorded run: one test for each, named after its folder."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from support.runs import RecordedRun, all_runs
from support.tools import missing
from wbscope.library.steps import Steps


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


@pytest.fixture
def makes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that workers make."""
    names: list[str] = []
    make = Steps._make

    def note(self: Steps, connection: sqlite3.Connection, definitions: Any, name: str, *of: Any):
        names.append(name)
        make(self, connection, definitions, name, *of)

    monkeypatch.setattr(Steps, "_make", note)
    return names
