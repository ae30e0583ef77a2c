# SPDX-License-Identifier: Apache-2.0
"""Which verbs there are, and where each is: only the one that is asked for is imported."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from wbscope.base.watch import leave_memory_uncounted


@dataclass(frozen=True)
class Verb:
    """A verb, its module in cli/ and its function there; of a group that is the Typer.

    summary  the first line of its help, so that the list of all verbs imports none
    command  its class of command, MODULE.CLASS in cli/; "" = Typer's
    """

    name: str
    module: str
    function: str
    summary: str
    command: str = ""

    @property
    def is_group(self) -> bool:
        """It has verbs of its own."""
        return self.function == _GROUP


_GROUP = "app"
# As --help lists them.
VERBS = (
    Verb(
        "demo",
        "demo",
        "demo",
        "Say what was wrong in a run that comes with wbscope.",
    ),
    Verb("record", "record", "record", "Record a run, then print its report."),
    Verb(
        "doctor",
        "doctor",
        "doctor",
        "What this machine can record, and the fix for what it cannot.",
    ),
    Verb(
        "lab",
        "lab",
        _GROUP,
        "Record runs of a matrix in turns, and tell what they show.",
    ),
    Verb("ingest", "ingest", "ingest", "Load a trace into an SQLite database."),
    Verb("query", "query", "query", "Answer a canned query, of one run or of several."),
    Verb(
        "sql",
        "sql",
        "sql",
        "Run SELECTs on the tables of a run and all views.",
        "sql.SqlCommand",
    ),
    Verb(
        "queries",
        "queries",
        "queries",
        "List the canned queries, what each needs and its columns.",
    ),
    Verb(
        "report",
        "report",
        "report",
        "What is wrong and what to do, then the tables that show it.",
    ),
    Verb(
        "explain",
        "explain",
        "explain",
        "Say what is wrong, how sure that is, and what to change.",
    ),
    Verb(
        "check",
        "check",
        "check",
        "Compare the trace with every independent source in the run.",
    ),
    Verb("plot", "plot", "plot", "Draw figures of the run as PNG, SVG or PDF."),
    Verb(
        "timeline",
        "timeline",
        "timeline",
        "Write the run as tracks for the Perfetto UI.",
    ),
    Verb(
        "convert",
        "convert",
        "convert",
        "Write every event of a trace.dat as a Perfetto trace.",
    ),
    Verb("open", "open", "open_command", "Open the run's timeline in the Perfetto UI."),
    Verb(
        "compare",
        "compare",
        "compare",
        "Compare runs with others: what differs, and how surely.",
        "compare.SidesCommand",
    ),
    Verb(
        "gate",
        "gate",
        "gate",
        "Judge runs by a policy: PASS, FAIL, WORSE or INCONCLUSIVE.",
        "compare.SidesCommand",
    ),
    Verb(
        "baseline",
        "baseline",
        _GROUP,
        "Keep the numbers of runs in a file, to compare with.",
    ),
    Verb(
        "history",
        "history",
        _GROUP,
        "Keep results of runs by commit, and tell what changed when.",
    ),
    Verb(
        "fleet",
        "fleet",
        _GROUP,
        "Put many runs in one dataset, and ask all of them.",
    ),
    Verb(
        "export",
        "export",
        "export",
        "Write all answers of runs as Parquet files.",
    ),
    Verb(
        "schema", "programs", "schema", "Print the JSON Schema of what a verb prints with --json."
    ),
    Verb(
        "sql-package",
        "programs",
        "sql_package",
        "Write the SQL library as PerfettoSQL modules.",
    ),
    Verb(
        "completion",
        "programs",
        "completion",
        "Print the script that completes words of wbscope in a shell.",
    ),
)


def add_verbs(app: typer.Typer, words: Sequence[str] | None = None) -> None:
    """All verbs of the program; with the words of a command line the one that it names is whole.

    The others are there by name and summary, for the list and for what a wrong word was meant to
    be. Without words all are whole.
    """
    named = None if words is None else _named(words)
    if any(verb.name == named for verb in VERBS):
        leave_memory_uncounted()  # before its module imports sqlite3
    for verb in VERBS:
        if words is None or verb.name == named:
            _add_whole(app, verb)
        elif verb.is_group:
            app.add_typer(typer.Typer(name=verb.name, help=verb.summary, callback=_nothing))
        else:
            app.command(verb.name, help=verb.summary)(_nothing)


def _named(words: Iterable[str]) -> str | None:
    """Options of the program itself take no value, so the first word that is none is the verb."""
    return next((word for word in words if not word.startswith("-")), None)


def _add_whole(app: typer.Typer, verb: Verb) -> None:
    function = _in_cli(f"{verb.module}.{verb.function}")
    if verb.is_group:
        app.add_typer(function)
    elif verb.command:
        app.command(verb.name, cls=_in_cli(verb.command))(function)
    else:
        app.command(verb.name)(function)


def _in_cli(place: str) -> Any:
    module, _, name = place.partition(".")
    return getattr(importlib.import_module(f"wbscope.cli.{module}"), name)


def _nothing() -> None:
    """Never run: it stands for a verb that was not named."""


HELP_OPTIONS = ("-h", "--help")


def verb_group(name: str, **more: Any) -> typer.Typer:
    """No Rich markup: help texts keep their examples line by line, and no box reaches a pipe.

    `more` are further arguments of typer.Typer.
    """
    return typer.Typer(
        name=name,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": list(HELP_OPTIONS)},
        **more,
    )
