# SPDX-License-Identifier: Apache-2.0
"""The command line: streams, formats, exit codes, help, names with a dash."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import line_of
from support.runs import REPOSITORY
from wbscope import __version__
from wbscope.base import errors
from wbscope.base.system import file_word
from wbscope.cli.output import note
from wbscope.library.library import load_library
from wbscope.render import catalogue
from wbscope.render.json import error_document
from wbscope.render.text import error_text
from wbscope.source.plain_files import report_of

# The command line: streams, formats, exit codes, help.

Cli = Callable[..., Any]
VERBS = [
    *(
        "demo",
        "record",
        "doctor",
        "ingest",
        "query",
        "sql",
        "queries",
        "report",
        "explain",
        "check",
    ),
    *("plot", "timeline", "convert", "open", "compare", "gate", "export", "schema", "sql-package"),
    *("completion", "lab", "baseline"),
    "history",
    "fleet",
]


def test_version(cli: Cli) -> None:
    assert cli("--version").out == f"wbscope {__version__}\n"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(cli: Cli, verb: str) -> None:
    ran = cli(verb, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert re.search(rf"\n  Examples:\n    .*wbscope {verb}", ran.out)
    assert all(len(line) <= 80 for line in ran.out.splitlines())


_KINDS = (
    "un folder",
    "trace.dat",
    "Perfetto trace",
    "ext of ftrace or perf",
    "packed",
    "- is stdin",
)


@pytest.mark.parametrize(
    "words", [[], ["report"], ["query"], ["sql"], ["export"], ["explain"], ["plot"], ["timeline"]]
)
def test_the_help_names_all_that_can_be_a_run(cli: Cli, words: list[str]) -> None:
    """Each kind is read in tests of its own."""
    told = " ".join(cli(*words, "--help").out.split()).replace("the text", "text")
    told = told.replace("`perf script`", "perf")
    assert [kind for kind in _KINDS if kind not in told] == []


def test_help_lists_every_verb_with_a_whole_sentence(cli: Cli) -> None:
    lines = cli("--help").out.split("Commands:\n")[1].splitlines()
    assert [line.split()[0] for line in lines] == VERBS
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (["qeury"], "'qeury'"),
        (["query"], "'NAME'"),
        (["query", "run_summary"], "'RUN...'"),
        (["query", "--bad"], "--bad"),
        (["timeline", "RUN"], "'-o'"),
        (["convert", "RUN"], "'-o'"),
        (["explain", "a", "b"], "(b)"),
        (["completion", "tcsh"], "'tcsh'"),
    ],
)
def test_wrong_usage(cli: Cli, words: list[str], fact: str) -> None:
    ran = cli(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error[usage]: wbscope")
    assert fact in ran.err
    assert "--help" in ran.err.splitlines()[-1]
    as_json = cli(*words, "--json")
    assert as_json.code == 2
    assert as_json.error()["exit_code"] == 2


def test_no_arguments_show_help(cli: Cli) -> None:
    ran = cli()
    assert ran.code == 2
    assert "Usage: wbscope" in ran.err


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.UsageError, 2),
        (errors.QueryError, 2),
        (errors.InputError, 3),
        (errors.EvidenceError, 4),
        (errors.SetupError, 5),
        (errors.InternalError, 70),
    ],
)
def test_every_error_class(
    cli: Cli,
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[errors.WbscopeError],
    code: int,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise kind("slug", "thing", "holds 5, wanted 6", at="here", fix="do it")

    monkeypatch.setattr(sqlite3, "connect", fail)
    ran = cli("query", "run_summary", database)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err == "error[slug]: thing: holds 5, wanted 6\n  at: here\n  fix: do it\n"
    ran = cli("query", "run_summary", database, "--json")
    assert (ran.code, ran.out) == (code, "")
    assert json.loads(ran.err) == {
        "schema": "wbscope.error/1",
        "error": {
            "slug": "slug",
            "object": "thing",
            "message": "holds 5, wanted 6",
            "at": "here",
            "fix": "do it",
            "exit_code": code,
        },
    }


def test_error_classes_are_all_tested() -> None:
    assert len(errors.WbscopeError.__subclasses__()) == 6


def test_bug_is_one_line_and_a_traceback_only_on_request(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(sqlite3, "connect", fail)
    monkeypatch.delenv("WBSCOPE_DEBUG", raising=False)
    monkeypatch.chdir(database.parent)
    database.rename("a b.db")
    ran = cli("query", "run_summary", "a b.db")
    assert ran.code == 70
    assert ran.err.startswith(f"error[internal]: wbscope {__version__}: KeyError: 'oops'")
    assert "fix: WBSCOPE_DEBUG=1 wbscope query run_summary 'a b.db'" in ran.err
    assert "Traceback" not in ran.err
    monkeypatch.setenv("WBSCOPE_DEBUG", "1")
    assert "Traceback" in cli("query", "run_summary", "a b.db").err


def test_ctrl_c(cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sqlite3, "connect", interrupt)
    ran = cli("query", "run_summary", database)
    assert (ran.code, ran.out, ran.err) == (130, "", "interrupted\n")


def test_error_text_has_no_control_characters_and_json_keeps_them() -> None:
    error = errors.InputError("slug", "a\x1b[2Jb", "text\nmore", have="x")
    assert error_text(error) == "error[slug]: a\\x1b[2Jb: text\\nmore\n  have: x"
    assert json.loads(error_document(error))["error"]["object"] == "a\x1b[2Jb"


def test_notes_have_no_control_characters(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names of folders, of runs and of files may be a stranger's."""
    note("one \x1b]0;pwned\x07\x1b[2J\ntwo")
    assert capsys.readouterr().err == "one \\x1b]0;pwned\\x07\\x1b[2J\\ntwo\n"
    run = tmp_path / "fl" / "run\x1b]0;BEL\x07"
    run.mkdir(parents=True)
    (run / "trace.dat").write_bytes(b"no trace")
    ran = cli("fleet", "ingest", str(tmp_path / "fl"), "-o", str(tmp_path / "ds"))
    assert "run\\x1b]0;BEL\\x07" in ran.err
    assert not {"\x1b", "\x07"} & set(ran.err)


def test_query_text_json_csv(cli: Cli, database: Path) -> None:
    text = cli("query", "throttle_by_task", database)
    assert text.err == "warning[lower-bound]: pages are a lower bound\n"
    assert text.out.splitlines() == [
        "                         pause",
        "tid  comm  bdi  pauses   total",
        "---  ----  ---  ------  ------",
        " 11  dd    8:0       2  223 ms",
        " 13  fio   8:0       1  100 ms",
    ]
    document = cli("query", "throttle_by_task", database, "--json")
    assert document.err == ""
    assert document.json() == {
        "schema": "wbscope.query/1",
        "query": "throttle_by_task",
        "run": str(database),
        "units": {"pauses_count": "count", "pause_total_ns": "ns"},
        "rows": [
            {"tid": 11, "comm": "dd", "bdi": "8:0", "pauses_count": 2, "pause_total_ns": 223000000},
            {
                "tid": 13,
                "comm": "fio",
                "bdi": "8:0",
                "pauses_count": 1,
                "pause_total_ns": 100000000,
            },
        ],
        "warnings": [{"slug": "lower-bound", "message": "pages are a lower bound"}],
    }
    csv = cli("query", "throttle_by_task", database, "--csv", "--tid", "11")
    assert csv.out == "tid,comm,bdi,pauses_count,pause_total_ns\n11,dd,8:0,2,223000000\n"


def test_lost_events_come_before_any_number(cli: Cli, new_database: Callable[..., Path]) -> None:
    lost = new_database(lost_events_count=9)
    assert cli("query", "throttle_by_task", lost).err.startswith("warning[lost-events]: 9 ")
    report = cli("report", lost, "--full").out
    assert report.index("warning[lost-events]: 9 ") < report.index("kernel  6.1.0")
    assert report.count("lost-events") == 1


@pytest.mark.parametrize("verb", [["query", "run_summary", "x"], ["sql", "x", "SELECT 1"]])
def test_two_formats_at_once(cli: Cli, verb: list[str]) -> None:
    assert cli(*verb, "--json", "--csv").error()["slug"] == "two-formats"


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["query", "throttle_by_tusk"], "unknown-query"),
        (["query", "windows", "--window", "2"], "bad-duration"),
        (["query", "windows", "--from", "soon"], "bad-duration"),
        (["query", "windows", "--tid", "x"], "bad-number"),
        (["query", "windows", "--tid", "-x"], "bad-number"),
        (["query", "windows", "--window", "0"], "bad-duration"),
    ],
)
def test_wrong_words_are_refused_before_any_ingest(
    cli: Cli, ingester: Any, trace: Path, words: list[str], slug: str
) -> None:
    ran = cli(*words[:2], trace, *words[2:], "--json")
    assert (ran.code, ran.error()["slug"]) == (2, slug)
    assert ingester.calls() == []


@pytest.mark.parametrize("words", [["--cgroup", "-2"], ["--cgroup=-2"]])
def test_cgroup_paths_have_negative_numbers(cli: Cli, database: Path, words: list[str]) -> None:
    ran = cli("query", "windows", database, *words, "--json")
    assert (ran.code, ran.json()["rows"][0]["cgroup_ino"]) == (0, -2)


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (["--from", "1s", "--to", "1s"], "--from 1s"),
        (["--from", "2s", "--to", "1s"], "--from 1s --to 2s"),
        (["--to", "0s"], "--to 1s"),
        (["--window", "0"], "--window 2s"),
        (["--window", "0s"], "--window 2s"),
        (["--window", "99999999999"], "--window 2s"),
        (["--window", "99999999999s"], "--window 2s"),
        (["--from", "1"], "--from 1s"),
        (["--bdi", ""], "--bdi 8:0"),
    ],
)
def test_the_fix_of_a_filter_works(cli: Cli, database: Path, words: list[str], fix: str) -> None:
    ran = cli("query", "windows", database, *words, "--json")
    assert (ran.code, ran.error()["fix"]) == (2, fix)
    assert cli("query", "windows", database, *fix.split()).code == 0


def test_exit_codes_of_wrong_input(cli: Cli, tmp_path: Path, database: Path) -> None:
    assert cli("report", tmp_path / "nowhere").code == 3
    assert cli("query", "reclaim_writes", database).code == 4
    (tmp_path / "text.db").write_text("hello")
    assert cli("sql", tmp_path / "text.db", "SELECT 1").code == 3


def test_queries_are_listed_under_what_they_are_about() -> None:
    """The library's own; a subject that is only in a file would come last, by chance."""
    library = load_library(Path(__file__).parents[3] / "sql")
    text = catalogue.list_text(library.queries(), 80)
    heads = [line for line in text.splitlines() if line.endswith(":")]
    assert heads == [subject.rstrip(".") + ":" for subject in catalogue._SUBJECTS]
    names = [
        line.split()[0] for line in text.splitlines() if line.startswith("  ") and line[2] != " "
    ]
    assert sorted(names) == [query.name for query in library.queries()]
    throttled = text.partition("Throttled tasks:\n")[2].partition("\n\n")[0]
    assert "  throttle_by_task      Who was throttled\n" in throttled


def test_queries(cli: Cli) -> None:
    assert cli("queries").out.splitlines() == [
        "reclaim_writes    Did reclaim write",
        "run_summary       The run in a few lines.",
        "throttle_by_task  Who was throttled",
        "windows           The window length",
    ]
    assert cli("queries", "throttle_by_task").out.splitlines() == [
        "throttle_by_task",
        "  Pauses of each task.",
        "  how to read it: A long pause is a wait that the kernel ordered.",
        "  one row: task, bdi",
        "  options: --from, --to, --bdi, --tid, --task",
        "  needs: writeback:balance_dirty_pages",
        "  better with: sched:sched_switch",
        "  tid             INTEGER: thread",
        "  pause_total_ns  INTEGER, ns: intended pauses, in total",
        "  metric: pause_total_ns (ns, lower is better): time that the kernel held the",
        "    task up",
    ]
    assert cli("queries", "-v").out.count("\n\n") == 3
    assert cli("queries", "nonsense").code == 2


def test_queries_json(cli: Cli) -> None:
    document = cli("queries", "throttle_by_task", "--json").json()
    assert document["schema"] == "wbscope.queries/1"
    [row] = document["rows"]
    assert row["events"] == [["writeback:balance_dirty_pages"]]
    assert row["columns"][1] == {
        "name": "pause_total_ns",
        "type": "INTEGER",
        "description": "intended pauses, in total",
        "unit": "ns",
    }
    assert row["metrics"] == [
        {
            "column": "pause_total_ns",
            "unit": "ns",
            "better": "lower",
            "meaning": "time that the kernel held the task up",
        }
    ]


def test_ingest_command(cli: Cli, ingester: Any, run_folder: Path) -> None:
    ran = cli("ingest", run_folder)
    assert (ran.code, ran.out) == (0, "")
    line_of(ran.err, f"wrote {run_folder}/run.db: ", 3, 2)
    again = cli("ingest", run_folder, "--json")
    assert (again.code, again.error()["slug"]) == (2, "output-exists")
    document = cli("ingest", run_folder, "--force", "--events", "writeback:*", "--json").json()
    assert document["schema"] == "wbscope.ingest/1"
    assert document["rows"] == [
        {
            "output": f"{run_folder}/run.db",
            "events_count": 3,
            "loaded_count": 2,
            "damaged": False,
        }
    ]


def test_ingest_shows_damage(
    cli: Cli, ingester: Any, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_INGESTER", "damaged")
    ran = cli("ingest", run_folder)
    assert ran.code == 0
    assert ran.err.startswith("warning[damaged-trace]: trace.dat: ends early; at: offset 0x20\n")


def test_ingest_choices(cli: Cli, ingester: Any, trace: Path) -> None:
    assert cli("ingest", trace, "--json").error()["slug"] == "no-output"
    ran = cli("ingest", trace, "-o", "x.db", "--all", "--events", "a", "--json")
    assert ran.error()["slug"] == "two-choices"
    assert cli("ingest", trace, "-o", trace, "--force", "--json").error()["slug"] == (
        "output-is-input"
    )


@pytest.mark.parametrize("verb", ["baseline", "fleet", "history"])
def test_a_group_without_a_command_prints_its_help(cli: Cli, verb: str) -> None:
    ran = cli(verb)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == cli(verb, "--help").out
    assert ran.err.startswith(f"Usage: wbscope {verb} [OPTIONS] COMMAND")


# Files and folders whose names begin with a dash are files and folders, not options.

TRACE = REPOSITORY / "examples/gate/runs/before-2/trace.dat"
DASHED = "-t.dat"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a run folder and a trace; the whole library is asked."""
    monkeypatch.delenv("WBSCOPE_SQL_DIR")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-d").mkdir()
    shutil.copyfile(TRACE, tmp_path / "-d" / "trace.dat")
    shutil.copyfile(TRACE, tmp_path / DASHED)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["report", "./-t.dat"],
        ["report", "--", DASHED],
        ["report", "./-d"],
        ["gate", "./-t.dat", "--budget", "throttle_summary.pause_p99_ns<=1h"],
        ["convert", "./-t.dat", "-o", "./-c.pftrace"],
        ["convert", "./-d", "-o", "./-d/c.pftrace"],
        ["timeline", "./-t.dat", "-o", "./-x.pftrace"],
        ["timeline", "./-t.dat", "-o", "part.pftrace", "--time-range", "1s..2s"],
        ["ingest", "./-t.dat", "-o", "./-x.db"],
        ["ingest", "./-t.dat", "-o", "x.db", "--time-range", "0s..2000h"],
        ["ingest", "./-d"],
    ],
    ids=" ".join,
)
def test_dash_in_front(cli: Cli, here: Path, words: list[str]) -> None:
    ran = cli(*words)
    assert ran.code == 0, ran.err


def test_a_database_with_a_dash(cli: Cli, here: Path) -> None:
    assert cli("ingest", "./-t.dat", "-o", "./-x.db").code == 0
    for words in (["report", "./-x.db"], ["timeline", "./-x.db", "-o", "x.pftrace"]):
        ran = cli(*words)
        assert ran.code == 0, ran.err


def test_words() -> None:
    words = [file_word(Path(name)) for name in ("./-x", "-d/x", "a-b", "/-x", "-")]
    assert words == ["./-x", "./-d/x", "a-b", "/-x", "./-"]
    assert report_of(Path("./-x y")) == "wbscope report './-x y'"
    assert report_of(Path("-")) == "wbscope report -"  # stdin


def test_commands_that_are_printed(cli: Cli, here: Path) -> None:
    told = " ".join(cli("explain", "./-t.dat").out.split())
    assert "wbscope query lost_time ./-t.dat" in told or "./-t.dat" in told
    assert " -t.dat" not in told
    assert "wbscope explain ./-t.dat" in " ".join(cli("explain", "./-t.dat", "--short").out.split())
    no_output = cli("ingest", "./-t.dat")
    assert "fix: wbscope ingest ./-t.dat -o ./-t.db" in no_output.err
