# SPDX-License-Identifier: Apache-2.0
"""One file of the SQL library: its header of `-- @tag` lines and its statement."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wbscope.errors import SetupError

__all__ = [
    "Column",
    "Drawing",
    "Metric",
    "SqlFile",
    "Track",
    "broken_library",
    "empty_file",
    "read_sql_file",
]

_WINDOW = "window_start_ns"
KINDS = ("raw", "view", "query", "timeline")
DIRECTIONS = ("lower", "higher", "neutral")

_TAG = re.compile(r"--\s+@(\w+)\s*(.*)")
_CONTINUATION = re.compile(r"--\s{2,}([^@\s].*)")
_METRIC = re.compile(r"(\w+)\s+(\w+):\s+(\S.*)")
_GROUP = re.compile(r"([^:]+)(?::\s+(\S.*))?")
_TRACK = re.compile(r"(\S.*?)(?: \[(\w+)\])?:\s+(\S.*)")
_CREATE_VIEW = re.compile(r"CREATE VIEW (\w+) AS\s+(.*)", re.DOTALL)


@dataclass(frozen=True)
class Column:
    """One documented result column."""

    name: str
    type: str
    description: str


# The columns of every timeline; their files do not repeat them. Those from rank on may be missing.
_TIMELINE = (
    Column("ts", "INTEGER", "start, trace clock"),
    Column("dur", "INTEGER", "length; NULL for an instant or a counter"),
    Column("track", "TEXT", "name of the track; / separates levels, a backslash makes it a name's"),
    Column("name", "TEXT", "name of the slice; NULL for a counter"),
    Column("value", "REAL", "value of the counter; NULL = not known"),
    Column("unit", "TEXT", "unit of value; NULL for a slice or an instant"),
    Column("args", "TEXT", "more about the slice: key=value, separated by |"),
    Column("rank", "INTEGER", "place among the tracks of one level; NULL: as they come"),
    Column("tid", "INTEGER", "thread that the track belongs to; NULL: none"),
    Column("flows", "TEXT", "numbers of arrows to or from slices that have them too"),
)
_TIMELINE_MOST = 7


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
    """

    group: str
    about: str
    level: str
    tracks: tuple[Track, ...]
    is_flat: bool
    is_sorted: bool


@dataclass(frozen=True)
class SqlFile:
    """What a file defines, what it needs, and its SELECT without the semicolon.

    `filters` are those that a query takes: window, range, bdi, tid, cgroup.
    `explain` names the query whose rows say what this one's were decided on.
    `events` is a tuple of groups; a group is satisfied by any one of its events.
    `source_events`, `source_table`, `source_view` and `fields` are an adapter's:
    it reads `source_view`, which the engine makes over the first event of
    `source_events` that has a table, or over `source_table`. `extra` is one
    whose events are so frequent that ingest loads them only when asked to.
    `previous` asks ingest for prev_seq: of the same task (tid) or of any;
    `indexes` are columns that it makes indexes of. `key` is the integer column
    that tells a view's rows apart: made into a table, they are found by it.
    """

    path: Path
    kind: str
    name: str
    select: str
    summary: str
    grain: str
    title: str
    read: str
    explain: str
    order: int
    needs: tuple[str, ...]
    filters: tuple[str, ...]
    events: tuple[tuple[str, ...], ...]
    optional: tuple[str, ...]
    columns: tuple[Column, ...]
    metrics: tuple[Metric, ...]
    source: str
    materialize: bool
    source_events: tuple[str, ...]
    source_table: str
    source_view: str
    fields: tuple[str, ...]
    extra: bool
    previous: str
    indexes: tuple[tuple[str, ...], ...]
    key: str
    drawing: Drawing

    def is_of_windows(self) -> bool:
        """Rows of a query of windows begin with the window; others answer for the whole run."""
        return bool(self.columns) and self.columns[0].name == _WINDOW


_NOT_DRAWN = Drawing("", "", "", (), False, False)
_TEXTS = (
    "kind", "name", "select", "summary", "grain", "title", "read", "explain", "source",
    "source_table", "source_view", "previous", "key",
)  # fmt: skip
_LISTS = (
    "needs", "filters", "events", "optional", "columns", "metrics", "source_events", "fields",
    "indexes",
)  # fmt: skip


def empty_file(**facts: Any) -> SqlFile:
    """With these facts and nothing else."""
    nothing: dict[str, Any] = {
        **dict.fromkeys(_TEXTS, ""),
        **dict.fromkeys(_LISTS, ()),
        "path": Path(),
        "order": 0,
        "materialize": False,
        "extra": False,
        "drawing": _NOT_DRAWN,
    }
    return SqlFile(**(nothing | facts))


def read_sql_file(path: Path) -> SqlFile:
    """Parse one file; SetupError names the line when the text is not as agreed."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise broken_library(path, f"cannot be read: {error}") from error
    tags, statement = _split_header(path, text.splitlines())
    kind, name = _identity(path, tags)
    select = _select(path, kind, name, statement)
    columns = tuple(_column(path, line) for line in tags.get("column", []))
    if kind == "timeline":
        columns = _timeline_columns(select)
    return SqlFile(
        path=path,
        kind=kind,
        name=name,
        select=select,
        summary=_text(tags, "summary"),
        grain=_text(tags, "grain"),
        title=_text(tags, "title"),
        read=_text(tags, "read"),
        explain=_text(tags, "explain"),
        order=_order(path, tags),
        needs=_words(tags, "needs"),
        filters=_words(tags, "filters"),
        events=tuple(tuple(group.split("|")) for group in _words(tags, "events")),
        optional=_words(tags, "optional"),
        columns=columns,
        metrics=tuple(_metric(path, line, columns) for line in tags.get("metric", [])),
        source=_text(tags, "source"),
        materialize="materialize" in tags,
        source_events=tuple(e for g in _words(tags, "event") for e in g.split("|")),
        source_table=_text(tags, "table"),
        source_view=_text(tags, "from"),
        fields=_words(tags, "fields"),
        extra="extra" in tags,
        previous=_text(tags, "previous"),
        indexes=tuple(tuple(line.split()) for line in tags.get("index", [])),
        key=_key(path, tags, columns),
        drawing=_drawing(path, tags),
    )


def _split_header(path: Path, lines: list[str]) -> tuple[dict[str, list[str]], str]:
    tags: dict[str, list[str]] = {}
    current: list[str] | None = None
    for number, line in enumerate(lines):
        if line.strip() and not line.startswith("--"):
            return tags, "\n".join(lines[number:]).strip()
        if match := _TAG.match(line):
            current = tags.setdefault(match[1], [])
            current.append(match[2].strip())
        elif current is not None and (match := _CONTINUATION.match(line)):
            current[-1] = f"{current[-1]} {match[1].strip()}".strip()
        else:
            current = None
    raise broken_library(path, "has a header and no statement")


def _identity(path: Path, tags: dict[str, list[str]]) -> tuple[str, str]:
    kind = next(iter(tags), "")
    if kind not in KINDS:
        wanted = ", ".join(f"@{kind}" for kind in KINDS)
        raise broken_library(path, f"first tag is '@{kind}', wanted one of {wanted}")
    return kind, tags[kind][0]


def _select(path: Path, kind: str, name: str, statement: str) -> str:
    if not statement.endswith(";"):
        raise broken_library(path, "statement does not end in ';'")
    body = statement[:-1].rstrip()
    if kind == "query":
        return body
    match = _CREATE_VIEW.fullmatch(body)
    if match is None or match[1] != name:
        found = " ".join(body.split()[:4])
        raise broken_library(
            path, f"statement is '{found} ...', wanted 'CREATE VIEW {name} AS ...'"
        )
    return match[2]


def _text(tags: dict[str, list[str]], tag: str) -> str:
    return " ".join(tags.get(tag, []))


def _words(tags: dict[str, list[str]], tag: str) -> tuple[str, ...]:
    joined = re.sub(r"\s*\|\s*", "|", ",".join(tags.get(tag, [])))
    return tuple(word for word in re.split(r"[,\s]+", joined) if word)


def _order(path: Path, tags: dict[str, list[str]]) -> int:
    text = _text(tags, "order") or "0"
    if not text.isdecimal():
        raise broken_library(path, f"@order is '{text}', wanted a whole number")
    return int(text)


def _timeline_columns(select: str) -> tuple[Column, ...]:
    """Those up to the last one that the statement names in its first list of columns."""
    listed = re.split(r"\bSELECT\b", _outside_parentheses(select), maxsplit=1)[-1]
    listed = re.split(r"\bFROM\b", listed, maxsplit=1)[0]
    named = [i for i, column in enumerate(_TIMELINE) if re.search(rf" AS {column.name}\b", listed)]
    return _TIMELINE[: max(_TIMELINE_MOST, *(i + 1 for i in named), 0)]


def _outside_parentheses(statement: str) -> str:
    depth, out = 0, []
    for token in re.findall(r"'(?:[^']|'')*'|[()]|[^'()]+", statement):
        depth -= token == ")"
        if depth == 0 and token[0] != "'":
            out.append(token)
        depth += token == "("
    return "".join(out)


def _drawing(path: Path, tags: dict[str, list[str]]) -> Drawing:
    group = _GROUP.fullmatch(_text(tags, "group"))
    return Drawing(
        group=group[1] if group else "",
        about=(group[2] or "") if group else "",
        level=_text(tags, "level"),
        tracks=tuple(_track(path, line) for line in tags.get("track", [])),
        is_flat="flat" in tags,
        is_sorted="sorted" in tags,
    )


def _track(path: Path, line: str) -> Track:
    match = _TRACK.fullmatch(line)
    if match is None:
        raise broken_library(path, f"@track is '{line}', wanted PATTERN [AXIS]: what it shows")
    return Track(match[1], match[2] or "", match[3])


def _key(path: Path, tags: dict[str, list[str]], columns: tuple[Column, ...]) -> str:
    name = _text(tags, "key")
    if name and name not in [column.name for column in columns]:
        raise broken_library(path, f"@key {name} is no @column")
    return name


def _column(path: Path, line: str) -> Column:
    words = line.split(maxsplit=2)
    if len(words) < 2:
        raise broken_library(path, f"@column is '{line}', wanted NAME TYPE and a description")
    return Column(words[0], words[1], " ".join(words[2:]))


def _metric(path: Path, line: str, columns: tuple[Column, ...]) -> Metric:
    match = _METRIC.fullmatch(line)
    if match is None or match[2] not in DIRECTIONS:
        wanted = "|".join(DIRECTIONS)
        raise broken_library(path, f"@metric is '{line}', wanted COLUMN {wanted}: what it says")
    if match[1] not in [column.name for column in columns]:
        raise broken_library(path, f"@metric {match[1]} is no @column")
    return Metric(match[1], match[2], match[3])


def broken_library(path: Path, message: str) -> SetupError:
    """What is wrong with a file of the library."""
    return SetupError(
        "broken-sql-library",
        str(path),
        message,
        fix="make setup    # or point WBSCOPE_SQL_DIR at a whole sql/ folder",
    )
