# SPDX-License-Identifier: Apache-2.0
"""What is told first: more than chance, and that events are missing."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden.lost_events import case as lost_events
from golden.throttle_loop import case as whole
from golden.truncated_v6 import case as truncated
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, mannwhitneyu
from support.properties import for_all
from support.rundata import (
    LEVEL,
    RATE,
    TIME,
    compare_markdown,
    compare_text,
    glance_text,
    metric,
    side,
)
from wbscope.compare.comparison import Comparison, compare_sides
from wbscope.compare.ranking import FALSE_SHARE, looked_through, matter_most, tally
from wbscope.measure.metric import Metric
from wbscope.render.compare import is_short
from wbscope.stats.tests import false_discovery

# Many rows at once: what is more than chance, what counts, what is told first.

OLD = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0]
SLOW = [value * 1.3 for value in OLD]


def compared(values: dict[Metric, tuple[list[float], list[float]]]) -> Comparison:
    """Values are those of A and of B."""
    a = side("A", {one: pair[0] for one, pair in values.items()})
    b = side("B", {one: pair[1] for one, pair in values.items()})
    return looked_through(compare_sides(b, [a]))


def noise(count: int, seed: int = 1) -> dict[Metric, tuple[list[float], list[float]]]:
    """Metrics in which nothing changed."""
    made = random.Random(seed)
    draw = [[made.gauss(100, 10) for _ in range(6)] for _ in range(2 * count)]
    names = [metric(f"noise.m{i}_ns", "lower", "ns") for i in range(count)]
    return {one: (draw[2 * i], draw[2 * i + 1]) for i, one in enumerate(names)}


@for_all(60, p=st.lists(st.floats(0, 1) | st.sampled_from((0.01, 1.0)), min_size=1, max_size=60))
def test_q_is_that_of_benjamini_and_hochberg(p: list[float]) -> None:
    assert false_discovery(p) == pytest.approx(list(false_discovery_control(p)))
    assert false_discovery([]) == []


def test_what_would_be_found_alone_may_be_chance_among_many() -> None:
    alone = compared({TIME: (SLOW, OLD)})
    assert [row.outcome for row in alone.rows] == ["worse"]
    assert alone.rows[0].q == alone.rows[0].shift.p  # type: ignore[union-attr]
    dull = {one: pair for one, pair in noise(200).items() if mannwhitneyu(*pair).pvalue > 0.2}
    many = compared({TIME: (SLOW, OLD), **dict(list(dull.items())[:90])})
    row = next(row for row in many.rows if row.metric == TIME)
    assert row.outcome == "undecided"
    assert row.q is not None
    assert row.q > FALSE_SHARE
    assert "may be chance among 91 metrics" in row.reason


def _slightly_moved(count: int) -> dict[Metric, tuple[list[float], list[float]]]:
    """Surely slower, by 2 %, which is within the margin: each in an order of its own."""
    made = random.Random(11)
    near = [100 + 0.1 * i for i in range(10)]
    names = [metric(f"small.m{i}_ns", "lower", "ns") for i in range(count)]
    slower = [value * 1.02 for value in near]
    return {one: (made.sample(slower, 10), made.sample(near, 10)) for one in names}


def test_what_has_no_mark_makes_none_of_others() -> None:
    """60 metrics that surely moved by 2 % are no discoveries: the rest is as without them."""
    small = _slightly_moved(60)
    marked = 0
    for seed in range(20):
        made = random.Random(seed)
        names = [metric(f"noise.m{i}_ns", "lower", "ns") for i in range(100)]
        dull = {
            one: tuple([made.gauss(100, 10) for _ in range(10)] for _ in range(2)) for one in names
        }
        found = compared({**small, **dull})  # type: ignore[dict-item]
        outcomes = {row.metric: row.outcome for row in found.rows}
        assert {outcomes[one] for one in small} == {"same"}
        marked += any(row.is_sure for row in found.rows)
    assert marked <= 4  # 2 are promised; without that it is 18


def test_an_interval_that_touches_no_change_makes_no_mark_of_others() -> None:
    """With ties p may be small where the interval ends at no change."""
    touching = metric("ticks.late_count", "lower", "count")
    found = compared({touching: ([0.0, *[1.0] * 5], [0.0] * 6), TIME: (SLOW, OLD)})
    rows = {row.metric: row for row in found.rows}
    shift = rows[touching].shift
    assert shift is not None
    assert (shift.p < 0.02, shift.low, rows[touching].outcome) == (True, 0, "undecided")
    assert rows[touching].q == 1
    assert rows[TIME].q == pytest.approx(2 * 2 / 924)


def test_false_marks_are_few() -> None:
    """Nothing changed: a table of 60 metrics with any mark is rare, 9 in 10 have none."""
    marked = sum(any(row.is_sure for row in compared(noise(60, seed)).rows) for seed in range(100))
    assert marked <= 10


def test_rows_of_one_order_are_one_test() -> None:
    """Twenty names of one fact do not make its evidence weaker."""
    same = {metric(f"fio.t{i}_ns", "lower", "ns"): (SLOW, OLD) for i in range(20)}
    found = compared({**same, RATE: ([1 / value for value in SLOW], [1 / value for value in OLD])})
    assert {round(row.q or 0, 9) for row in found.rows} == {round(2 / 924, 9)}
    slower, less = matter_most(found.rows, 10)
    # Both are worse, and still one rises while the other falls.
    assert (len(slower.alike), less.row.metric, less.alike) == (19, RATE, ())


def keyed(values: dict[str, tuple[float, float]]) -> dict[Metric, tuple[list[float], list[float]]]:
    """One metric with keys, of one run each."""
    return {
        metric(f"disk.latency_ns[op={op}]", "lower", "ns"): ([new], [old])
        for op, (new, old) in values.items()
    }


def test_of_one_run_each_only_what_moves_the_same_way_is_alike() -> None:
    found = compared(
        keyed({"read": (5.0, 0.4), "write": (0.8, 1.8), "flush": (11.9, 13.9), "trim": (9.0, 1.0)})
    )
    told = {one.row.metric.name: one.alike for one in matter_most(found.rows, 10)}
    assert {name: [row.metric.name for row in alike] for name, alike in told.items()} == {
        "disk.latency_ns[op=read]": ["disk.latency_ns[op=trim]"],
        "disk.latency_ns[op=write]": ["disk.latency_ns[op=flush]"],
    }


def test_with_a_test_only_one_verdict_and_one_way_is_alike() -> None:
    fast = [value / 1.3 for value in OLD]
    neutral = [metric(f"dirty.level_ns[kind={kind}]", "neutral") for kind in ("up", "down")]
    found = compared(
        {neutral[0]: (SLOW, OLD), neutral[1]: (fast, OLD), TIME: (SLOW, OLD), RATE: (fast, OLD)}
    )
    for one in matter_most(found.rows, 10):
        for row in one.alike:
            assert row.outcome == one.row.outcome
    names = [[one.row, *one.alike] for one in matter_most(found.rows, 10)]
    assert sorted(len(rows) for rows in names) == [1, 1, 1, 1]


def test_one_run_each_is_never_said_to_be_tested() -> None:
    found = compared({**keyed({f"k{i}": (2.0 + i, 1.0) for i in range(12)}), TIME: ([3.0], [1.0])})
    for text in (glance_text(found), compare_text(found), compare_markdown(found)):
        words = " ".join(text.split())
        assert "No test is possible with one run each" in words
        for untrue in ("Mann-Whitney", "Benjamini-Hochberg", "Hodges-Lehmann", ":) better"):
            assert untrue not in words
    assert "Listed are the largest changes" in " ".join(glance_text(found).split())
    assert glance_text(found).startswith("A against B: no test is possible with one run each: ")


def test_few_runs_are_told_what_to_do() -> None:
    text = glance_text(compared({TIME: (SLOW[:2], OLD[:2])}))
    told = "A against B: so few runs tell no change from chance: make 6 or more of each."
    assert text.splitlines()[0] == told


def test_the_verdict_of_each_side_is_first() -> None:
    base, *others = (side(name, {TIME: values}) for name, values in
                     (("old", OLD), ("slow", SLOW), ("same", OLD[::-1])))  # fmt: skip
    found = looked_through(compare_sides(base, others))
    for text in (glance_text(found), compare_text(found)):
        assert text.splitlines()[:3] == [
            "slow against old: worse.",
            "same against old: the same, within 5 %.",
            "slow: 6 runs, same: 6 runs, old: 6 runs; warnings below: unknown facts.",
        ]


def test_keys_of_a_metric_are_told_once() -> None:
    keys = [metric(f"fio.bw_ns[job={job}]", "lower", "ns") for job in ("a", "b")]
    slower = [value + i for i, value in enumerate(reversed(SLOW))]
    found = compared(
        {keys[0]: (SLOW, OLD), keys[1]: (slower, OLD), TIME: (SLOW[3:] + SLOW[:3], OLD)}
    )
    told = matter_most(found.rows, 10)
    assert sorted(len(one.alike) for one in told) == [0, 1]


def test_the_surest_and_largest_come_first() -> None:
    weak = [value * 1.06 for value in OLD]
    found = compared({TIME: (weak, OLD), RATE: (SLOW[::-1], OLD), LEVEL: (SLOW, OLD)})
    # What has no direction is last, however large.
    assert [one.row.metric.better for one in matter_most(found.rows, 10)][-1] == "neutral"
    assert matter_most(found.rows, 1)[0].row.metric == RATE


def test_the_counts_are_of_all_metrics() -> None:
    constant = metric("some.pages_count", "lower", "count")
    found = compared({TIME: (SLOW, OLD), RATE: (SLOW, OLD), constant: ([7.0] * 6, [7.0] * 6)})
    counted = tally(found.rows, found.alpha)
    assert (counted.of("worse"), counted.of("better"), counted.of("same")) == (1, 1, 1)
    assert (counted.constant, counted.all) == (1, 3)


def test_a_glance_is_a_screen() -> None:
    slow = {metric(f"slow.m{i}_ns", "lower", "ns"): pair for i, pair in enumerate(_shuffled(30))}
    found = compared({**slow, **noise(60)})
    assert not is_short(found)
    text = glance_text(found)
    lines = text.splitlines()
    assert lines[0] == "A against B: worse."
    assert re.search(r"worse 3\d, better \d, same \d+, undecided \d+", text)
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith(":( ") for line in lines) == 10
    assert "All metrics: --full" in text
    page = compare_markdown(found, full=False)
    assert page.count("| :( |") == 10
    assert compare_markdown(found, full=True).count("| :( |") >= 30


def test_nothing_found_is_not_nothing_there() -> None:
    text = " ".join(glance_text(compared(noise(60, 4))).split())
    assert "no significant change, which does not prove that there is none" in text


def _shuffled(count: int) -> list[tuple[list[float], list[float]]]:
    """Each in an order of its own, so that each is a fact of its own."""
    made = random.Random(7)
    return [(made.sample(SLOW, 6), made.sample(OLD, 6)) for _ in range(count)]


def test_nothing_in_common_is_said() -> None:
    found = looked_through(compare_sides(side("B", {TIME: OLD}), [side("A", {RATE: OLD})]))
    text = glance_text(found)
    assert "A against B: no metric of both can be compared." in text
    assert "one run each" not in text


def test_single_runs_that_stall_are_named() -> None:
    """Three of twenty runs take ten times as long: no middle moves, and nobody may miss it."""
    made = random.Random(3)
    base = [made.gauss(10, 0.1) for _ in range(20)]
    new = [*(made.gauss(10, 0.1) for _ in range(17)), 100.0, 101.0, 102.0]
    text = " ".join(glance_text(compared({TIME: (new, base)})).split())
    assert "worse 0, better 0" in text
    assert (
        "outliers against B: A17 (time.elapsed_ns), A18 (time.elapsed_ns), A19"
        " (time.elapsed_ns)." in text
    )
    calm = glance_text(compared({TIME: (base[::-1], base)}))
    assert "outlier" not in calm
    # What is marked says it already.
    slow = glance_text(compared({TIME: ([value * 3 for value in base], base)}))
    assert "outlier" not in slow


# What keeps the numbers of a run says, before anything else, that events are missing in them.

Cli = Callable[..., Any]
AT = ("--commit", "c1", "--date", "2026-01-01")
KEPT = [
    ("baseline", "save", "RUN", "-o", "OUT", "--allow-damaged"),
    ("history", "add", "OUT", "RUN", *AT, "--allow-damaged"),
]


@pytest.fixture
def run_of(tmp_path: Path) -> Callable[[Any], Path]:
    def make(case: Any) -> Path:
        folder = tmp_path / "run"
        folder.mkdir()
        case.make(folder)
        return folder

    return make


@pytest.fixture
def lost(cli: Cli, run_of: Callable[[Any], Path]) -> tuple[Path, str]:
    """A run of which the golden case counts 23 events by hand, and what a question says of it."""
    run = run_of(lost_events)
    asked = cli("query", "throttle_by_task", run, "--json").document()
    told = {one["slug"]: one["message"] for one in asked["warnings"]}["lost-events"]
    assert "23 events" in told
    return run, told


def _filled(words: tuple[str, ...], run: Path) -> list[object]:
    places = {"RUN": run, "OUT": run.parent / "out"}
    return [places.get(word, word) for word in words]


@pytest.mark.parametrize("words", KEPT, ids=lambda words: " ".join(words[:2]))
def test_lost_events_are_told(cli: Cli, lost: tuple[Path, str], words: tuple[str, ...]) -> None:
    run, told = lost
    ran = cli(*_filled(words, run))
    first, _ = ran.err.splitlines()
    assert (ran.code, ran.out, first) == (0, "", f"warning[lost-events]: run: {told}")
    (run.parent / "out").unlink()
    document = cli(*_filled(words, run), "--json").document()
    assert document["warnings"] == [{"run": "run", "slug": "lost-events", "message": told}]


@pytest.mark.parametrize("words", KEPT, ids=lambda words: " ".join(words[:2]))
def test_damage_is_told(cli: Cli, run_of: Callable[[Any], Path], words: tuple[str, ...]) -> None:
    ran = cli(*_filled(words, run_of(truncated)))
    assert (ran.code, ran.err.startswith("warning[damaged-trace]: run: ")) == (0, True)
    assert "96 of 4096 bytes" in ran.err.splitlines()[0]


def test_ingest_tells_what_questions_will(cli: Cli, lost: tuple[Path, str]) -> None:
    run, told = lost
    output = run.parent / "out.db"
    ran = cli("ingest", run, "-o", output)
    assert ran.err.splitlines()[0] == f"warning[lost-events]: {told}"
    with sqlite3.connect(output) as database:
        gaps = database.execute("SELECT count(*), sum(count) FROM lost_events").fetchone()
    assert gaps == (2, 23)
    document = cli("ingest", run, "-o", output, "--force", "--json").document()
    asked = cli("query", "throttle_by_task", output, "--json").document()
    assert document["warnings"] == [{"slug": "lost-events", "message": told}]
    assert document["warnings"][0] in asked["warnings"]


def test_ingest_tells_damage_once_and_no_part_that_was_asked_for(
    cli: Cli, run_of: Callable[[Any], Path]
) -> None:
    run = run_of(truncated)
    told = cli("ingest", run, "-o", run.parent / "out.db").err.splitlines()
    places = [line for line in told if line.startswith("warning[damaged-trace]: ")]
    # A line for each of two places, as the reader tells them.
    assert [
        (line.count("file offset 0x2000"), line.count("file offset 0x3000")) for line in places
    ] == [(1, 0), (0, 1)]
    part = cli("ingest", run, "-o", run.parent / "part.db", "--limit", "1")
    assert (part.code, "part-of-trace" in part.err) == (0, False)


def test_a_whole_run_is_kept_without_a_word(cli: Cli, run_of: Callable[[Any], Path]) -> None:
    run = run_of(whole)
    for words in KEPT:
        assert "lost-events" not in cli(*_filled(words, run)).err
        (run.parent / "out").unlink()
    assert "lost-events" not in cli("ingest", run, "-o", run.parent / "out").err


def test_a_merged_baseline_says_whose_events_are_lost(cli: Cli, lost: tuple[Path, str]) -> None:
    run, told = lost
    saved, merged = run.parent / "a.json", run.parent / "b.json"
    assert cli("baseline", "save", run, "-o", saved).code == 0
    ran = cli("baseline", "merge", saved, "-o", merged)
    first, _ = ran.err.splitlines()
    assert first == f"warning[lost-events]: run: {told}"
    document = cli("baseline", "merge", saved, "-o", merged, "--force", "--json").document()
    assert document["rows"] == [{"output": str(merged), "runs_count": 1, "metrics_count": 32}]
    assert document["warnings"] == [{"run": "run", "slug": "lost-events", "message": told}]


def test_a_history_says_what_came_of_each_run(cli: Cli, run_of: Callable[[Any], Path]) -> None:
    run = run_of(whole)
    words = ("history", "add", run.parent / "h.db", run)
    first = cli(*words, *AT, "--json").document()
    again = cli(*words, "--commit", "c2", "--date", "2026-01-02", "--json").document()
    assert [(d["added_count"], d["known_count"]) for d in (first, again)] == [(1, 0), (0, 1)]
    (row,) = again["rows"]
    assert (row["run"], row["outcome"], row["commit"]) == ("run", "known", "c1")
    assert again["commit"] == "c2"
