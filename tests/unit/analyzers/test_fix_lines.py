# SPDX-License-Identifier: Apache-2.0
"""Fix lines of common mistakes: each is run as it was printed, and works."""

from __future__ import annotations

import gzip
import json
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from support.cli import Wbscope
from support.runs import REPOSITORY, example
from wbscope.base.errors import EvidenceError
from wbscope.cli.main import with_run, with_verb
from wbscope.measure.files import NAMES
from wbscope.record.choose import matching_events
from wbscope.source import source

RUN = example("four-equal-writers").folder
GATE = REPOSITORY / "examples/gate"
COMPARE = ("compare", str(GATE / "lower-limit.json"), "--against", str(GATE / "before.json"))
# The head of a section, as the standard has it: no options, its length unknown.
_PCAPNG = bytes.fromhex("0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000")
# Both names of an option, where the error tells the long one.
SHORT = {"--events": "-e"}


class Mistake(NamedTuple):
    """A command line with a mistake, what names it, and what the mended one prints."""

    words: tuple[str, ...]
    slug: str
    fix: str
    prints: str
    have: str = ""


MISTAKES = {
    "a folder of runs": Mistake(
        ("report", "runs"), "no-trace", "wbscope report runs/deep", "runs/deep: ", "deep, four"
    ),
    "a folder of runs to explain": Mistake(
        ("explain", "runs"), "no-trace", "wbscope explain runs/deep", "runs/deep: ", "deep, four"
    ),
    "a misspelt run to explain": Mistake(
        ("explain", "runs/dep"), "no-such-file", "wbscope explain runs/deep", "runs/deep: "
    ),
    "a folder with a trace of another name": Mistake(
        ("query", "fairness", "renamed"),
        "no-trace",
        "wbscope report renamed/mytrace.dat",
        "renamed/mytrace.dat: ",
        "mytrace.dat",
    ),
    "a folder of runs that is called as the verb": Mistake(
        ("check", "check"), "no-trace", "wbscope check check/deep", "check: check/deep", "deep"
    ),
    "a misspelt run": Mistake(
        ("report", "runs/dep"), "no-such-file", "wbscope report runs/deep", "runs/deep: "
    ),
    "a pattern in quotes": Mistake(
        ("report", "runs/d*"), "no-such-file", "wbscope report runs/deep", "runs/deep: "
    ),
    "a column that is nowhere": Mistake(
        ("sql", str(RUN), "select nonsense"),
        "sql-error",
        f"wbscope sql {RUN} .tables",
        "wb_throttle",
    ),
    "a column that the table has not": Mistake(
        ("sql", str(RUN), "select nonsense from wb_throttle"),
        "sql-error",
        f"wbscope sql {RUN} '.schema wb_throttle'",
        "CREATE VIEW wb_throttle",
        "seq, ts, ",
    ),
    "a query that is a keyword": Mistake(
        ("sql", str(RUN), "select * from check"),
        "sql-error",
        f"""wbscope sql {RUN} 'SELECT * FROM "check"'""",
        "verdict",
    ),
    "a misspelt query": Mistake(
        ("query", "fairnes", str(RUN)), "unknown-query", "wbscope queries", "fairness", "fairness"
    ),
    "a metric without its query": Mistake(
        ("gate", str(RUN), "--budget", "pause_p99 <= 300ms"),
        "unknown-metric",
        "--budget 'throttle_summary.pause_p99_ns <= 300ms'",
        "PASS",
        "throttle_summary.pause_p99_ns",
    ),
    "the start of metrics": Mistake(
        (*COMPARE, "--metric", "throttle"),
        "unknown-metric",
        "--metric 'throttle*'",
        "throttle_summary",
        "throttle_summary.",
    ),
    "metrics that are nothing like any": Mistake(
        (*COMPARE, "--metric", "nosuch*"),
        "unknown-metric",
        "--metric 'throttle_summary.*'",
        "throttle_summary",
        "throttle_summary.*",
    ),
    "an option of another program": Mistake(
        ("--show-completion",),
        "usage",
        "wbscope completion bash    # or zsh, fish",
        "complete ",
    ),
    "an event that there is not": Mistake(
        ("convert", str(RUN), "-o", "out", "--events", "balance_dirty_page"),
        "no-such-event",
        "--events balance_dirty_pages",
        "",
        "balance_dirty_pages",
    ),
    "events that are nothing like any": Mistake(
        ("ingest", str(RUN), "-o", "out", "-e", "nosuch"),
        "no-such-event",
        "--events writeback",
        "",
        "systems block, ",
    ),
    "a duration without a unit": Mistake(
        ("query", "throttle_windows", str(RUN), "--window", "2"),
        "bad-duration",
        "--window 2s",
        "window",
    ),
    "a filter that the query has not": Mistake(
        ("query", "event_counts", str(RUN), "--window", "2s"),
        "no-such-filter",
        f"wbscope query event_counts {RUN}",
        "balance_dirty_pages",
        "no filter",
    ),
    "a column that the query has not": Mistake(
        ("query", "fairness", str(RUN), "--columns", "jain"),
        "unknown-column",
        f"wbscope query fairness {RUN} --columns jain_ratio",
        "99.8 %",
        "bdi, ",
    ),
    "rows of a report without a table": Mistake(
        ("report", str(RUN), "--limit", "3"),
        "no-section",
        f"wbscope report {RUN} --section throttle_by_task --limit 10",
        "Who was throttled",
    ),
    "a function that sql has not": Mistake(
        ("sql", str(RUN), "SELECT load_extension('x')"),
        "function-not-allowed",
        f"wbscope sql {RUN} \"SELECT length('text')\"    # docs/sql.md lists them",
        "4",
    ),
    "a mount point of no bdi": Mistake(
        ("query", "stalls", str(RUN), "--bdi", "/home"),
        "unknown-bdi",
        "--bdi 254:0",
        "254:0",
    ),
    "a column among others": Mistake(
        ("query", "stalls", str(RUN), "--columns", "ts,durr", "--limit", "3"),
        "unknown-column",
        f"wbscope query stalls {RUN} --columns ts,dur --limit 3",
        "ts  ",
    ),
    "a column that the answer has not": Mistake(
        ("sql", str(RUN), "SELECT 1 AS one, 2 AS two", "--columns", "one,tow"),
        "unknown-column",
        f"wbscope sql {RUN} 'SELECT 1 AS one, 2 AS two' --columns one,two",
        "two",
    ),
    "runs without a base": Mistake(
        ("compare", "renamed/mytrace.dat", "runs/deep"),
        "no-base",
        "wbscope compare renamed/mytrace.dat --against runs/deep",
        "throttle_summary",
    ),
    "runs and nothing to judge by": Mistake(
        ("gate", "renamed/mytrace.dat"),
        "no-policy",
        "wbscope gate renamed/mytrace.dat --budget 'throttle_summary.pause_p99_ns <= 200ms'",
        "PASS",
    ),
    "a folder of many files": Mistake(
        ("explain", "mixed", "--short"),
        "no-trace",
        "wbscope explain mixed/mytrace.dat --short",
        "To do:",
        "mytrace.dat\n",
    ),
    "an id of no stall": Mistake(
        ("explain", str(RUN), "--stall", "x"),
        "bad-number",
        f"wbscope query stalls {RUN} --sort=-dur --limit 10",
        "36396",
    ),
    "a run without a verb": Mistake(
        ("renamed/mytrace.dat",),
        "usage",
        "wbscope report renamed/mytrace.dat",
        "renamed/mytrace.dat: ",
    ),
    "a run before its query": Mistake(
        ("query", "renamed/mytrace.dat", "fairness", "--limit", "1"),
        "unknown-query",
        "wbscope query fairness renamed/mytrace.dat --limit 1",
        "99.8 %",
    ),
    "a format by its name": Mistake(
        ("query", "fairness", "renamed/mytrace.dat", "--format", "csv"),
        "usage",
        "wbscope query fairness renamed/mytrace.dat --csv",
        "jain_ratio,",
    ),
    "a format by its name, in one word": Mistake(
        ("report", "--format=json", "renamed/mytrace.dat"),
        "usage",
        "wbscope report renamed/mytrace.dat --json",
        '"schema": "wbscope.report/1"',
    ),
    "a database as a trace": Mistake(
        ("ingest", "run.db", "-o", "out"),
        "already-a-database",
        "wbscope report run.db",
        "run.db: ",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, wbscope: Wbscope) -> Path:
    """A folder of runs, and one in which the trace has a name of the user's own."""
    made = tmp_path_factory.mktemp("mistakes")
    for name in ("deep", "four-equal-writers"):
        (made / "runs").mkdir(exist_ok=True)
        (made / "runs" / name).symlink_to(REPOSITORY / "examples" / name)
    (made / "check").symlink_to("runs")
    (made / "renamed").mkdir()
    shutil.copy(RUN / "trace.dat", made / "renamed/mytrace.dat")
    (made / "mixed").mkdir()
    shutil.copy(RUN / "trace.dat", made / "mixed/mytrace.dat")
    (made / "mixed/a.pcapng").write_bytes(_PCAPNG)
    (made / "mixed/b.data").write_bytes(b"PERFILE2" + bytes(96))
    with closing(sqlite3.connect(made / "mixed/c.db")) as other, other:
        other.execute("CREATE TABLE bookmarks (url)")
    done = wbscope.run("ingest", RUN, "-o", made / "run.db")
    assert done.returncode == 0, done.stderr
    return made


def mended(words: tuple[str, ...], fix: str) -> list[str]:
    """The fix is a whole command, or an option that stands for the one that was given."""
    parts = shlex.split(fix, comments=True)
    if parts[0] == "wbscope":
        return parts[1:]
    given = parts[0] if parts[0] in words else SHORT[parts[0]]
    at = words.index(given)
    return [*words[:at], *parts, *words[at + 2 :]]


@pytest.mark.parametrize("name", MISTAKES)
def test_the_fix_works(wbscope: Wbscope, folder: Path, name: str) -> None:
    mistake = MISTAKES[name]
    done = wbscope.run(*mistake.words, cwd=folder)
    assert done.returncode in (2, 3), done.stderr
    assert f"error[{mistake.slug}]: " in done.stderr
    assert f"  fix: {mistake.fix}\n" in done.stderr
    if mistake.have:
        assert f"  have: {mistake.have}" in done.stderr.replace("\n    ", " ")
    assert not (folder / "out").exists()
    good = wbscope.run(*mended(mistake.words, mistake.fix), cwd=folder)
    (folder / "out").unlink(missing_ok=True)
    assert good.returncode == 0, good.stderr
    assert mistake.prints in good.stdout


def test_an_event_of_record_that_this_kernel_has_not() -> None:
    available = frozenset(["sched:sched_switch", "sched:sched_waking", "block:block_rq_issue"])
    with pytest.raises(EvidenceError) as caught:
        matching_events(["sched:sched_swich"], available)
    assert str(caught.value.fix) == "event='sched:sched_switch'"
    assert matching_events(["sched:sched_switch"], available) == ("sched:sched_switch",)


def test_a_database_of_a_newer_version(wbscope: Wbscope, folder: Path, tmp_path: Path) -> None:
    """Ingesting again makes nothing older: the fix is a newer wbscope."""
    newer = tmp_path / "newer.db"
    shutil.copy(folder / "run.db", newer)
    with closing(sqlite3.connect(newer)) as opened, opened:
        opened.execute("UPDATE meta SET value = 99 WHERE key = 'schema_version'")
    done = wbscope.run("report", newer)
    assert (done.returncode, "error[schema-version]" in done.stderr) == (3, True), done.stderr
    assert "  fix: upgrade wbscope" in done.stderr


@pytest.mark.parametrize("verb", [("query", "mmtests_vmstat"), ("report",)])
def test_counters_without_a_trace(wbscope: Wbscope, tmp_path: Path, verb: tuple[str, ...]) -> None:
    """As mmtests leaves them: no recording of today replaces those of then."""
    counters = {"old": (100, 1100), "new": (100, 9100)}
    for name, values in counters.items():
        (tmp_path / name).mkdir()
        for file, value in zip(("vmstat.before", "vmstat.after"), values, strict=True):
            (tmp_path / name / file).write_text(f"nr_dirtied {value}\nnr_written {value}\n")
    done = wbscope.run(*verb, "new", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "error[no-trace]: " in done.stderr
    assert "trace-cmd" not in done.stderr
    fix = "wbscope compare new --against RUN..."
    assert f"  fix: {fix}\n" in done.stderr
    good = wbscope.run(*shlex.split(fix.replace("RUN...", "old"))[1:], "--full", cwd=tmp_path)
    assert good.returncode == 0, good.stderr
    assert "dirtied" in good.stdout


def test_files_without_a_trace_are_those_that_compare_reads() -> None:
    assert set(source._MEASURED) == set(NAMES)


def test_no_fix_is_made_up_for_a_device(wbscope: Wbscope) -> None:
    done = wbscope.run("report", "/dev/null", "--json")
    said = json.loads(done.stderr)["error"]
    assert (done.returncode, said["slug"], said.get("fix")) == (3, "not-a-run", None)


def test_what_is_packed_needs_no_fix(wbscope: Wbscope, tmp_path: Path) -> None:
    packed = tmp_path / "trace.dat.gz"
    packed.write_bytes(gzip.compress((RUN / "trace.dat").read_bytes(), 1))
    done = wbscope.run("query", "fairness", packed)
    assert (done.returncode, "error[" in done.stderr) == (0, False), done.stderr
    assert "jain" in done.stdout


@pytest.mark.parametrize(
    ("words", "fix", "wanted"),
    [
        (["query", "fairness", "RUN"], "wbscope query fairness RUN", "wbscope query fairness RUN"),
        (["sql", "a b"], "wbscope sql RUN .tables", "wbscope sql 'a b' .tables"),
        (["report", "--section", "other", "a b"], "wbscope open RUN", "wbscope open 'a b'"),
        (["compare", "a b", "other"], "wbscope plot RUN -o DIR", "wbscope plot RUN -o DIR"),
        (["record", "other"], "wbscope record -o RUN -- CMD", "wbscope record -o RUN -- CMD"),
        (["report", "a b"], "--section RUN", "--section RUN"),
        (["other", "a b"], "wbscope open RUN", "wbscope open 'a b'"),
        (["report", "-o", "other"], "wbscope open RUN...", "wbscope open RUN..."),
        (
            ["fleet", "sql", "a b", "SELECT x"],
            "wbscope fleet sql DATASET",
            "wbscope fleet sql 'a b'",
        ),
        (
            ["fleet", "other", "hdfs://h/d", "--policy", "a b"],
            'wbscope fleet sql DATASET "SELECT 1"    # all',
            'wbscope fleet sql hdfs://h/d "SELECT 1"    # all',
        ),
        (
            ["history", "show", "a b"],
            "wbscope history add FILE.db R",
            "wbscope history add 'a b' R",
        ),
    ],
)
def test_the_run_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], fix: str, wanted: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a b", "other"):
        (tmp_path / name).touch()
    assert with_run(fix, words) == wanted


@pytest.mark.parametrize(
    ("verb", "wanted"),
    [("explain", "explain a"), ("check", "check a"), ("report", "report a"), ("query", "report a")],
)
def test_a_run_is_offered_to_the_verb_that_was_asked(verb: str, wanted: str) -> None:
    """Where it needs a run and nothing else."""
    assert with_verb("wbscope report a", [verb, "folder"]) == f"wbscope {wanted}"
    assert with_verb("ls folder", [verb, "folder"]) == "ls folder"
    assert with_verb(None, [verb]) is None
    comment = "wbscope report a    # as it's named"
    assert with_verb(comment, [verb, "b"], "c") == comment.replace("report a", wanted)


def test_the_rest_of_the_command_line_stays() -> None:
    words = ["explain", "b", "--to", "2s"]
    assert with_verb("wbscope report 'a b'", words, "b") == "wbscope explain 'a b' --to 2s"
    assert (
        with_verb("curl x | wbscope report -", words, "b") == "curl x | wbscope explain - --to 2s"
    )
