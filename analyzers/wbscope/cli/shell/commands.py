# SPDX-License-Identifier: Apache-2.0
"""The dot commands of the prompt; each returns what to show."""

from __future__ import annotations

import fnmatch
import shlex
import textwrap
from typing import Any

from wbscope.base.errors import UsageError
from wbscope.base.result import Result
from wbscope.base.units import parse_number
from wbscope.cli.shell.objects import Object, Objects
from wbscope.render.printable import printable
from wbscope.render.table import table_text

__all__ = ["COMMANDS", "QUIT", "answer"]

COMMANDS = {
    ".help": "this list",
    ".query": "NAME [--window 2s --task 'dd*' ...]: the answer of a canned query",
    ".quit": "leave; Ctrl-D does the same",
    ".schema": "NAME: columns of a table or view, their units and meaning, and its SQL",
    ".tables": "[GLOB | --all]: queries, views and tables, e.g. .tables wb_*",
}
QUIT = (".quit", ".exit", "quit", "exit", "quit;", "exit;")

_HELP = (
    "A statement is one SELECT and ends with ';'; it may take several lines. Tab completes tables,"
    " views and columns. The run is open read-only.",
    "Ctrl-C stops a statement or clears the line, Ctrl-D leaves, Ctrl-R searches what was typed.",
)
_KINDS = {
    "query": "Canned queries (docs/queries.md)",
    "view": "Views with names and units (docs/views.md)",
    "table": "Tables of the run (docs/schema.md)",
}
_MORE = {
    "timeline": "What wbscope timeline draws (docs/timeline.md)",
    "raw view": "Views of one event each, under the newest kernel's names",
    "shared step": "Steps that views share; another version may have others",
}
_ALL = "--all"
# The options of `wbscope query`, and what Run.query calls them.
_FILTERS = {
    "--window": "window",
    "--bdi": "bdi",
    "--task": "task",
    "--cgroup": "cgroup",
    "--from": "start",
    "--to": "end",
    "--time-range": "time_range",
}
_GAP = 2


def answer(line: str, objects: Objects, width: int) -> str:
    """What a line that starts with a dot asks for; not .quit, which the loop takes."""
    command, *words = line.split()
    if command == ".help":
        return _help(width)
    if command == ".tables":
        return _tables(objects, words[0] if words else "", width)
    if command == ".schema":
        if len(words) != 1:
            raise UsageError(
                "usage", ".schema", f"got {len(words)} names, wanted one", fix=".schema wb_throttle"
            )
        return _schema(objects.find(words[0].rstrip(";")), width)
    if command == ".query":
        return _query(objects, shlex.split(line)[1:], width)
    raise UsageError(
        "usage",
        command,
        f"is none of {', '.join(COMMANDS)}",
        fix="SELECT event, count FROM event_counts;    # SQL needs no dot",
    )


def _query(objects: Objects, words: list[str], width: int) -> str:
    options = dict(zip(words[1::2], words[2::2], strict=False))
    unknown = [option for option in options if option not in _FILTERS]
    if not words or len(words) % 2 == 0 or unknown:
        have = f"the options are {', '.join(_FILTERS)}, each with a value"
        wrong = f"{unknown[0]} is no option" if unknown else f"got {len(words)} words"
        raise UsageError("usage", ".query", wrong, have=have, fix=".query fairness --window 2s")
    filters: dict[str, Any] = {_FILTERS[option]: value for option, value in options.items()}
    if "cgroup" in filters:
        filters["cgroup"] = parse_number("cgroup", filters["cgroup"], negative=True)
    return table_text(objects.run.query(words[0], **filters).from_start(), width)


def _help(width: int) -> str:
    indent = max(len(name) for name in COMMANDS) + _GAP
    lines = [textwrap.fill(paragraph, width) for paragraph in _HELP]
    lines += [
        textwrap.fill(
            what, width, initial_indent=name.ljust(indent), subsequent_indent=" " * indent
        )
        for name, what in COMMANDS.items()
    ]
    return "\n".join(lines) + "\n"


def _tables(objects: Objects, pattern: str, width: int) -> str:
    blocks = []
    glob = pattern if pattern not in ("", _ALL) else "*"
    for kind, title in (_KINDS | _MORE if pattern else _KINDS).items():
        names = [printable(n) for n in objects.of_kind(kind) if fnmatch.fnmatchcase(n, glob)]
        if names:
            blocks.append(f"{title}:\n{_in_columns(names, width)}")
    if not blocks:
        raise UsageError(
            "no-such-table",
            f".tables {pattern}",
            "no query, view or table has such a name",
            fix=f".tables {_ALL}",
        )
    if not pattern:
        blocks.append(f".tables {_ALL} shows the steps, too.\n")
    return "\n".join(blocks)


def _in_columns(names: list[str], width: int) -> str:
    """As ls does it: down, then across."""
    longest = max(len(name) for name in names) + _GAP
    across = max(1, (width - _GAP) // longest)
    down = -(-len(names) // across)
    lines = []
    for row in range(down):
        cells = (name.ljust(longest) for name in names[row::down])
        lines.append((" " * _GAP + "".join(cells)).rstrip())
    return "\n".join(lines) + "\n"


def _schema(found: Object, width: int) -> str:
    facts = [("", found.summary)]
    if found.file is not None:
        needs = ", ".join(" or ".join(group) for group in found.file.events)
        facts += [
            ("one row: ", found.file.grain),
            ("events: ", needs),
            ("made of: ", ", ".join(found.file.needs)),
            ("source: ", found.file.source),
        ]
    lines = [f"{found.kind} {printable(found.name)}"]
    lines += [
        textwrap.fill(f"{label}{text}", width, initial_indent="  ", subsequent_indent="    ")
        for label, text in facts
        if text
    ]
    columns = Result(found.name, ("column", "type", "unit", "meaning"), {}, found.column_rows())
    # A database may be a stranger's, and so may be the text of its tables.
    sql = "\n".join(printable(line) for line in found.sql.rstrip().split("\n"))
    return "\n".join(lines) + f"\n\n{table_text(columns, width)}\n{sql}\n"
