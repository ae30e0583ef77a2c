# SPDX-License-Identifier: Apache-2.0
"""Errors, fixes and the list of verbs: what they name is there, and works as it is printed."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
import wbscope
from support.cli import Wbscope, line_of
from support.runs import REPOSITORY, example
from support.tools import run, wbscope_path
from typer.main import get_command
from wbscope.base.errors import Argument, Phrase, UsageError
from wbscope.base.result import Notice, Result
from wbscope.cli.main import program
from wbscope.cli.output import answer_in_options, option, warnings_in_options
from wbscope.cli.verbs import VERBS

# Errors and warnings name arguments in Python, and options on the command line.

Cli = Callable[..., Any]


@pytest.mark.parametrize(
    ("argument", "in_python", "in_options"),
    [
        (Argument("window", "abc"), "window='abc'", "--window abc"),
        (Argument("start"), "start", "--from"),
        (Argument("end", "2 s"), "end='2 s'", "--to '2 s'"),
        (Argument("bdi", ""), "bdi=''", "--bdi ''"),
        (Argument("tid", 7), "tid=7", "--tid 7"),
        (Argument("force", True), "force=True", "--force"),
        (Argument("output", Path("a b.db")), "output='a b.db'", "-o 'a b.db'"),
        (Argument("time_range", "@5s.."), "time_range='@5s..'", "--time-range @5s.."),
        (Argument("events", ["a:*", "b"]), "events=['a:*', 'b']", "--events 'a:*' --events b"),
        (Argument("metrics", ["p99"]), "metrics=['p99']", "--metric p99"),
    ],
)
def test_an_argument_in_both_languages(argument: Argument, in_python: str, in_options: str) -> None:
    assert str(argument) == in_python
    assert option(argument) == in_options


def test_a_phrase_is_a_text() -> None:
    phrase = Phrase("wait, or leave out ", Argument("sysctl"))
    assert phrase == "wait, or leave out sysctl"
    assert f"{phrase}" == "wait, or leave out sysctl"
    assert phrase.spoken(option) == "wait, or leave out --sysctl"


def test_all_texts_of_an_error_are_said_in_options() -> None:
    error = UsageError(
        "slug",
        Phrase(Argument("end", "1s")),
        Phrase("is before ", Argument("start")),
        at="line 1",
        have=Phrase(Argument("window")),
        fix=Phrase(Argument("end", "2s")),
    ).with_path("line", "place")
    assert str(error) == "end='1s': is before start"
    told = error.spoken(option)
    assert str(told) == "--to 1s: is before --from"
    assert told.details() == [("at", "place 1"), ("have", "--window"), ("fix", "--to 2s")]
    assert type(told) is UsageError


def test_warnings_are_said_in_options() -> None:
    notice = Notice("slug", Phrase(Argument("bdi", "8:0"), " fits no row"), "run 1")
    plain = Notice("other", "5 events were lost")
    (first, second) = warnings_in_options([notice, plain])
    assert first == Notice("slug", "--bdi 8:0 fits no row", "run 1")
    assert second is plain
    assert notice.message == "bdi='8:0' fits no row"
    result = Result("name", (), {}, [], (notice,))
    assert answer_in_options(result).warnings == (first,)


def test_the_same_error_for_both(database: Path, cli: Cli) -> None:
    with wbscope.open(database) as run, pytest.raises(UsageError) as caught:
        run.query("windows", window="abc")
    assert str(caught.value).startswith("window='abc': is not a duration")
    assert caught.value.fix == "window='2s'"
    ran = cli("query", "windows", database, "--window", "abc")
    assert ran.code == 2
    assert ran.err.startswith("error[bad-duration]: --window abc: ")
    assert "  fix: --window 2s" in ran.err


def test_the_same_warning_for_both(database: Path, cli: Cli) -> None:
    with wbscope.open(database) as run:
        warnings = run.query("throttle_by_task", tid=99).warnings
    (told,) = [notice for notice in warnings if "no-such" in notice.slug]
    assert told.message == "tid=99 fits no row; there are 11, 13"
    words = ("query", "throttle_by_task", database, "--tid", "99")
    document = json.loads(cli(*words, "--json").out)
    messages = [notice["message"] for notice in document["warnings"]]
    assert "--tid 99 fits no row; there are 11, 13" in messages
    line_of(cli(*words).err, "warning[no-such-tid]: --tid 99 ", 11, 13)
    assert "--tid 99 fits no row" in cli(*words, "--markdown").out


# Fixes that write files, or are lines for a shell: each is run as it was printed, and works.

RUN = example("four-equal-writers").folder
BASELINE = REPOSITORY / "examples/gate/before.json"
PERF_TEXT = REPOSITORY / "tests/data/text/perf-6.1-ns.txt"


@pytest.mark.parametrize(
    ("words", "wanted", "starts"),
    [
        (("report", "TRACE", "--html"), ("report", "TRACE", "--html", "report.html"), b"<!doctype"),
        (("report", "TRACE", "--htm"), ("report", "TRACE", "-o", "report.html"), b"<!doctype"),
        (("report", "TRACE", "--format", "md"), ("report", "TRACE", "-o", "report.md"), b"# "),
        (("timeline", "TRACE"), ("timeline", "TRACE", "-o", "a.pftrace"), b"\x0a"),
        (("convert", "TRACE"), ("convert", "TRACE", "-o", "a.pftrace"), b"\x0a"),
        (("export", "TRACE"), ("export", "TRACE", "--parquet", "answers"), b""),
    ],
)
def test_a_fix_that_writes(
    wbscope: Wbscope,
    tmp_path: Path,
    words: tuple[str, ...],
    wanted: tuple[str, ...],
    starts: bytes,
) -> None:
    (tmp_path / "a.dat").symlink_to(RUN / "trace.dat")
    done = wbscope.run(*_named(words, "a.dat"), cwd=tmp_path)
    assert (done.returncode, "error[usage]: " in done.stderr) == (2, True), done.stderr
    assert f"  fix: wbscope {' '.join(_named(wanted, 'a.dat'))}\n" in done.stderr
    good = wbscope.run(*_named(wanted, "a.dat"), cwd=tmp_path)
    assert good.returncode == 0, good.stderr
    made = tmp_path / wanted[-1]
    assert any(made.iterdir()) if made.is_dir() else made.read_bytes().lower().startswith(starts)


def _named(words: tuple[str, ...], trace: str) -> list[str]:
    return [trace if word == "TRACE" else word for word in words]


def in_shell(wbscope: Wbscope, folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """What a user typed or pasted."""
    path = f"{wbscope_path().parent}:{wbscope.env['PATH']}"
    return run(["bash", "-c", command], cwd=folder, env={**wbscope.env, "PATH": path})


def put_program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def test_a_pipe_of_the_shell(wbscope: Wbscope, tmp_path: Path) -> None:
    """What it was is not to be known; the rest of the command line stays."""
    (tmp_path / "a.gz").write_bytes(gzip.compress((RUN / "trace.dat").read_bytes(), 1))
    done = in_shell(wbscope, tmp_path, "wbscope explain <(zcat a.gz) --short")
    assert (done.returncode, "error[not-a-run]: /dev/fd/" in done.stderr) == (3, True)
    fix = "COMMAND | wbscope explain - --short"
    assert f"  fix: {fix}\n" in done.stderr
    good = in_shell(wbscope, tmp_path, fix.replace("COMMAND", "zcat a.gz"))
    assert (good.returncode, "To do:" in good.stdout) == (0, True), good.stderr


def test_an_address(wbscope: Wbscope, tmp_path: Path) -> None:
    """A curl of ours stands for the net."""
    trace = RUN / "trace.dat"
    url = "https://example.org/a.dat?x=1&y=2"
    done = wbscope.run("query", "fairness", url, "--json")
    told = json.loads(done.stderr)["error"]
    assert told["fix"] == f"curl -L '{url}' | wbscope query fairness - --json"
    put_program(tmp_path / "curl", f"test \"$*\" = '-L {url}' && cat {trace}")
    good = in_shell(wbscope, tmp_path, f"PATH=.:$PATH; {told['fix']}")
    assert good.returncode == 0, good.stderr
    assert json.loads(good.stdout)["rows"] == wbscope.query("fairness", trace)


def test_a_matrix_that_there_is_not(wbscope: Wbscope, tmp_path: Path) -> None:
    done = wbscope.run("lab", "nosuch.toml", cwd=tmp_path)
    assert (done.returncode, "error[no-matrix]: nosuch.toml" in done.stderr) == (3, True)
    fix = done.stderr.partition("  fix: ")[2]
    assert in_shell(wbscope, tmp_path, fix).returncode == 0
    good = wbscope.run("lab", "nosuch.toml", "--list", cwd=tmp_path)
    assert good.returncode == 0, good.stderr
    assert len(good.stdout.splitlines()) == 12  # 6 runs of 2 cells


def test_a_policy_that_there_is_not(wbscope: Wbscope, tmp_path: Path) -> None:
    words = ("gate", "--policy", "nosuch.toml", BASELINE, "--self-check")
    done = wbscope.run(*words, cwd=tmp_path)
    assert (done.returncode, "error[no-policy]: nosuch.toml" in done.stderr) == (3, True)
    assert in_shell(wbscope, tmp_path, done.stderr.partition("  fix: ")[2]).returncode == 0
    judged = wbscope.run(*words, cwd=tmp_path)
    assert judged.returncode in (0, 4), judged.stderr  # a verdict, whichever
    assert "throttle_summary.pause_p99_ns" in judged.stdout


def test_a_commit_that_git_cannot_tell(wbscope: Wbscope, tmp_path: Path) -> None:
    (tmp_path / "a.dat").symlink_to(RUN / "trace.dat")
    done = wbscope.run("history", "add", "h.db", "a.dat", cwd=tmp_path)
    assert (done.returncode, "error[no-commit]" in done.stderr) == (2, True), done.stderr
    fix = "wbscope history add h.db a.dat --commit abc1234 --date 2026-11-03"
    assert f"  fix: {fix}\n" in done.stderr
    good = wbscope.run(*fix.split()[1:], cwd=tmp_path)
    assert good.returncode == 0, good.stderr
    assert (tmp_path / "h.db").exists()


@pytest.mark.parametrize("magic", [b"PERFILE2", b"2ELIFREP"])
def test_a_file_of_perf(wbscope: Wbscope, tmp_path: Path, magic: bytes) -> None:
    """A perf of ours stands for the real one: it prints what that printed of a recording."""
    (tmp_path / "it's.data").write_bytes(magic + bytes(96))
    done = wbscope.run("query", "event_counts", "it's.data", "--json", cwd=tmp_path)
    told = json.loads(done.stderr)["error"]
    assert (told["slug"], "perf.data" in told["message"]) == ("not-a-run", True)
    says = f'test "$*" = "script -i it\'s.data --ns" && cat {PERF_TEXT}'
    put_program(tmp_path / "perf", says)
    good = in_shell(wbscope, tmp_path, f"PATH=.:$PATH; {told['fix']}")
    assert good.returncode == 0, good.stderr
    assert json.loads(good.stdout)["rows"] == wbscope.query("event_counts", PERF_TEXT)


# The list of verbs: it says what their help says, and imports none of them.

_HEAVY = (
    "numpy",
    "scipy",
    "pyarrow",
    "matplotlib",
    "pandas",
    "rich.console",
    "pydantic",
    "sqlite3",
)


def _listed(app: typer.Typer) -> dict[str, str]:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    return {name: command.get_short_help_str(500) for name, command in commands.items()}


def test_the_summaries_are_those_of_the_verbs() -> None:
    whole = _listed(program())
    assert {verb.name: verb.summary.rstrip(".") for verb in VERBS} == {
        name: text.rstrip(".") for name, text in whole.items()
    }
    assert _listed(program([])) == whole


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_the_verb_that_is_named_is_whole(verb: object) -> None:
    name = getattr(verb, "name", "")
    named = get_command(program([name])).commands[name]  # type: ignore[attr-defined]
    whole = get_command(program()).commands[name]  # type: ignore[attr-defined]
    assert [one.opts for one in named.params] == [one.opts for one in whole.params]
    assert named.help == whole.help


def _imported(*words: str) -> set[str]:
    """What the command has imported when it ends."""
    code = (
        "import sys\n"
        "from wbscope.cli.main import main\n"
        f"main({list(words)!r})\n"
        "print('|'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.strip().splitlines()[-1].split("|"))


@pytest.mark.parametrize("words", [["--help"], ["--version"], []])
def test_the_list_of_verbs_imports_none_of_them(words: list[str]) -> None:
    found = _imported(*words)
    verbs = {f"wbscope.cli.{verb.module}" for verb in VERBS}
    assert found & verbs == set()
    assert found.isdisjoint(_HEAVY)


def test_a_query_imports_no_other_verb_and_nothing_heavy(database: object) -> None:
    found = _imported("query", "throttle_by_task", str(database))
    assert {verb.module for verb in VERBS if f"wbscope.cli.{verb.module}" in found} == {"query"}
    assert found & {*_HEAVY} <= {"sqlite3"}


def test_the_package_shows_what_is_public() -> None:
    import wbscope

    assert dir(wbscope) == sorted(wbscope.__all__)
    assert all(getattr(wbscope, name) is not None for name in wbscope.__all__)
    # A folder has the same name: the function stays, whatever was imported.
    import wbscope.compare.gate

    assert callable(wbscope.compare)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = wbscope.nothing


def test_a_result_is_turned_into_others_without_more_imports() -> None:
    code = (
        "from wbscope import Result\nprint(Result('q', ('a',), {}, [(1,)], ())._repr_html_()[:6])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("<")


_PROGRAM = "from wbscope.cli.main import main; main(['query', 'throttle_by_task', sys.argv[1]])"
_LIBRARY = "import wbscope; print(wbscope.open(sys.argv[1]).query('throttle_by_task'))"


@pytest.mark.parametrize(
    ("asked", "is_counted"),
    [(_PROGRAM, False), (f"import sqlite3; {_PROGRAM}", True), (_LIBRARY, True)],
    ids=["program", "program in the process of another", "library"],
)
def test_only_the_program_leaves_the_memory_of_sqlite_uncounted(
    database: Path, asked: str, is_counted: bool
) -> None:
    code = (
        f"import sys\n{asked}\n"
        "import ctypes, importlib.util, sqlite3\n"
        "kept = sqlite3.connect(':memory:')\n"
        "library = ctypes.CDLL(importlib.util.find_spec('_sqlite3').origin)\n"
        "print(library.sqlite3_memory_used() > 0, file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code, database]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout
    assert done.stderr.splitlines()[-1] == str(is_counted)


@pytest.mark.parametrize("words", [["queries"], ["query", "throttle_by_task"], ["gate", "--help"]])
def test_a_small_python_needs_no_ctypes(database: Path, words: list[str]) -> None:
    if words[0] == "query":
        words = [*words, str(database)]
    code = (
        "import sys\n"
        "sys.modules['_ctypes'] = None\n"
        "from wbscope.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert done.stdout
