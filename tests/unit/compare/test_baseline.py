# SPDX-License-Identifier: Apache-2.0
"""Baselines, bases of several kernels, and copies of a run in them."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from support.cli import check_error
from support.opsruns import ops_runs
from support.rundata import LEVEL, TIME, WRITES, lost, metric, run
from wbscope.base.errors import InputError, UsageError
from wbscope.compare.baseline import baseline_text, is_baseline, merged, read_baseline
from wbscope.compare.comparison import TOO_FEW, Side
from wbscope.compare.gate import judge
from wbscope.compare.history import Place, add_runs, read_history
from wbscope.compare.policy import Margin, Policy, Rule
from wbscope.compare.rundata import RunData
from wbscope.compare.sameness import copies_within
from wbscope.measure.metric import Metric

# A baseline file gives back what was saved, and is refused when it is not whole.


def _runs() -> list[RunData]:
    zeros = {"reclaim_writes.pages_count": 0.0, "stalls_by_task.total_ns": 0.0}
    return [
        run("one", {TIME: 912.5, LEVEL: None, WRITES: 667839}, zeros=zeros,
            definitions={"reclaim_writes": "abc"}, **lost()),
        run("two", {TIME: -0.1, LEVEL: 0.25}, facts={"hz": 1000, "device": None},
            zeros={"reclaim_writes.pages_count": 0.0}, definitions={"reclaim_writes": "abc"},
            lacking={"stalls_by_task": "needs an event"}),
    ]  # fmt: skip


def _saved(path: Path, runs: list[RunData]) -> Path:
    path.write_text(baseline_text(runs))
    return path


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    before = _runs()
    after = read_baseline(_saved(tmp_path / "b.json", before))
    for old, new in zip(before, after, strict=True):
        assert (new.name, new.source_id, new.warnings) == (old.name, old.source_id, old.warnings)
        assert dict(new.fingerprint) == dict(old.fingerprint)
        for one in (TIME, LEVEL, WRITES):
            assert new.value(one.name) == old.value(one.name)
            assert new.scalars[one.name][0] == one
        assert new.value("stalls_by_task.total_ns[kind=x]") == old.value(
            "stalls_by_task.total_ns[kind=x]"
        )
    assert after[0].value("stalls_by_task.total_ns[kind=x]") == 0
    assert after[1].value("stalls_by_task.total_ns[kind=x]") is None
    assert after[0].definitions == {"reclaim_writes": "abc"}


def test_it_is_made_for_git(tmp_path: Path) -> None:
    path = _saved(tmp_path / "b.json", _runs())
    assert is_baseline(path)
    lines = path.read_text().splitlines()
    assert sum('"time.elapsed_ns"' in line for line in lines) == 1
    assert baseline_text(read_baseline(path)) == path.read_text()
    assert "667839," in path.read_text()


def test_several_files_as_one(tmp_path: Path) -> None:
    first, second = _runs()
    found = merged([("a.json", [first]), ("b.json", [second])])
    assert [one.name for one in found] == ["one", "two"]
    with pytest.raises(UsageError) as caught:
        merged([("a.json", [first]), ("b.json", [first])])
    assert caught.value.slug == "same-recording"
    other = run("three", {TIME: 1}, definitions={"reclaim_writes": "xyz"})
    with pytest.raises(UsageError) as caught:
        merged([("a.json", [first]), ("b.json", [other])])
    assert caught.value.slug == "other-definition"


def _damage(document: dict[str, Any], kind: str) -> Any:
    metrics = document["metrics"]["time.elapsed_ns"]
    match kind:
        case "values":
            metrics["values"] = [1]
        case "text":
            metrics["values"] = ["x", 1]
        case "bool":
            metrics["values"] = [True, 1]
        case "better":
            metrics["better"] = "smaller"
        case "unit":
            del metrics["unit"]
        case "metrics":
            document["metrics"] = []
        case "runs":
            document["runs"] = [1, 2]
        case "facts":
            document["fingerprint"] = {"hz": [1]}
            document["runs"][0]["fingerprint"] = {"hz": [1]}
        case "zeros":
            document["zeros"] = 5
        case "name":
            document["metrics"] = {"a b": metrics}
        case "list":
            return [document]
        case "warnings":
            document["runs"][0]["warnings"] = [5]
    return document


@pytest.mark.parametrize(
    "kind",
    ["values", "text", "bool", "better", "unit", "metrics", "runs", "facts", "zeros", "name",
     "warnings"],
)  # fmt: skip
def test_a_file_that_somebody_edited(tmp_path: Path, kind: str) -> None:
    document = json.loads(baseline_text(_runs()))
    path = tmp_path / "b.json"
    path.write_text(json.dumps(_damage(document, kind)))
    with pytest.raises(InputError) as caught:
        read_baseline(path)
    assert (caught.value.slug, caught.value.exit_code) == ("damaged-baseline", 3)


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("", "damaged-baseline"),
        ("{", "damaged-baseline"),
        ("[" * 100_000, "damaged-baseline"),
        ("{}", "baseline-version"),
        ("[]", "baseline-version"),
        ('{"schema": "wbscope.baseline/2"}', "baseline-version"),
        ('{"schema": "wbscope.baseline/1"}', "damaged-baseline"),
    ],
)
def test_other_files(tmp_path: Path, text: str, slug: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_baseline(path)
    assert caught.value.slug == slug


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    whole = baseline_text(_runs())
    path = tmp_path / "b.json"
    for size in range(0, len(whole.rstrip()) - 1, 7):
        path.write_text(whole[:size])
        with pytest.raises(InputError):
            read_baseline(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert not is_baseline(tmp_path / "none")
    with pytest.raises(InputError) as caught:
        read_baseline(tmp_path / "none")
    assert caught.value.slug == "cannot-read"


def test_a_run_that_was_not_asked_has_no_zero(tmp_path: Path) -> None:
    """A file with stalls and one without: nothing is known of the second's stalls."""
    asked = run("one", {TIME: 1}, zeros={"stalls.total_ns": 0.0}, definitions={"stalls": "s"})
    other = run("two", {TIME: 2}, definitions={"fairness": "f"})
    saved = [
        (name, read_baseline(_saved(tmp_path / name, [one])))
        for name, one in (("a.json", asked), ("b.json", other))
    ]
    both = read_baseline(_saved(tmp_path / "both.json", list(merged(saved))))
    assert [one.value("stalls.total_ns[kind=x]") for one in both] == [0, None]
    assert [dict(one.definitions) for one in both] == [{"stalls": "s"}, {"fairness": "f"}]


@pytest.mark.parametrize("other", [metric("ops.mc", unit="kops/s"), metric("ops.mc", "higher")])
def test_one_name_with_two_meanings_is_not_saved(other: Metric) -> None:
    """Else 22 kops/s would stand beside 22000 ops/s, and a fall to 1100 would be a gain."""
    mine, theirs = run("one", {metric("ops.mc"): 22000}), run("two", {other: 22})
    for save in (
        lambda: baseline_text([mine, theirs]),
        lambda: merged([("a.json", [mine]), ("b.json", [theirs])]),
    ):
        with pytest.raises(UsageError) as caught:
            save()
        assert (caught.value.slug, caught.value.subject) == ("other-meaning", "ops.mc")


@pytest.mark.parametrize("number", ["1" * 401, "1e101", "-1e300"])
def test_a_number_that_nothing_measures(tmp_path: Path, number: str) -> None:
    path = _saved(tmp_path / "b.json", [run("one", {TIME: 912.5})])
    path.write_text(path.read_text().replace("912.5", number))
    with pytest.raises(InputError) as caught:
        read_baseline(path)
    assert caught.value.slug == "damaged-baseline"


@pytest.mark.parametrize("place", ["metric", "run", "fact"])
def test_half_a_character_is_damage(tmp_path: Path, place: str) -> None:
    """JSON can say it, and nothing can write or print it; a whole pair is a sign like others."""
    texts = {"metric": "time.elapsed_ns", "run": '"one"', "fact": "6.1.0"}
    text = _saved(tmp_path / "b.json", _runs()).read_text()
    old = texts[place]
    for half in (r"\ud83d", r"\uDE00", r"\ude00\ud83d"):
        (tmp_path / "b.json").write_text(text.replace(old, old[:3] + half + old[3:]))
        with pytest.raises(InputError) as caught:
            read_baseline(tmp_path / "b.json")
        assert (caught.value.slug, caught.value.exit_code) == ("damaged-baseline", 3)
        assert "half of a character" in caught.value.message
        str(caught.value).encode()
    whole = text.replace(old, old[:3] + r"\ud83d\ude00" + old[3:])
    (tmp_path / "b.json").write_text(whole)
    assert len(read_baseline(tmp_path / "b.json")) == 2


# A base of several kernels: judged where the policy lets kernels differ, else refused.

FIVE = Margin("5%", 0.05)


def _side(name: str, kernels: list[str], level: float = 100.0) -> Side:
    runs = [
        run(f"{name}{n}", {TIME: level + n}, facts={"kernel": kernel, "fields": kernel})
        for n, kernel in enumerate(kernels)
    ]
    return Side(name, tuple(runs))


NEW = _side("A", ["6.12"] * 6)
OLD = _side("B", ["6.1"] * 3 + ["6.6"] * 3)


def _refused(a: Side, b: Side, *differs: str, itself: bool = False) -> list[str]:
    policy = Policy((Rule(TIME.name, FIVE),), differs=differs)
    return [refusal.slug for refusal in judge(a, b, policy, [], itself=itself).refusals]


def test_it_is_judged_where_kernels_may_differ() -> None:
    policy = Policy((Rule(TIME.name, FIVE),), differs=("kernel",))
    assert judge(NEW, OLD, policy, []).status == "PASS"
    slow = _side("A", ["6.12"] * 6, 150.0)
    assert judge(slow, OLD, policy, []).status == "FAIL"
    assert _refused(OLD, replace(OLD, name="B"), "kernel", itself=True) == []


def test_it_is_refused_otherwise() -> None:
    assert "mixed-side" in _refused(NEW, OLD)
    assert "mixed-side" in _refused(NEW, OLD, "hz")


def test_what_is_judged_has_one_kernel() -> None:
    assert set(_refused(OLD, NEW, "kernel")) == {"mixed-side"}


def test_nothing_else_of_the_base_may_differ() -> None:
    first = replace(OLD.runs[0], fingerprint={**OLD.runs[0].fingerprint, "hz": 100})
    assert _refused(NEW, Side("B", (first, *OLD.runs[1:])), "kernel") == ["mixed-side"]


def test_what_kernels_count_differently_is_not_judged() -> None:
    """From 6.16 on reclaim writes no file pages: no base of both."""
    runs = [
        run(f"B{n}", {WRITES: 100.0 + n}, facts={"kernel": kernel})
        for n, kernel in enumerate(["6.1"] * 3 + ["6.16"] * 3)
    ]
    new = [run(f"A{n}", {WRITES: 100.0 + n}, facts={"kernel": "6.16"}) for n in range(6)]
    policy = Policy((Rule(WRITES.name, FIVE),), differs=("kernel",))
    found = judge(Side("A", tuple(new)), Side("B", tuple(runs)), policy, [])
    assert [verdict.status for verdict in found.verdicts] == ["REFUSED"]


# Copies of a recording without a mark of its own: they are one run wherever they are counted.

Cli = Callable[..., Any]


def _times(seed: int, n: int, level: float = 100.0) -> list[float]:
    """Each to nine digits, of which the last is none that printing leaves out."""
    chosen = random.Random(seed)
    return [round(chosen.gauss(level, level / 50), 5) + 7e-6 for _ in range(n)]


def _copied(folder: Path, times: int, to: Path) -> Path:
    """Each run of a folder, so many times, as cp does it: the files are new."""
    for number in range(times):
        for place in sorted(folder.iterdir()):
            shutil.copytree(place, to / f"{place.name}-{number}", copy_function=shutil.copyfile)
    return to


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text('[metrics."ops.stall_ns"]\nmargin = "10%"\n')
    return "p.toml"


@pytest.mark.parametrize("of_base", [False, True])
def test_a_side_of_nothing_but_copies_of_one_run(
    cli: Cli, tmp_path: Path, policy: str, of_base: bool
) -> None:
    """Nothing varies on that side, and the other one tells that it would."""
    real = ops_runs(tmp_path / "new", _times(1, 6))
    six = _copied(ops_runs(tmp_path / "one", _times(2, 1, 120.0), later=99), 6, tmp_path / "six")
    sides = (real, "--against", six) if of_base else (six, "--against", real)
    ran = cli("gate", "--policy", policy, *sides)
    assert (ran.code, "same-recording" in ran.out) == (4, True)
    assert "are one recording: it counts as one run" in " ".join(ran.out.split())


def test_a_copy_where_nothing_else_is_there_to_tell(cli: Cli, tmp_path: Path, policy: str) -> None:
    one = ops_runs(tmp_path / "one", _times(2, 1))
    both = _copied(one, 2, tmp_path / "both")
    assert cli("gate", "--policy", policy, *sorted(both.iterdir()), "--self-check").code == 4
    ran = cli("gate", "--policy", policy, both / "1-0", "--against", both / "1-1")
    assert (ran.code, "same-recording" in ran.out) == (4, True)


def test_a_history_takes_a_copy_once(cli: Cli, tmp_path: Path, policy: str) -> None:
    both = _copied(ops_runs(tmp_path / "one", _times(2, 1)), 2, tmp_path / "both")
    for number in (0, 1):
        saved = tmp_path / f"{number}.json"
        assert cli("baseline", "save", both / f"1-{number}", "-o", saved).code == 0
        place = Place(f"{number:040x}", datetime(2026, 1, 1 + number, tzinfo=UTC))
        new, known = add_runs(tmp_path / "h.db", read_baseline(saved), place)
        assert (len(new), len(known)) == (1 - number, number)
    assert len(read_history(tmp_path / "h.db")) == 1


def test_coarse_numbers_and_counts_may_be_the_same_each_time() -> None:
    """12 s twice, and a benchmark that allocates the same bytes each time, are no copies."""
    size, time = metric("ops.heap_bytes", unit="bytes"), metric("ops.stall_ns")
    same = [run(f"r{n}", {size: 1_234_567_890, time: 12e9}, source_id=f"c.p{n}") for n in (0, 1)]
    assert copies_within(same) == []
    fine = [run(f"r{n}", {size: 7, time: 12_345_678_901}, source_id=f"c.p{n}") for n in (0, 1)]
    assert copies_within(fine) == [fine]


def test_compare_counts_copies_once_and_says_so(cli: Cli, tmp_path: Path) -> None:
    """Three real runs a side, each of them twice: of 3 + 3 the least p is 0.1."""
    sides = []
    for seed, (name, level) in enumerate((("old", 100.0), ("new", 130.0))):
        real = ops_runs(tmp_path / f"{name}-real", _times(seed, 3, level), later=100 * seed)
        sides.append(_copied(real, 2, tmp_path / name))
    ran = cli("compare", sides[1], "--against", sides[0], "--json")
    (row,) = ran.document()["rows"]
    assert (row["outcome"], row["reason"]) == ("undecided", TOO_FEW)
    told = [one for one in ran.document()["warnings"] if one["slug"] == "same-recording"]
    assert len(told) == 6
    assert "left out, as both are one run" in told[0]["message"]
    assert "same recording" in cli("compare", sides[1], "--against", sides[0]).out


def test_a_merged_baseline_has_no_copies(cli: Cli, tmp_path: Path) -> None:
    real = ops_runs(tmp_path / "real", _times(3, 2))
    for name in ("a", "b"):
        shutil.copytree(real, tmp_path / name)
        for place in (tmp_path / name).glob("*/ops.txt"):
            os.utime(place)
        assert cli("baseline", "save", tmp_path / name, "-o", tmp_path / f"{name}.json").code == 0
    words = ("baseline", "merge", tmp_path / "a.json", tmp_path / "b.json", "-o")
    ran = cli(*words, tmp_path / "ab.json")
    assert ran.code == 2
    check_error(ran.err, "same-recording", "b.json: ")
    assert not (tmp_path / "ab.json").exists()


def test_results_of_one_file_that_are_alike_are_shown(cli: Cli, tmp_path: Path) -> None:
    """A coarse clock: each of four times is there twice, which a copied folder would look like."""
    rows = "".join(f"1.{digit},x\n" for digit in (1, 2, 3, 4, 4, 3, 2, 1))
    (tmp_path / "t.csv").write_text(f"time_s,what\n{rows}")
    saved = tmp_path / "t.json"
    assert cli("baseline", "save", tmp_path / "t.csv", "-o", saved).code == 0
    ran = cli("baseline", "show", saved)
    assert (ran.code, ran.err) == (0, "")
    assert cli("baseline", "merge", saved, saved, "-o", tmp_path / "two.json").code == 2


def test_copies_among_many_runs_take_no_time() -> None:
    """Each run once: comparing all with all would take minutes."""
    time = metric("ops.stall_ns")
    runs = [run(f"r{n}", {time: float(n)}, source_id=f"{n // 2}.p{n}") for n in range(30_000)]
    began = process_time()
    assert len(copies_within(runs)) == 15_000
    assert process_time() - began < 5


@pytest.mark.parametrize("verb", ["gate", "compare"])
def test_a_copied_folder_of_coarse_numbers_is_told(
    cli: Cli, tmp_path: Path, policy: str, verb: str
) -> None:
    """12 s and 13 s come again by themselves: no proof, so a warning and no refusal."""
    few = ops_runs(tmp_path / "few", [12.0, 12.0, 13.0, 12.0, 13.0, 12.0])
    copy = tmp_path / "copy"
    shutil.copytree(few, copy, copy_function=shutil.copyfile)
    other = ops_runs(tmp_path / "other", [12.0, 13.0, 12.0, 12.0, 13.0, 12.0])
    same = ops_runs(tmp_path / "same", [12.0] * 6), ops_runs(tmp_path / "same2", [12.0] * 6)
    words = ("gate", "--policy", policy) if verb == "gate" else ("compare",)

    def told(side: Path, base: Path) -> list[str]:
        ran = cli(*words, side, "--against", base, "--json")
        assert ran.code == 0
        document = ran.document()
        assert not document.get("refusals")
        return [o["message"] for o in document["warnings"] if o["slug"] == "same-recording"]

    for side, base in ((copy, few), (few, copy)):
        (message,) = told(side, base)
        assert "the 6 runs of A say what those of B say, in the same order" in message
        assert message.endswith("name other runs, or record more digits")
    # Another order, and what is 12 s each time.
    assert told(other, few) == []
    assert told(*same) == []


def test_three_coarse_runs_in_one_order_are_no_sign(cli: Cli, tmp_path: Path, policy: str) -> None:
    few = ops_runs(tmp_path / "few", [12.0, 12.0, 13.0])
    again = ops_runs(tmp_path / "again", [12.0, 12.0, 13.0], later=9)
    ran = cli("gate", "--policy", policy, again, "--against", few, "--json")
    assert "same-recording" not in {one["slug"] for one in ran.document()["warnings"]}
