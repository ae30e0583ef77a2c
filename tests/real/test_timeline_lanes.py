# SPDX-License-Identifier: Apache-2.0
"""The verdict is asked for while another connection draws: what goes wrong there."""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from support.runs import REPOSITORY
from wbscope.base.errors import QueryError
from wbscope.base.span import parse_span
from wbscope.library.engine import FINDINGS
from wbscope.library.library import Library, load_library
from wbscope.run.run import Run
from wbscope.timeline import plan
from wbscope.timeline.export import write_timeline

_RUN = REPOSITORY / "examples/four-equal-writers"


@pytest.fixture
def library() -> Library:
    return load_library()


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))


def test_each_view_has_one_lane(library: Library) -> None:
    views = [file.name for file in library.timelines()]
    lanes = plan.lanes_of(library, views)
    assert lanes.early
    assert lanes.late
    assert lanes.main
    assert sorted((*lanes.early, *lanes.late, *lanes.main)) == sorted(views)
    for lane in (lanes.early, lanes.late, lanes.main):
        assert sorted(lane, key=views.index) == list(lane)


def test_no_verdict_is_drawn_before_it_is_known(library: Library) -> None:
    lanes = plan.lanes_of(library, [file.name for file in library.timelines()])
    assert FINDINGS not in library.closure(lanes.early)
    assert FINDINGS not in library.closure(lanes.late)


def test_what_lanes_are_told_by_is_in_the_library(library: Library) -> None:
    """A name that is not would leave its lane empty, and nobody would see."""
    for name in (*plan._EARLY, *plan._LATE, *plan._LATE_EARLY, *plan._OF_VERDICT):
        assert name in library.files


def test_what_is_made_ahead_waits_for_no_verdict(library: Library) -> None:
    """And is read: a name that no late timeline needs would be made for nothing."""
    lanes = plan.lanes_of(library, [file.name for file in library.timelines()])
    for names in (lanes.early, lanes.ahead):
        assert set(library.closure(names)).isdisjoint(plan._OF_VERDICT)
    assert set(plan._LATE_EARLY) <= set(lanes.ahead)
    assert set(lanes.ahead) <= set(library.closure(lanes.late))


@pytest.mark.parametrize("part", ["", "1s..3s"], ids=["whole", "part"])
def test_one_connection_draws_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    span = parse_span(None, None, part or None)
    with wbscope.open(_RUN) as run:
        write_timeline(run, tmp_path / "lanes.pftrace", span=span)
        monkeypatch.setattr(plan, "_EARLY", ())
        monkeypatch.setattr(plan, "_LATE", ())
        write_timeline(run, tmp_path / "one.pftrace", span=span)
    assert (tmp_path / "lanes.pftrace").read_bytes() == (tmp_path / "one.pftrace").read_bytes()


@pytest.mark.parametrize("kind", [QueryError, KeyboardInterrupt])
def test_a_verdict_that_fails_ends_the_drawing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    asked = []

    def fail(self: Run, *_: object) -> None:
        asked.append(self)
        raise QueryError("time-limit", "sql", "took too long") if kind is QueryError else kind

    monkeypatch.setattr(Run, "findings", fail)
    with wbscope.open(_RUN) as run, pytest.raises(kind):
        write_timeline(run, tmp_path / "out.pftrace")
    assert len(asked) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
