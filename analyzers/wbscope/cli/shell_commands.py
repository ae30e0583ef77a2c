# SPDX-License-Identifier: Apache-2.0
"""The dot commands of the prompt, what can be named in a FROM, and completion."""

from __future__ import annotations

import difflib
import fnmatch
import re
import shlex
import textwrap
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from wbscope.base.errors import QueryError, UsageError
from wbscope.base.result import Column, Result, unit_of
from wbscope.base.units import parse_number
from wbscope.library.engine import EVENTS
from wbscope.library.sqlfile import SqlFile
from wbscope.render.text import printable, table_text
from wbscope.run.run import Run


@dataclass(frozen=True)
class Object:
    """A table, view or query; `file` is the text of the latter two, `sql` what defines it."""

    name: str
    kind: str
    summary: str
    columns: tuple[Column, ...]
    sql: str
    file: SqlFile | None = None

    def column_rows(self) -> list[tuple[str | None, ...]]:
        """Name, type, unit and meaning of each column."""
        return [(c.name, c.type, unit_of(c.name), c.description) for c in self.columns]


class Objects:
    """All of them by name, read once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        tables = {table.name: table for table in _objects_tables(run)}
        self._objects = tables | {view.name: view for view in _views(run, tables)}

    def names(self) -> list[str]:
        """Tables first, then views, each by name."""
        return sorted(self._objects, key=lambda name: (self._objects[name].kind, name))

    def of_kind(self, kind: str) -> list[str]:
        """The names of the queries, views, tables, timelines, raw views or steps."""
        return [name for name in self.names() if self._objects[name].kind == kind]

    def columns(self, name: str) -> list[str]:
        """The columns of an object; none when there is no such object."""
        found = self._objects.get(name)
        return [] if found is None else [column.name for column in found.columns]

    def find(self, name: str) -> Object:
        """The object of this name; QueryError with the closest names otherwise."""
        found = self._objects.get(name)
        if found is not None:
            return found
        close = difflib.get_close_matches(name, self._objects, n=5, cutoff=0.5)
        raise QueryError(
            "no-such-table",
            name,
            f"is none of the {len(self._objects)} tables and views",
            have=", ".join(close) or None,
            fix=".tables",
        )


def _objects_tables(run: Run) -> list[Object]:
    """The database's own; a table of an event has the meanings of its raw view."""
    meanings: dict[str, dict[str, Column]] = {}
    summaries: dict[str, str] = {}
    for file in run.library.files.values():
        if file.kind == "raw":
            table = run.recorded().first_table(file.source_events) or file.source_table
            meanings[table] = {column.name: column for column in file.columns}
            summaries[table] = file.summary
    objects = []
    for name, sql in run.tables().items():
        ours = run.library.files.get(name)
        if ours is not None and ours.kind != "query":
            continue  # saved in the file; the library's own is what a question reads
        known = meanings.get(name, {})
        columns = tuple(
            Column(column, kind, known[column].description if column in known else "")
            for column, kind in run.columns(name)
        )
        objects.append(Object(name, "table", summaries.get(name, ""), columns, sql))
    return objects


def _kind(file: SqlFile) -> str:
    if file.kind in ("query", "timeline"):
        return file.kind
    if file.kind == "raw" and file.name != EVENTS:
        return "raw view"
    return "shared step" if file.shared else "view"


def _views(run: Run, tables: Container[str]) -> list[Object]:
    return [
        Object(
            file.name,
            _kind(file),
            file.summary,
            file.columns,
            file.create_view() if file.name != EVENTS else "-- each ev_ table, with UNION ALL",
            file,
        )
        for file in run.library.files.values()
        if file.kind != "finding" and not file.is_private() and file.name not in tables
    ]


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
        blocks.append(f".tables {_ALL} also shows the steps.\n")
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


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_KEYWORDS = _split(
    "ALL AND AS ASC BETWEEN BY CASE CAST COLLATE CROSS DESC DISTINCT ELSE END EXCEPT EXISTS FROM"
    " GLOB GROUP HAVING IN INNER INTERSECT IS ISNULL JOIN LEFT LIKE LIMIT MATERIALIZED NOT NOTNULL"
    " NULL OFFSET ON OR ORDER OVER PARTITION RECURSIVE SELECT THEN UNION USING VALUES WHEN WHERE"
    " WINDOW WITH"
)
_FUNCTIONS = _split(
    "abs avg coalesce count group_concat iif instr lag lead length lower max min nullif printf"
    " rank replace round row_number substr sum total upper"
)
_WORD = re.compile(r"\.?\w*\Z")
_QUALIFIER = re.compile(r"(\w+)\.\w*\Z")
_WANTS_TABLE = re.compile(r"\b(?:FROM|JOIN)\s+\w*\Z", re.IGNORECASE)
_TABLES = re.compile(
    rf"\b(?:FROM|JOIN)\s+(\w+)(?:\s+(?:AS\s+)?(?!(?:{'|'.join(_KEYWORDS)})\b)(\w+))?",
    re.IGNORECASE,
)


class SqlCompleter(Completer):
    """Knows the statement as far as words go; it does not parse SQL."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """What may follow the text before the cursor."""
        before = document.text_before_cursor
        if before.lstrip().startswith("."):
            yield from self._dot(before.lstrip())
            return
        word = _WORD.search(before)
        typed = word[0].lstrip(".") if word else ""
        for text, kind in self._words(before, document.text, typed):
            yield Completion(text, start_position=-len(typed), display_meta=kind)

    def _dot(self, line: str) -> Iterator[Completion]:
        command, space, argument = line.partition(" ")
        if not space:
            yield from _matching(COMMANDS, command, "command")
        elif command == ".schema":
            yield from _matching(self._objects.names(), argument, "name")

    def _words(self, before: str, whole: str, typed: str) -> list[tuple[str, str]]:
        tables = self._tables(whole)
        qualifier = _QUALIFIER.search(before)
        if qualifier is not None:
            names = self._objects.columns(tables.get(qualifier[1], qualifier[1]))
            return _starting(names, typed, "column")
        if _WANTS_TABLE.search(before):
            return _starting(self._objects.names(), typed, "table")
        columns = dict.fromkeys(c for t in tables.values() for c in self._objects.columns(t))
        if not typed:
            return _starting(columns, typed, "column")
        found = _starting(columns, typed, "column")
        # A word in small letters stays in small letters.
        small = typed.islower()
        found += _starting([k.lower() if small else k for k in _KEYWORDS], typed, "keyword")
        found += _starting(_FUNCTIONS, typed, "function")
        return found + _starting(self._objects.names(), typed, "table")

    def _tables(self, text: str) -> dict[str, str]:
        """Tables that the statement names so far, by alias and by name."""
        tables: dict[str, str] = {}
        for match in _TABLES.finditer(text):
            tables[match[1]] = match[1]
            if match[2]:
                tables[match[2]] = match[1]
        return tables


def _starting(names: Iterable[str], typed: str, kind: str) -> list[tuple[str, str]]:
    return [(name, kind) for name in names if name.lower().startswith(typed.lower())]


def _matching(names: Iterable[str], typed: str, kind: str) -> Iterator[Completion]:
    for name, meta in _starting(names, typed, kind):
        yield Completion(name, start_position=-len(typed), display_meta=meta)
