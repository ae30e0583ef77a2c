# SPDX-License-Identifier: Apache-2.0
"""A part of the time: on every command that takes one, its times, its verdict."""

from __future__ import annotations

import html
import json
import re
import shlex
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import wbscope as package
from support.cli import Document, Wbscope
from support.runs import RecordedRun, example
from wbscope.base.errors import UsageError
from wbscope.base.span import parse_span
from wbscope.explain.remedy import prove
from wbscope.library.library import load_library
from wbscope.run.filters import Filters

# A part of the time, on every command that takes one, and the times that tables show.

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


# Commands that a verdict of a part of the time names: their rows are of that part.

PART = ("--from", "2s", "--to", "6s")
_RANGED = {query.name for query in load_library().queries() if "range" in query.filters}
# Verbs that take a part of the time; what a query takes, its header says.
_VERBS = ("explain", "plot")


def assert_of_part(commands: Iterable[str], wbscope: Wbscope, part: tuple[str, ...]) -> None:
    """Each takes the part if it can, and works."""
    asked = set()
    for command in commands:
        program, verb, *words = shlex.split(command)
        assert program == "wbscope"
        is_ranged = verb in _VERBS or (verb == "query" and words[0] in _RANGED)
        told = tuple(words[words.index(part[0]) :][: len(part)]) if part[0] in words else ()
        assert told == (part if is_ranged else ()), command
        if verb == "query":
            done = wbscope.run(verb, *words)
            assert done.returncode == 0, done.stderr
            asked.add(words[0])
    assert asked


def test_rows_of_the_commands_add_up_to_the_facts(wbscope: Wbscope) -> None:
    """The rows of the whole run add up to 34.6 s."""
    rows = wbscope.document("explain", RUN, *PART)["rows"]
    (one,) = (row for row in rows if row["id"] == "slow_device")
    _, _, name, *words = shlex.split(one["evidence"][0]["command"])
    lost = wbscope.document("query", name, *words)["rows"]
    total = sum(row["total_ns"] for row in lost if row["finding"] == "slow_device")
    assert total == one["cost_task_ns"] == pytest.approx(11.69e9, abs=1e7)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (PART, PART),
        (("--time-range", "2s..6s"), PART),
        (("--from", "12.5s"), ("--from", "12.5s")),
        (("--time-range", "..@18.5s"), ("--to", "@18.5s")),
    ],
    ids=" ".join,
)
def test_every_form_of_a_part_is_told(
    given: tuple[str, ...], told: tuple[str, ...], wbscope: Wbscope
) -> None:
    rows = wbscope.document("explain", RUN, *given)["rows"]
    commands = [proof["command"] for row in rows for proof in row["evidence"]]
    assert_of_part(commands, wbscope, told)
    table = wbscope.document("query", "findings", RUN, *given)["rows"]
    assert [c for row in table for c in row["evidence"].split("; ")] == commands


def test_commands_of_the_texts(wbscope: Wbscope, tmp_path: Path) -> None:
    """In one line each, so that they can be pasted."""
    texts = [
        wbscope.run(*words, *PART).stdout
        for words in (("explain", RUN), ("report", RUN), ("explain", RUN, "--markdown"))
    ]
    done = wbscope.run("report", RUN, *PART, "-o", tmp_path / "part.md")
    assert done.returncode == 0, done.stderr
    texts.append((tmp_path / "part.md").read_text())
    found = [re.findall(r"\bwbscope (?:query|explain) [^`\n]+", text) for text in texts]
    assert f"wbscope explain {RUN} {' '.join(PART)}" in found[1]
    assert_of_part([command for commands in found for command in commands], wbscope, PART)


def test_commands_of_the_page(wbscope: Wbscope, tmp_path: Path) -> None:
    done = wbscope.run("report", RUN, *PART, "-o", tmp_path / "part.html")
    assert done.returncode == 0, done.stderr
    page = html.unescape((tmp_path / "part.html").read_text())
    found = set(re.findall(r"\bwbscope (?:query|explain|plot) [^`<>\n\"{]+", page))
    assert any(command.startswith("wbscope plot ") for command in found)
    assert any("--window" in command for command in found)
    assert_of_part(found, wbscope, PART)


def test_a_run_as_a_whole_has_no_part(wbscope: Wbscope) -> None:
    for words in (("explain", RUN), ("report", RUN)):
        assert "--from" not in wbscope.run(*words).stdout


# A part of the time that reaches behind the run, or begins before it: that of the run.

# Each has rates or shares of the time of interest, or windows.
_QUERIES = (
    "write_bursts",
    "block_latency",
    "throttle_windows",
    "throughput",
    "throughput_by_device",
    "fairness",
    "dirty_position",
)


@pytest.mark.parametrize("name", _QUERIES)
@pytest.mark.parametrize(
    "part", [("--to", "60s"), ("--to", "1000h"), ("--from", "@0s"), ("--time-range", "@5s..@90s")]
)
def test_rows_are_those_of_the_run(wbscope: Wbscope, name: str, part: tuple[str, ...]) -> None:
    document = wbscope.document("query", name, RUN, *part)
    assert document["rows"] == wbscope.document("query", name, RUN)["rows"]
    told = [one["message"] for one in document["warnings"] if one["slug"] == "outside-run"]
    assert len(told) == (2 if ".." in part[1] else 1)


def test_velocities_of_reclaim_are_those_of_the_run(wbscope: Wbscope) -> None:
    run = example("reclaim-writes").folder
    asked = wbscope.document("query", "reclaim_efficiency", run, "--to", "60s")["rows"]
    assert asked == wbscope.document("query", "reclaim_efficiency", run)["rows"]


def test_a_part_that_begins_in_the_run_ends_with_it(wbscope: Wbscope) -> None:
    """The windows, too: there were empty ones up to 60 s."""
    asked = wbscope.document("query", "throughput", RUN, "--from", "12s", "--to", "60s")["rows"]
    assert asked == wbscope.document("query", "throughput", RUN, "--from", "12s")["rows"]


@pytest.mark.parametrize("verb", ["explain", "report"])
def test_it_is_told_once_and_what_the_part_is(wbscope: Wbscope, verb: str, tmp_path: Path) -> None:
    text = wbscope.run(verb, RUN, "--to", "60s").stdout
    assert re.search(r"only from 0\.000000 s\s+to 17\.474001 s of the run", text)
    told = "warning[outside-run]: --to 60s is after the last event, which is 17.474001 s after the"
    assert " ".join(text.split()).count(told) == 1
    assert wbscope.document(verb, RUN, "--to", "60s")["part_ns"][1] < 17_500_000_000


def test_a_part_inside_of_the_run_has_no_such_warning(wbscope: Wbscope) -> None:
    for part in (("--from", "0s"), ("--to", "17.474s"), ("--from", "2s", "--to", "6s")):
        document = wbscope.document("query", "throughput", RUN, *part)
        assert "outside-run" not in {one["slug"] for one in document["warnings"]}


# The verdict of a part of the time: no all-clear where waits go on that began before it.

_SECOND = 10**9
# Kernel threads wait for nobody.
_THREADS = ("kworker/", "jbd2/", "kswapd")
_JOURNAL = ("journal commit", "journal full")


@pytest.fixture
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))


def journal_waits(rows: list[Document]) -> Iterator[tuple[int, int]]:
    """Start and end of the waits of tasks for a journal."""
    for row in rows:
        if row["cause"] in _JOURNAL and not row["comm"].startswith(_THREADS):
            yield row["ts"], row["ts"] + row["span_ns"]


@pytest.mark.usefixtures("_cache")
def test_tasks_in_a_wait_from_before_are_told(wbscope: Wbscope) -> None:
    """Three dd wait from 12.9 s to 15.6 s: for all of the part."""
    run, part = example("four-equal-writers").folder, ("--from", "13s", "--to", "15.4s")
    first = wbscope.document("query", "stalls", run)["rows"]
    (start,) = wbscope.sql(run, "SELECT value + 13000000000 AS ns FROM meta WHERE key = 'first_ts'")
    t0, t1 = int(start["ns"]), int(start["ns"]) + 2_400_000_000
    inside = [min(b, t1) - max(a, t0) for a, b in journal_waits(first) if a < t0 < b]
    assert len(inside) == 3
    rows = wbscope.document("explain", run, *part)["rows"]
    assert "nothing_wrong" not in {row["id"] for row in rows}
    assert (rows[0]["id"], rows[0]["severity"]) == ("began_before", "warning")
    assert rows[0]["cost_task_ns"] == sum(inside)
    assert rows[0]["text"].startswith("3 dd waited 7.20 s of this part of the trace")
    assert "journal commit" in rows[0]["text"]
    told = wbscope.run("explain", run, *part)
    assert (told.returncode, told.stderr) == (0, "")
    assert "Nothing is wrong" not in told.stdout


@pytest.mark.usefixtures("_cache")
@pytest.mark.parametrize("name", ["four-equal-writers", "deep", "rate-limited-writers"])
def test_no_part_of_a_long_wait_is_clear(name: str) -> None:
    """Parts of half a second, from the first to the last event."""
    checked = 0
    with package.open(example(name).folder) as run:
        first, last = run.bounds()
        waits = list(journal_waits(run.query("stalls").records()))
        assert run.query("stalls_before").rows == []
        for t0 in range(first + _SECOND, last, _SECOND):
            t1 = t0 + _SECOND // 2
            # Long enough that its rule would tell of one alone.
            if any(a < t0 and b > t1 and b - a >= _SECOND // 2 for a, b in waits):
                found = run.findings(parse_span(f"@{t0}", f"@{t1}"))
                assert all(one.severity != "ok" for one in found), (t0 - first, found)
                checked += 1
    assert checked


# Shares of the run.
_PARTS = ((0.0, 0.3), (0.1, 0.35), (0.5, 0.52), (0.5, 0.8), (0.75, 1.1))


@pytest.mark.usefixtures("_cache")
def test_every_number_of_a_part_is_that_of_its_evidence(recorded: RecordedRun) -> None:
    """As `explain --check` does it."""
    with package.open(recorded.folder) as run:
        length = run.duration_ns()
        for part in _PARTS:
            span = parse_span(*(f"{int(share * length)}ns" for share in part))
            for one in run.findings(span):
                proven = prove(run, one, Filters(span=span))
                assert all(fact.holds for fact in proven), (part, one, proven)


@pytest.mark.usefixtures("_cache")
def test_the_belief_about_a_new_device_is_that_of_the_run(wbscope: Wbscope) -> None:
    """The kernel began at 100 MiB/s; in the part it was down at 81.5 MiB/s."""
    run = example("four-equal-writers").folder
    rows = wbscope.document("explain", run, "--from", "2s", "--to", "6s")["rows"]
    (one,) = (row for row in rows if row["id"] == "new_bdi_bandwidth")
    assert one["facts"]["believed_bytes_per_s"] == 100 << 20


@pytest.mark.usefixtures("_cache")
def test_no_index_is_told_of_rates_that_are_no_shares(wbscope: Wbscope) -> None:
    """Events charge a part of what was dirtied: `fairness` has no index there."""
    run, part = example("patched-kernel/throttle").folder, ("--from", "25.6s", "--to", "40.9s")
    indices = [
        row["jain_weighted_ratio"]
        for row in wbscope.document("query", "fairness", run, *part)["rows"]
        if row["bdi"] == "254:16"
    ]
    assert None in indices
    told = wbscope.document("explain", run, *part)["rows"]
    assert [row["facts"]["jain_ratio"] for row in told if row["id"] == "unfair"] == [
        index for index in indices if index is not None and index < 0.8
    ]


@pytest.mark.usefixtures("_cache")
def test_a_piece_of_a_long_write_is_no_all_clear(wbscope: Wbscope) -> None:
    """A write of a dd is held from 3.93 s to 4.58 s, by five sleeps."""
    run = example("four-equal-writers").folder
    rows = wbscope.document("explain", run, "--from", "4s", "--to", "4.2s")["rows"]
    (one,) = (row for row in rows if row["id"] == "nothing_wrong")
    assert (one["severity"], one["title"]) == ("note", "A part with a piece of a long write")
    assert one["text"].startswith("No all-clear with a piece of a long write in this part")
    assert all(row["severity"] != "ok" for row in rows)


@pytest.mark.usefixtures("_cache")
def test_what_began_before_is_told_beside_what_began_in_the_part(wbscope: Wbscope) -> None:
    """dd 176 waits for the journal, and others are in writes of two seconds."""
    run, part = example("deep").folder, ("--from", "3.231s", "--to", "3.281s")
    rows = wbscope.document("explain", run, *part)["rows"]
    assert [row["id"] for row in rows][:2] == ["began_before", "nothing_wrong"]
    assert [row["severity"] for row in rows][:2] == ["warning", "note"]


@pytest.mark.usefixtures("_cache")
def test_the_file_of_a_part_does_not_know_what_began_before(
    wbscope: Wbscope, tmp_path: Path
) -> None:
    run, part = example("four-equal-writers").folder, ("--from", "13s", "--to", "15.4s")
    database = tmp_path / "cut.db"
    done = wbscope.run("ingest", run, "-o", database, *part)
    assert done.returncode == 0, done.stderr
    (one,) = (
        row for row in wbscope.document("explain", database)["rows"] if row["id"] == "nothing_wrong"
    )
    assert (one["severity"], one["confidence"]) == ("note", "cannot tell")
    assert one["text"] == (
        "No all-clear in this part of the trace: dirty throttling delayed no write that it"
        " had not delayed before; whether tasks waited for anything else was not recorded."
    )
