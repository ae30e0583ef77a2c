# SPDX-License-Identifier: Apache-2.0
"""A part of the time, on every command that takes one, and the times that tables show."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest
import wbscope as package
from support.cli import Wbscope
from support.runs import example
from wbscope.base.errors import UsageError

RUN = example("four-equal-writers").folder
# The same two seconds, in each form.
FORMS = {
    "from and to": ("--from", "2s", "--to", "4s"),
    "one range": ("--time-range", "2s..4s"),
    "clock, ns": ("--from", "@{t0}", "--to", "@{t1}"),
    "clock, s": ("--time-range", "@{t0_s}..@{t1_s}s"),
    "mixed": ("--time-range", "2s..@{t1}ns"),
}


@pytest.fixture(scope="module")
def first(wbscope: Wbscope) -> int:
    (row,) = wbscope.sql(RUN, "SELECT value FROM meta WHERE key = 'first_ts'")
    return int(row["value"])


def words(form: str, first: int) -> list[str]:
    t0, t1 = first + 2 * 10**9, first + 4 * 10**9
    texts = {"t0": t0, "t1": t1}
    texts |= {f"{name}_s": f"{ns // 10**9}.{ns % 10**9:09d}" for name, ns in texts.items()}
    return [word.format(**texts) for word in FORMS[form]]


@pytest.mark.parametrize("form", FORMS)
def test_query_takes_each_form(wbscope: Wbscope, first: int, form: str) -> None:
    rows = wbscope.document("query", "stalls", RUN, *words(form, first))["rows"]
    whole = wbscope.document("query", "stalls", RUN)["rows"]
    inside = [row for row in whole if 2 * 10**9 <= row["ts"] - first < 4 * 10**9]
    assert 0 < len(rows) < len(whole)
    assert {row["ts"] for row in inside} <= {row["ts"] for row in rows}
    assert rows == wbscope.document("query", "stalls", RUN, "--from", "2s", "--to", "4s")["rows"]


@pytest.mark.parametrize("form", FORMS)
def test_ingest_takes_each_form(wbscope: Wbscope, first: int, form: str, tmp_path: Path) -> None:
    database = tmp_path / "part.db"
    done = wbscope.run("ingest", RUN, "-o", database, *words(form, first))
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(database) as connection:
        meta = dict(connection.execute("SELECT key, value FROM meta"))
    assert meta["range_first_ts"] == first + 2 * 10**9
    assert meta["range_end_ts"] == first + 4 * 10**9


@pytest.mark.parametrize("form", FORMS)
def test_convert_takes_each_form(wbscope: Wbscope, first: int, form: str, tmp_path: Path) -> None:
    files = []
    for number, options in enumerate((words(form, first), ["--time-range", "2s..4s"])):
        files.append(tmp_path / f"{number}.pftrace")
        done = wbscope.run("convert", RUN, "-o", files[-1], *options)
        assert done.returncode == 0, done.stderr
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    "verb",
    [
        ("query", "stalls", RUN),
        ("report", RUN),
        ("timeline", RUN, "-o", "x.pftrace"),
        ("open", RUN),
        ("ingest", RUN, "-o", "x.db"),
        ("convert", RUN, "-o", "x.pftrace"),
    ],
    ids=lambda verb: verb[0],
)
def test_every_command_says_what_is_wrong(
    wbscope: Wbscope, verb: tuple[str | Path, ...], tmp_path: Path
) -> None:
    for options, told, fix in (
        (
            ("--from", "1s", "--time-range", "1s..2s"),
            "error[two-choices]: --from 1s --time-range 1s..2s: ",
            "--time-range 1s..2s",
        ),
        (("--to", "@x"), "error[bad-duration]: --to @x: ", "--to @12.5s"),
        (("--from", "2s", "--to", "1s"), "error[empty-range]: --to 1s", "--from 1s --to 2s"),
        (("--time-range", "2s"), "error[bad-range]: --time-range 2s", "--time-range 2s..4s"),
    ):
        done = wbscope.run(*verb, *options, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(told)
        assert f"  fix: {fix}\n" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_in_python_too(first: int) -> None:
    with package.open(RUN) as run:
        rows = run.query("stalls", start="2s", end="4s").rows
        assert run.query("stalls", time_range=f"@{first + 2 * 10**9}..4s").rows == rows
        with pytest.raises(UsageError) as caught:
            run.query("stalls", start="1s", time_range="1s..2s")
    assert str(caught.value).startswith("start='1s' time_range='1s..2s': say the same in two ways")


def times(text: str, sign: str = "") -> list[float]:
    """The first column of a table, where it is a time; sign: @ of the trace clock."""
    cells = re.findall(rf"^\|? *{sign}(-?[0-9]+\.[0-9]{{6}}) s\b", text, re.M)
    return [float(cell) for cell in cells]


def test_times_of_tables_count_from_the_start(wbscope: Wbscope, first: int) -> None:
    command = ("query", "stalls", RUN, "--from", "2s", "--to", "3s")
    raw = [row["ts"] for row in wbscope.document(*command)["rows"]]
    assert min(raw) > first
    after = [(ts - first) // 1000 / 10**6 for ts in raw]
    for form in ((), ("--markdown",)):
        # A wide table goes on below, with the same first column.
        table = times(wbscope.run(*command, *form).stdout)[: len(raw)]
        assert table == pytest.approx(after, abs=1.5e-6)
        table = times(wbscope.run(*command, *form, "--clock").stdout, "@")[: len(raw)]
        assert table == pytest.approx([ts // 1000 / 10**6 for ts in raw], abs=1.5e-6)
    for form in (("--csv",), ("--csv", "--clock")):
        lines = wbscope.run(*command, *form).stdout.splitlines()[1:]
        assert [int(line.split(",")[0]) for line in lines] == raw
    again = json.loads(wbscope.run(*command, "--json", "--clock").stdout)
    assert [row["ts"] for row in again["rows"]] == raw


def test_times_of_own_sql_are_those_that_options_take(wbscope: Wbscope, first: int) -> None:
    """They are the database's own, of the trace clock, which @ says."""
    done = wbscope.run("sql", RUN, "SELECT min(ts) AS ts FROM wb_throttle")
    (told,) = re.findall(r"^(@[0-9]+\.[0-9]{6}) s$", done.stdout, re.M)
    (row,) = wbscope.sql(Path(RUN), "SELECT min(ts) AS ts, tid FROM wb_throttle")
    rows = wbscope.query("stalls", Path(RUN), "--from", f"{told}s")
    assert float(told[1:]) == pytest.approx(row["ts"] / 1e9, abs=1e-6)
    assert min(stall["ts"] for stall in rows) >= row["ts"] - 1000 > first


def test_times_of_several_runs_count_from_their_own_starts(wbscope: Wbscope) -> None:
    runs = [RUN, example("rate-limited-writers").folder]
    both = wbscope.run("query", "throughput", *runs).stdout
    one = [wbscope.run("query", "throughput", run).stdout for run in runs]
    starts = re.findall(r" ([0-9]+\.[0-9]{6}) s ", both)
    # Each block of a wide table repeats its windows.
    assert set(starts) == {f"{ts:.6f}" for table in one for ts in times(table)}
    assert starts.count("0.000000") >= 2


def test_what_a_notebook_shows(first: int) -> None:
    with package.open(RUN) as run:
        result = run.query("throughput")
    assert result.start_ns == first
    assert result.rows[0][0] == first
    assert ">0.000000 s<" in result._repr_html_()
    assert result.from_start().rows[0][0] == 0
    assert result.from_start().from_start().rows[0][0] == 0


def test_report_of_a_part(wbscope: Wbscope, first: int) -> None:
    whole = wbscope.run("report", RUN, "--full").stdout
    text = wbscope.run("report", RUN, "--full", "--time-range", "2s..6s").stdout
    # Under the title, which is a second line where the path leaves no room.
    assert "only from 2.000000 s to 6.000000 s of the run" in text.splitlines()[1:3]
    assert "only from" not in whole
    assert min(times(text)) == 2.0
    assert max(times(text)) < 6.0 < max(times(whole))
    assert "warning[whole-run]: of the whole run: this question takes no part" in text
    document = wbscope.document("report", RUN, "--time-range", "2s..6s")
    assert document["part_ns"] == [2 * 10**9, 6 * 10**9]
    named = {row["query"]: row for row in document["rows"]}
    asked = wbscope.document("query", "throttle_by_task", RUN, "--from", "2s", "--to", "6s")
    assert named["throttle_by_task"]["rows"] == asked["rows"]
    (summary,) = [r for r in document["summary"] if r["key"] == "duration_ns"]
    assert int(summary["value"]) > 17 * 10**9
    clock = wbscope.run("report", RUN, "--full", "--time-range", "2s..6s", "--clock").stdout
    assert min(times(clock, "@")) == pytest.approx(first / 10**9 + 2, abs=1e-6)
