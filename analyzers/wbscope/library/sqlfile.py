# SPDX-License-Identifier: Apache-2.0
"""The files of the SQL library: objects, each a header of `-- @tag` lines and its statement.

A query or a timeline has a file of its own. A file of views or warnings is a subject: what it is
about, then its objects, public ones first. A name that begins with _ is private: read in its own
file only. One with @shared is a step, too, which several files read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from wbscope.base.errors import SetupError
from wbscope.base.result import Column, leading_names
from wbscope.library.rules import Caution, Rule, read_caution, read_rule
from wbscope.library.statements import Select

_Said = TypeVar("_Said")
_WINDOW = "window_start_ns"
_RANGE = "range"
KINDS = ("raw", "view", "query", "timeline", "finding", "warning")
_SELECTS = ("query", "finding", "warning")  # the rest are views
DIRECTIONS = ("lower", "higher", "neutral")

_OBJECT = re.compile(rf"--\s+@({'|'.join(KINDS)})\s+(\w+)\s*$")
_LICENCE = re.compile(r"^SPDX-License-Identifier: \S+\s*")
_TAG = re.compile(r"--\s+@(\w+)\s*(.*)")
_CONTINUATION = re.compile(r"--\s{2,}([^@\s].*)")
_METRIC = re.compile(r"(\w+)\s+(\w+):\s+(\S.*)")
_GROUP = re.compile(r"([^:]+)(?::\s+(\S.*))?")
_TRACK = re.compile(r"(\S.*?)(?: \[(\w+)\])?:\s+(\S.*)")
_CREATE_VIEW = re.compile(r"CREATE VIEW (\w+) AS\s+(.*)", re.DOTALL)


# The columns of every timeline; their files do not repeat them. Those from rank on may be missing.
# Behind them come the arguments of a slice: columns of its file, named arg_*.
_TIMELINE = (
    Column("ts", "INTEGER", "start, trace clock"),
    Column("dur", "INTEGER", "length; NULL for an instant or a counter"),
    Column("track", "TEXT", "name of the track; / separates levels, a backslash makes it a name's"),
    Column("name", "TEXT", "name of the slice; NULL for a counter"),
    Column("value", "REAL", "value of the counter; NULL = not known"),
    Column("unit", "TEXT", "unit of value; NULL for a slice or an instant"),
    Column("rank", "INTEGER", "place among the tracks of one level; NULL: as they come"),
    Column("tid", "INTEGER", "thread that the track belongs to; NULL: none"),
    Column("flows", "TEXT", "numbers of arrows to or from slices that have them too"),
)
_TIMELINE_MOST = 6
ARGUMENT = "arg_"


@dataclass(frozen=True)
class Metric:
    """A column that runs are judged by: which way is better, and what it says."""

    column: str
    better: str
    meaning: str


@dataclass(frozen=True)
class Track:
    """What tracks are whose names match a pattern (GLOB).

    Curves of one parent and one axis share the y axis.
    """

    pattern: str
    axis: str
    description: str


@dataclass(frozen=True)
class Drawing:
    """How a timeline is drawn.

    `group` is where its tracks are, `about` what that is; `level` tells of the groups between it
    and the tracks. Overlapping slices of one that is `flat` stand side by side, never in each
    other. The rows of each track of one that is `sorted` come in the order of time by themselves.
    A `parent` draws on groups themselves, which the UI shows when they are closed, too. Slices of
    one that is `spanning` are as long as what is drawn.
    """

    group: str
    about: str
    level: str
    tracks: tuple[Track, ...]
    is_flat: bool
    is_sorted: bool
    is_parent: bool
    is_spanning: bool


@dataclass(frozen=True)
class SqlFile:
    """One object: what it is called, what it needs, and its SELECT without the semicolon.

    `subject` is what the file says that all of its objects are about.
    `needs` are the objects that the statement reads. A column without @column has no type yet: a
    library takes type and description from the one that it is passed through from.
    `filters` are those that a query takes: window, range, bdi, tid, cgroup.
    `explain` names the query whose rows say what this one's were decided on. `instead` are queries
    that answer it from other events. `warns` is the SELECT of the warnings (slug, message) of a
    query, that of wb_warning of those that hold for every number; `warns_needs` is what it reads.
    `events` is a tuple of groups; a group is satisfied by any one of its events. `as NAME` in a
    header are those of another object.
    `source_events`, `source_table`, `source_view` and `fields` are an adapter's:
    it reads `source_view`, which the engine makes over the first event of
    `source_events` that has a table, or over `source_table`. `extra` is one
    whose events are so frequent that ingest loads them only when asked to.
    `previous` asks ingest for prev_seq: of the same task (tid) or of any, of all events of `group`;
    `indexes` are columns that it makes indexes of, and `notable` an index of few rows: COLUMNS
    WHERE CONDITION; `repeats` are the fields that repeats_count is about, and `context` the other
    events that it is about, each with those of its fields that count. `key` is the integer column
    that tells a view's rows apart: made into a table, they are found by it. `rule` is what a
    finding says.
    `keys` are the columns that tell a query's rows apart, `first` those that matter most:
    tables for people begin with them.
    """

    path: Path
    subject: str
    kind: str
    name: str
    select: str
    summary: str
    grain: str
    title: str
    read: str
    explain: str
    warns: str
    warns_needs: tuple[str, ...]
    order: int
    needs: tuple[str, ...]
    filters: tuple[str, ...]
    events: tuple[tuple[str, ...], ...]
    optional: tuple[str, ...]
    instead: tuple[str, ...]
    columns: tuple[Column, ...]
    metrics: tuple[Metric, ...]
    source: str
    materialize: bool
    cost: int
    shared: bool
    source_events: tuple[str, ...]
    source_table: str
    source_view: str
    fields: tuple[str, ...]
    extra: bool
    previous: str
    group: str
    indexes: tuple[tuple[str, ...], ...]
    notable: str
    repeats: tuple[str, ...]
    context: tuple[tuple[str, tuple[str, ...]], ...]
    key: str
    keys: tuple[str, ...]
    first: tuple[str, ...]
    drawing: Drawing
    rule: Rule | None
    caution: Caution | None

    def sql(self) -> str:
        """The statement that it is."""
        return f"{self.select};" if self.kind in _SELECTS else self.create_view()

    def create_view(self) -> str:
        """The statement that makes it a view."""
        return f"CREATE VIEW {self.name} AS\n{self.select};"

    def is_public(self) -> bool:
        """Whether it is for everybody: no step of one subject, nor one that several share."""
        return self.kind == "view" and not self.shared and not self.is_private()

    def is_private(self) -> bool:
        """Whether only its own file reads it."""
        return self.name.startswith("_")

    def is_answer(self) -> bool:
        """Whether it is a query whose rows take long: workers make a table of them, too."""
        return self.kind == "query" and self.cost > 0 and bool(self.columns)

    def is_of_windows(self) -> bool:
        """Rows of a query of windows begin with the window; others answer for the whole run."""
        return bool(self.columns) and self.columns[0].name == _WINDOW

    def takes_range(self) -> bool:
        """Others answer for the whole run whatever part of the time is asked for."""
        return _RANGE in self.filters


@dataclass(frozen=True)
class _Place:
    """An object of a file, as errors name it."""

    path: Path
    name: str

    def broken(self, message: str) -> SetupError:
        return broken_library(self.path, f"{self.name}: {message}")


_NOT_DRAWN = Drawing("", "", "", (), False, False, False, False)
_TEXTS = (
    "subject", "kind", "name", "select", "summary", "grain", "title", "read", "explain", "warns",
    "source",    "source_table", "source_view", "previous", "group", "key", "notable",
)  # fmt: skip
_LISTS = (
    "needs", "warns_needs", "filters", "events", "optional", "instead", "columns", "metrics",
    "source_events",
    "fields", "indexes", "repeats", "context", "keys", "first",
)  # fmt: skip


def empty_file(**facts: Any) -> SqlFile:
    """With these facts and nothing else."""
    nothing: dict[str, Any] = {
        **dict.fromkeys(_TEXTS, ""),
        **dict.fromkeys(_LISTS, ()),
        "path": Path(),
        "order": 0,
        "materialize": False,
        "cost": 0,
        "shared": False,
        "extra": False,
        "drawing": _NOT_DRAWN,
        "rule": None,
        "caution": None,
    }
    return SqlFile(**(nothing | facts))


def read_sql_file(path: Path) -> list[SqlFile]:
    """The objects of a file; SetupError tells which of them is not as agreed."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise broken_library(path, f"cannot be read: {error}") from error
    head, blocks = _split_objects(text.splitlines())
    if not blocks:
        tag = next((match[1] for line in head if (match := _TAG.match(line))), None)
        if tag is None and not any(_is_code(line) for line in head):
            raise broken_library(path, "has a header and no statement")
        wanted = ", ".join(f"@{kind}" for kind in KINDS)
        raise broken_library(path, f"first tag is '@{tag or ''}', wanted one of {wanted}")
    if line := next((line for line in head if _is_code(line) or _TAG.match(line)), None):
        raise broken_library(path, f"'{line}' stands before the first object")
    subject = " ".join(line[2:].strip() for line in head if line.startswith("--"))
    return [_object(path, _LICENCE.sub("", subject), block) for block in blocks]


def _split_objects(lines: list[str]) -> tuple[list[str], list[list[str]]]:
    """What stands before the first object, and the lines of each object."""
    starts = [number for number, line in enumerate(lines) if _OBJECT.match(line)]
    if not starts:
        return lines, []
    blocks = [lines[start:end] for start, end in pairwise([*starts, len(lines)])]
    return lines[: starts[0]], blocks


def _is_code(line: str) -> bool:
    text = line.lstrip()
    return text != "" and not text.startswith("--")


def _object(path: Path, subject: str, lines: list[str]) -> SqlFile:
    kind, name = _OBJECT.match(lines[0]).groups()  # type: ignore[union-attr]
    place = _Place(path, name)
    tags, statement = _split_header(place, lines)
    select = _select(place, kind, statement)
    read = Select(select)
    columns = tuple(_column(place, line) for line in tags.get("column", []))
    if kind in ("view", "query", "finding"):
        columns = _in_order(read, columns)
    elif kind == "timeline":
        if strange := next((c.name for c in columns if not c.name.startswith(ARGUMENT)), None):
            raise place.broken(f"column '{strange}' of a timeline, wanted {ARGUMENT}NAME")
        columns = (*_timeline_columns(select), *columns)
    return SqlFile(
        path=path,
        subject=subject,
        kind=kind,
        name=name,
        select=select,
        summary=_text(tags, "summary"),
        grain=_text(tags, "grain"),
        title=_text(tags, "title"),
        read=_text(tags, "read"),
        explain=_text(tags, "explain"),
        warns="",
        warns_needs=(),
        order=_number(place, tags, "order"),
        needs=() if kind == "raw" else read.reads,
        filters=_words(tags, "filters"),
        events=tuple(tuple(group.split("|")) for group in _words(tags, "events")),
        optional=_words(tags, "optional"),
        instead=_words(tags, "instead"),
        columns=columns,
        metrics=tuple(_metric(place, line, columns) for line in tags.get("metric", [])),
        source=_text(tags, "source"),
        materialize="materialize" in tags,
        cost=_number(place, tags, "cost"),
        shared="shared" in tags,
        source_events=tuple(e for g in _words(tags, "event") for e in g.split("|")),
        source_table=_text(tags, "table"),
        source_view=_text(tags, "from"),
        fields=_words(tags, "fields"),
        extra="extra" in tags,
        previous=_text(tags, "previous"),
        group="",
        indexes=tuple(tuple(line.split()) for line in tags.get("index", [])),
        notable="",
        repeats=(),
        context=(),
        key=_key(place, tags, columns),
        keys=_named(place, tags, "keys", columns) or leading_names([c.name for c in columns]),
        first=_named(place, tags, "first", columns),
        drawing=_drawing(place, tags),
        rule=_said(place, read_rule, tags, read.columns) if kind == "finding" else None,
        caution=_said(place, read_caution, name, tags, read.columns) if kind == "warning" else None,
    )


def _split_header(place: _Place, lines: list[str]) -> tuple[dict[str, list[str]], str]:
    tags: dict[str, list[str]] = {}
    current: list[str] | None = None
    for number, line in enumerate(lines):
        if _is_code(line):
            return tags, _without_last_comment(lines[number:])
        if match := _TAG.match(line):
            current = tags.setdefault(match[1], [])
            current.append(match[2].strip())
        elif current is not None and (match := _CONTINUATION.match(line)):
            current[-1] = f"{current[-1]} {match[1].strip()}".strip()
        else:
            current = None
    raise place.broken("has a header and no statement")


def _without_last_comment(lines: list[str]) -> str:
    """The statement; a comment behind it belongs to what comes next."""
    last = next(n for n in range(len(lines) - 1, -1, -1) if _is_code(lines[n]))
    return "\n".join(lines[: last + 1]).strip()


def _select(place: _Place, kind: str, statement: str) -> str:
    if not statement.endswith(";"):
        raise place.broken("statement does not end in ';'")
    body = statement[:-1].rstrip()
    if any(line.rstrip().endswith(";") and _is_code(line) for line in body.splitlines()):
        raise place.broken("has two statements, wanted a header before each")
    if kind in _SELECTS:
        return body
    match = _CREATE_VIEW.fullmatch(body)
    if match is None or match[1] != place.name:
        found = " ".join(body.split()[:4])
        raise place.broken(f"statement is '{found} ...', wanted 'CREATE VIEW {place.name} AS ...'")
    return match[2]


def _in_order(read: Select, told: tuple[Column, ...]) -> tuple[Column, ...]:
    """All columns of a statement; those that its header does not tell have no type."""
    by_name = {column.name: column for column in told}
    if not by_name.keys() <= set(read.columns):
        return told
    return tuple(by_name.get(name, Column(name, "", "")) for name in read.columns)


def _text(tags: dict[str, list[str]], tag: str) -> str:
    return " ".join(tags.get(tag, []))


def _words(tags: dict[str, list[str]], tag: str) -> tuple[str, ...]:
    joined = re.sub(r"\s*\|\s*", "|", ",".join(tags.get(tag, [])))
    return tuple(word for word in re.split(r"[,\s]+", joined) if word)


def _number(place: _Place, tags: dict[str, list[str]], tag: str) -> int:
    text = _text(tags, tag) or "0"
    if not text.isdecimal():
        raise place.broken(f"@{tag} is '{text}', wanted a whole number")
    return int(text)


def _timeline_columns(select: str) -> tuple[Column, ...]:
    """Those up to the last one that the statement names in its first list of columns."""
    listed = re.split(r"\bSELECT\b", _outside_parentheses(select), maxsplit=1)[-1]
    listed = re.split(r"\bFROM\b", listed, maxsplit=1)[0]
    named = [i for i, column in enumerate(_TIMELINE) if re.search(rf" AS {column.name}\b", listed)]
    return _TIMELINE[: max(_TIMELINE_MOST, *(i + 1 for i in named), 0)]


def _outside_parentheses(statement: str) -> str:
    depth, out = 0, []
    # A comment may have an apostrophe.
    for token in re.findall(r"'(?:[^']|'')*'|--[^\n]*|[()]|(?:(?!--)[^'()])+", statement):
        depth -= token == ")"
        if depth == 0 and token[0] != "'" and not token.startswith("--"):
            out.append(token)
        depth += token == "("
    return "".join(out)


def _drawing(place: _Place, tags: dict[str, list[str]]) -> Drawing:
    group = _GROUP.fullmatch(_text(tags, "group"))
    return Drawing(
        group=group[1] if group else "",
        about=(group[2] or "") if group else "",
        level=_text(tags, "level"),
        tracks=tuple(_track(place, line) for line in tags.get("track", [])),
        is_flat="flat" in tags,
        is_sorted="sorted" in tags,
        is_parent="parent" in tags,
        is_spanning="spanning" in tags,
    )


def _track(place: _Place, line: str) -> Track:
    match = _TRACK.fullmatch(line)
    if match is None:
        raise place.broken(f"@track is '{line}', wanted PATTERN [AXIS]: what it shows")
    return Track(match[1], match[2] or "", match[3])


def _key(place: _Place, tags: dict[str, list[str]], columns: tuple[Column, ...]) -> str:
    name = _text(tags, "key")
    if name and name not in [column.name for column in columns]:
        raise place.broken(f"@key {name} is no @column")
    return name


def _named(
    place: _Place, tags: dict[str, list[str]], tag: str, columns: tuple[Column, ...]
) -> tuple[str, ...]:
    names = _words(tags, tag)
    if strange := set(names) - {column.name for column in columns}:
        raise place.broken(f"@{tag} {min(strange)} is no @column")
    return names


def _said(place: _Place, read: Callable[..., _Said], *words: object) -> _Said:
    """What a header says in sentences."""
    try:
        return read(*words)
    except ValueError as error:
        raise place.broken(str(error)) from error


def _column(place: _Place, line: str) -> Column:
    words = line.split(maxsplit=2)
    if len(words) < 2:
        raise place.broken(f"@column is '{line}', wanted NAME TYPE and a description")
    return Column(words[0], words[1], " ".join(words[2:]))


def _metric(place: _Place, line: str, columns: tuple[Column, ...]) -> Metric:
    match = _METRIC.fullmatch(line)
    if match is None or match[2] not in DIRECTIONS:
        wanted = "|".join(DIRECTIONS)
        raise place.broken(f"@metric is '{line}', wanted COLUMN {wanted}: what it says")
    if match[1] not in [column.name for column in columns]:
        raise place.broken(f"@metric {match[1]} is no @column")
    return Metric(match[1], match[2], match[3])


def broken_library(path: Path, message: str) -> SetupError:
    """What is wrong with a file of the library."""
    return SetupError(
        "broken-sql-library",
        str(path),
        message,
        fix="make setup    # or point WBSCOPE_SQL_DIR at a whole sql/ folder",
    )
