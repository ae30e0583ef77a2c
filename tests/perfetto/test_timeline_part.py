# SPDX-License-Identifier: Apache-2.0
"""`timeline` of a part of the time: the tracks of the whole run, cut, and the events in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.cli import Wbscope, check_error
from support.perfetto_engine import PerfettoEngine
from support.runs import example
from support.timeline import ROOT, Slice, engine_counters, engine_slices

NAMES = ["deep", "four-equal-writers"]
PART = (1_000_000_000, 2_500_000_000)


def drawn(wbscope: Wbscope, run: Path, output: Path, *options: str) -> PerfettoEngine:
    done = wbscope.run("timeline", run, "-o", output, *options)
    assert done.returncode == 0, done.stderr
    engine = PerfettoEngine()
    engine.load(output)
    return engine


def without_advice(slices: list[Slice]) -> list[Slice]:
    return sorted(
        replace(one, args=tuple(arg for arg in one.args if arg[0] != "advice"))
        for one in slices
        if one.track != ROOT
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_part_of_the_time(wbscope: Wbscope, name: str, tmp_path: Path) -> None:
    run = example(name).folder
    (row,) = wbscope.sql(run, "SELECT value FROM meta WHERE key = 'first_ts'")
    t0, t1 = (int(row["value"]) + ns for ns in PART)
    options = ("--time-range", "1s..2500ms")
    with (
        drawn(wbscope, run, tmp_path / "whole.pftrace") as whole,
        drawn(wbscope, run, tmp_path / "part.pftrace", *options) as part,
    ):
        # Verdict and advice are those of the part: the next test.
        slices = without_advice(engine_slices(whole))
        cut = [s for s in slices if s.ts < t1 and (s.ts >= t0 or s.ts + s.dur > t0)]
        assert without_advice(engine_slices(part)) == cut
        assert 0 < len(cut) < len(slices)
        assert any(s.ts < t0 for s in cut)
        counters = engine_counters(whole)
        cut_counters = {c for c in counters if t0 <= c.ts < t1}
        found = engine_counters(part)
        shown = {c.track for c in cut_counters if c.value}  # one that is 0 is left out
        assert {c for c in cut_counters if c.track in shown} <= set(found)
        assert 0 < len(cut_counters) < len(counters)
        for sample in set(found) - cut_counters:  # as before: left out where the curve goes on
            before = [c for c in counters if c.track == sample.track and c.ts < t0]
            assert t0 <= sample.ts < t1
            assert before[-1].value == sample.value
        find = "SELECT ts, name, cpu FROM ftrace_event ORDER BY ts, name, cpu"
        events = whole.table(find)[1]
        assert part.table(find)[1] == [e for e in events if t0 <= e[0] < t1]  # type: ignore[operator]
        assert len(events) > 1000
        broken = "SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
        assert part.table(broken)[1] == whole.table(broken)[1]
    sizes = [(tmp_path / f"{name}.pftrace").stat().st_size for name in ("part", "whole")]
    assert sizes[0] < sizes[1] / 2


def told(wbscope: Wbscope, run: Path, *options: str) -> set[str]:
    """The first findings, but for those that only give numbers."""
    rows = wbscope.query("findings", run, *options)[:3]
    return {row["text"] for row in rows if row["severity"] in ("severe", "warning", "ok")}


@pytest.mark.parametrize("part", [("1s", "2500ms"), ("1s", None), (None, "2500ms")], ids=str)
def test_the_verdict_is_that_of_the_part(
    wbscope: Wbscope, part: tuple[str | None, str | None], tmp_path: Path
) -> None:
    """As long as the part, or the UI would show the whole time."""
    run = example("deep").folder
    meta = {row["key"]: row["value"] for row in wbscope.sql(run, "SELECT key, value FROM meta")}
    options = [
        word
        for option, at in zip(("--from", "--to"), part, strict=True)
        if at is not None
        for word in (option, at)
    ]
    wanted = told(wbscope, run, *options)
    assert wanted != told(wbscope, run)
    with drawn(wbscope, run, tmp_path / "x.pftrace", *options, "--no-events") as engine:
        found = [one for one in engine_slices(engine) if one.track == ROOT]
    # "warning: TEXT (inferred)", and what to do.
    texts = {
        one.name.partition(": ")[2].removesuffix(" (inferred)")
        for one in found
        if not one.name.startswith("to do: ")
    }
    assert texts == wanted
    start = int(meta["first_ts"]) + (PART[0] if part[0] else 0)
    end = int(meta["first_ts"]) + PART[1] if part[1] else int(meta["last_ts"])
    assert {(one.ts, one.ts + one.dur) for one in found} == {(start, end)}


def test_a_part_without_events(wbscope: Wbscope, tmp_path: Path) -> None:
    run = example("four-equal-writers").folder
    output = tmp_path / "part.pftrace"
    with drawn(wbscope, run, output, "--from", "16s", "--no-events") as part:
        assert part.table("SELECT count(*) FROM ftrace_event")[1] == [(0,)]
        assert part.table("SELECT count(*) > 0 FROM counter")[1] == [(1,)]
    done = wbscope.run("timeline", run, "-o", output, "--from", "1h", "--force")
    assert done.returncode == 2
    check_error(done.stderr, "empty-range", "--from 1h")


def test_any_name_of_the_output(wbscope: Wbscope, tmp_path: Path) -> None:
    """Nothing is made beside it, and a file of another stays."""
    run, part = example("four-equal-writers").folder, ("--from", "1s", "--to", "2s")
    other = tmp_path / "x.pftrace.events"
    other.write_text("somebody else's")
    outputs = [tmp_path / name for name in ("events.pftrace", "x.pftrace")]
    for output in outputs:
        done = wbscope.run("timeline", run, "-o", output, *part)
        assert done.returncode == 0, done.stderr
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    assert other.read_text() == "somebody else's"
    assert sorted(tmp_path.iterdir()) == sorted([*outputs, other])
