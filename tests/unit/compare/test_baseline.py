# SPDX-License-Identifier: Apache-2.0
"""A baseline file gives back what was saved, and is refused when it is not whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.rundata import LEVEL, TIME, WRITES, lost, metric, run
from wbscope.base.errors import InputError, UsageError
from wbscope.compare.baseline import baseline_text, is_baseline, merged, read_baseline
from wbscope.compare.rundata import RunData
from wbscope.measure.metric import Metric


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
