# SPDX-License-Identifier: Apache-2.0
"""history add and show on the command line: the first screen, formats, what git tells."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
from support.cli import check_error
from support.rundata import RATE, TIME, failed, metric, run, side
from wbscope.compare.baseline import baseline_text
from wbscope.compare.history import Place, add_runs, read_history
from wbscope.plot.dots import Column, Step, trend_svg

Cli = Callable[..., Any]
MIB = 1 << 20
STILL = metric("other.thing[comm=<b>]")
DAYS = 30


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In no git repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    return tmp_path


@pytest.fixture
def stored(folder: Path) -> Path:
    """Bandwidth falls by 12 % at the 21st of 30 commits of two runs each."""
    random = Random(1)
    for number in range(DAYS):
        runs = [
            run(
                f"run-{number}-{copy}",
                {
                    RATE: 20 * MIB * (0.88 if number >= 20 else 1) * random.gauss(1, 0.02),
                    STILL: 7e6,
                },
            )
            for copy in range(2)
        ]
        place = Place(f"{number:040x}", datetime(2026, 10, 1, tzinfo=UTC) + timedelta(number))
        add_runs(folder / "history.db", runs, place)
    return folder


def saved(name: str, **more: Any) -> str:
    """A baseline of one run."""
    Path(f"{name}.json").write_text(baseline_text(side(name, {TIME: [1e9]}, **more).runs))
    return f"{name}.json"


def git(*words: str) -> str:
    named = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *named, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_first_screen_says_what_changed(cli: Cli, stored: Path) -> None:
    ran = cli("history", "show", "history.db")
    assert (ran.code, ran.err) == (0, "")
    words = " ".join(ran.out.split())
    assert "30 commits, 60 runs, 2026-10-01 to 2026-10-30, Linux 6.1.0" in words
    assert "1 change in 1 of 2 metrics: worse 1, better 0, neither 0" in words
    assert re.search(
        r":\( fio\.bw_bytes_per_s fell by 1[12]\.\d % at 0{10} \(2026-10-21\), p = 0\.0002,"
        r" last 30 commits",
        words,
    )
    assert re.search(r"20\.\d MiB/s +17\.\d MiB/s +-1[12]\.\d % +0\.0002", ran.out)
    assert "over 1 metric that may have changed" in words  # the other never did
    assert "A new level of one metric is told after 3 commits at the earliest." in words
    assert all(len(line) <= 80 for line in ran.out.splitlines())


def test_nothing_found_and_too_few_commits(cli: Cli, stored: Path) -> None:
    ran = cli("history", "show", "history.db", "--metric", "other.*")
    assert (ran.code, ran.err) == (0, "")
    assert "no change found in 1 metric of 30 commits" in ran.out
    few = cli("history", "show", "history.db", "--since", "2026-10-26")
    assert few.code == 0
    assert "no change can be told in 2 metrics of 5 commits" in few.out
    assert "warning[too-few-commits]" in few.out


def test_json_and_csv_have_the_same_rows(cli: Cli, stored: Path) -> None:
    document = cli("history", "show", "history.db", "--json").document()
    assert document["schema"] == "wbscope.history/1"
    (row,) = document["rows"]
    assert (row["metric"], row["unit"], row["outcome"]) == (RATE.name, "bytes/s", "worse")
    assert row["commit"] == f"{20:040x}"
    assert row["change_ratio"] == pytest.approx(row["level"] / row["level_before"] - 1)
    assert len(document["commits"]) == DAYS
    (series,) = [one for one in document["series"] if one["metric"] == RATE.name]
    point = series["points"][3]
    assert point["median"] == pytest.approx(sum(point["values"]) / 2)
    (line,) = csv.DictReader(io.StringIO(cli("history", "show", "history.db", "--csv").out))
    assert line["commit"] == row["commit"]
    assert float(line["p"]) == row["p"] == 0.0002


def test_the_page(cli: Cli, stored: Path) -> None:
    ran = cli("history", "show", "history.db", "-o", "trend.html")
    assert (ran.code, ran.out, ran.err) == (0, "", "wrote trend.html\n")
    text = Path("trend.html").read_text()
    assert "<script" not in text
    assert "comm=&lt;b&gt;" in text
    assert "comm=<b>" not in text
    figures = [ElementTree.fromstring(one) for one in re.findall(r"<svg.*?</svg>", text)]
    assert [len(list(one.iter("circle"))) for one in figures] == [60, 60]  # a dot a run
    assert text.index("fio.bw_bytes_per_s") < text.index("Metrics without a change: 1")
    again = cli("history", "show", "history.db", "-o", "again.html")
    assert again.code == 0
    assert Path("again.html").read_text() == text
    assert cli("history", "show", "history.db", "-o", "trend.html").code != 0  # without --force


def test_dots_levels_and_changes_are_where_they_belong() -> None:
    columns = [Column((10.0, 12.0), "a"), Column((11.0,), "b"), Column((20.0,), "c & d")]
    text = trend_svg(columns, 11.0, [Step(2, 20.0, "c", "worse")], ("a", "c"), str, 1000)
    drawn = ElementTree.fromstring(text)
    dots = [(float(d.get("cx", "")), float(d.get("cy", ""))) for d in drawn.iter("circle")]
    places = sorted({x for x, _ in dots})
    steps = [b - a for a, b in pairwise(places)]
    assert steps == pytest.approx([steps[0]] * 2, abs=0.2)
    per_unit = (dots[0][1] - dots[1][1]) / 2  # up is more
    assert dots[2][1] == pytest.approx(dots[0][1] - per_unit, abs=0.2)
    levels = [p.get("d", "") for p in drawn.iter("path") if p.get("class") == "level"]
    heights = [float(re.findall(r"[\d.]+", level)[1]) for level in levels]
    assert heights == pytest.approx([dots[2][1], dots[3][1]], abs=0.2)
    (change,) = [group for group in drawn.iter("g") if group.get("class") == "change"]
    between = float(re.findall(r"[\d.]+", change.find("path").get("d", ""))[0])  # type: ignore[union-attr]
    assert between == pytest.approx((places[1] + places[2]) / 2, abs=0.2)


@pytest.mark.parametrize("values", [(0.0,), (5.0, 5.0), (-1e-9, 1e15)])
def test_any_values_can_be_drawn(values: tuple[float, ...]) -> None:
    ElementTree.fromstring(trend_svg([Column(values, "")], 0.0, [], ("a", ""), str, 1000))


def test_add_tells_what_it_did(cli: Cli, folder: Path) -> None:
    place = ["--commit", "v6.12", "--date", "2026-11-03", "--branch", "next"]
    ran = cli("history", "add", "history.db", saved("a"), saved("b"), *place)
    assert (ran.code, ran.out) == (0, "")
    (line,) = ran.err.splitlines()
    facts = ("history.db", "2 runs", "1 metric", "v6.12", "2026-11-03")
    assert all(fact in line for fact in facts)
    again = cli("history", "add", "history.db", "a.json", *place)
    assert again.code == 0
    known = again.err.splitlines()[0]
    assert ("a0" in known, "v6.12" in known, "history.db" in again.err) == (True, True, False)
    assert [one.place.branch for one in read_history(folder / "history.db")] == ["next", "next"]


def test_a_run_whose_command_failed_is_no_result(cli: Cli, folder: Path) -> None:
    words = ["history", "add", "history.db", saved("a"), saved("bad", **failed())]
    words += ["--commit", "x", "--date", "2026-11-03"]
    ran = cli(*words)
    assert (ran.code, "error[command-failed]" in ran.err) == (4, True)
    assert not Path("history.db").exists()
    assert cli(*words, "--allow-failed").code == 0


def test_without_git_commit_and_date_are_wanted(cli: Cli, folder: Path) -> None:
    for words, missing in (
        ([], "commit and date"),
        (["--commit", "abc"], "date"),
        (["--date", "2026-11-03"], "commit"),
    ):
        ran = cli("history", "add", "history.db", saved("a"), *words)
        assert ran.code == 2
        check_error(ran.err, "no-commit", f" no {missing}: ")


def test_git_tells_commit_date_and_branch(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-10-05T10:00:00+02:00")
    git("init", "-q", "-b", "topic")
    git("commit", "-q", "--allow-empty", "-m", "one")
    first = git("rev-parse", "HEAD")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-10-06T10:00:00+02:00")
    git("commit", "-q", "--allow-empty", "-m", "two")
    cli("history", "add", "history.db", saved("a"))
    cli("history", "add", "history.db", saved("b"), "--commit", first[:8])
    cli("history", "add", "history.db", saved("c"), "--commit", "other", "--date", "2026-10-07")
    told = [(one.run.name, one.place) for one in read_history(folder / "history.db")]
    assert told == [
        ("b0", Place(first, datetime(2026, 10, 5, 8, tzinfo=UTC))),
        ("a0", Place(git("rev-parse", "HEAD"), datetime(2026, 10, 6, 8, tzinfo=UTC), "topic")),
        ("c0", Place("other", datetime(2026, 10, 7, tzinfo=UTC))),
    ]
    ran = cli("history", "add", "history.db", saved("d"), "--commit", "--output=x")
    assert ran.code == 2
    assert not Path("x").exists()


@pytest.mark.parametrize(
    ("words", "code", "slug"),
    [
        (["history.db", "--json", "--csv"], 2, "two-formats"),
        (["history.db", "--json", "-o", "trend.html"], 2, "two-formats"),
        (["history.db", "--since", "monday"], 2, "bad-date"),
        (["history.db", "--since", "2027-01-01"], 4, "no-runs"),
        (["history.db", "--metric", "oter.thing"], 2, "unknown-metric"),
        (["history.db", "--branch", "main"], 2, "no-branch"),
        (["none.db"], 3, "no-file"),
        (["note.db"], 3, "not-a-history"),
    ],
)
def test_what_show_refuses(cli: Cli, stored: Path, words: list[str], code: int, slug: str) -> None:
    Path("note.db").write_text("no database" * 100)
    ran = cli("history", "show", *words)
    assert (ran.code, ran.out) == (code, "")
    told = json.loads(ran.err)["error"]["slug"] if "--json" in words else ran.err
    assert slug in told


def test_the_24_real_runs(cli: Cli, folder: Path) -> None:
    """As four commits they are too few, and are told to be."""
    gate = Path(__file__).parents[3] / "examples" / "gate"
    for day, name in enumerate(("before", "again", "lower-limit", "slower-disk"), 1):
        words = ["--commit", name, "--date", f"2026-11-0{day}"]
        assert cli("history", "add", "history.db", gate / f"{name}.json", *words).code == 0
    ran = cli("history", "show", "history.db")
    assert ran.code == 0
    assert "4 commits, 24 runs" in ran.out
    assert "no change can be told" in ran.out


def test_a_commit_has_one_date(cli: Cli, folder: Path) -> None:
    """A second one was confirmed, and not used."""
    words = ("--commit", "c1", "--date")
    assert cli("history", "add", "h.db", saved("a"), *words, "2024-01-01").code == 0
    other = cli("history", "add", "h.db", saved("b"), *words, "2024-02-01")
    assert other.code == 2
    check_error(other.err, "two-dates", "c1: ", "2024-01-01", "2024-02-01")
    assert cli("history", "add", "h.db", saved("b"), *words, "2024-01-01T09:00:00").code == 0
    entries = read_history(folder / "h.db")
    assert [(one.run.name, one.place.date.day) for one in entries] == [("a0", 1), ("b0", 1)]
