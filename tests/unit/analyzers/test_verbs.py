# SPDX-License-Identifier: Apache-2.0
"""The list of verbs: it says what their help says, and imports none of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.main import get_command
from wbscope.cli.main import program
from wbscope.cli.verbs import VERBS

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
