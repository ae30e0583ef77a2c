# SPDX-License-Identifier: Apache-2.0
"""The values that an option or argument may have: of the library, of the run, of the kernel.

A Tab must not take long: of a run only a database that is there is read, none is ever made.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from wbscope.base.errors import WbscopeError
from wbscope.library.database import open_database, plain_tables
from wbscope.library.guard import stoppable
from wbscope.library.library import Library, load_library
from wbscope.library.own_sql import tables_of
from wbscope.library.sqlfile import SqlFile
from wbscope.run.ingested import kept_database
from wbscope.source.source import STDIN, find_source

Words = list[tuple[str, str]]

# More rows than these are not looked at for one Tab.
_MOST_NS = 10**9
_MOST_ROWS = 50_000
_RUNS = ("run", "runs", "source", "sources")
_FIXED: dict[str, Words] = {
    "backend": [("auto", ""), ("trace-cmd", ""), ("tracefs", "")],
    "clock": [("boot", "goes on in suspend"), ("mono", "also in older kernels")],
    "probe": [("auto", "where the kernel has them"), ("off", "")],
}


@dataclass(frozen=True)
class Line:
    """What stands before the word that is asked for.

    verb      "query", "baseline save"
    place     the parameter that the word belongs to, by its name in Python; "" = none
    values    of the other parameters, by their names
    """

    verb: str
    place: str
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)


def candidates(line: Line, word: str) -> tuple[Words, bool]:
    """What this place may hold, and whether more may follow each.

    The caller keeps what begins as the word does.
    """
    if line.place in _FIXED:
        return _FIXED[line.place], False
    find = _OF_PLACE.get(line.place)
    if find is None:
        return [], False
    library = load_library()
    if line.place in ("columns", "sort"):
        return _listed(_columns(library, line), word, signed=line.place == "sort"), True
    return find(library, line), line.place == "budget"


def _listed(columns: Words, word: str, *, signed: bool) -> Words:
    """A,B,C: what stands before the last comma stays."""
    before, comma, last = word.rpartition(",")
    sign = "-" if signed and last.startswith("-") else ""
    taken = before.split(",")
    return [(before + comma + sign + name, told) for name, told in columns if name not in taken]


def _named(files: Iterable[SqlFile]) -> Words:
    return [(file.name, file.summary) for file in files]


def _queries(library: Library, line: Line) -> Words:
    if line.verb == "queries":  # which tells of all
        return _named(library.files.values())
    if line.verb == "schema":
        from wbscope.render.schemadocs import DOCUMENTS

        return [(one.name, one.about) for one in DOCUMENTS]
    return _named(library.queries())


def _columns(library: Library, line: Line) -> Words:
    names = line.values.get("name", ())
    file = library.files.get(names[0]) if names else None
    return [(one.name, one.description) for one in file.columns] if file else []


def _metrics(library: Library, _line: Line) -> Words:
    from wbscope.compare.metrics import load_catalog

    return [(metric.family, metric.meaning) for metric in load_catalog(library).metrics]


def _profiles(library: Library, _line: Line) -> Words:
    from wbscope.record.recorder import CUSTOM

    return [*((one.name, "") for one in library.profiles), (CUSTOM, "only what --event names")]


def _figures(_library: Library, _line: Line) -> Words:
    from wbscope.plot.figures import FIGURES

    return [(figure.name, figure.title) for figure in FIGURES]


def _events(library: Library, line: Line) -> Words:
    if line.verb != "record":
        find = "SELECT event, count FROM main.event_counts WHERE count > 0 ORDER BY event"
        return [
            (str(event), f"{count} in this run")
            for event, count in _rows(library, line, "event_counts", find)
        ]
    from wbscope.record.choose import available_events, mounted_tracefs

    tracefs = mounted_tracefs()
    if tracefs is not None:
        try:
            return [(event, "") for event in sorted(available_events(tracefs))]
        except OSError:
            pass  # only root reads it: those that are known everywhere
    known = {event for profile in library.profiles for event in profile.names}
    return [(event, "") for event in sorted(known)]


def _bdis(library: Library, line: Line) -> Words:
    find = "SELECT bdi, device, mount FROM main.bdi ORDER BY bdi"
    named = [
        (str(bdi), " ".join(str(one) for one in more if one))
        for bdi, *more in _rows(library, line, "bdi", find)
    ]
    if named:
        return named
    table = "ev_balance_dirty_pages"
    find = f"SELECT DISTINCT bdi FROM (SELECT bdi FROM main.{table} LIMIT {_MOST_ROWS})"
    return [(str(bdi), "") for (bdi,) in _rows(library, line, table, find)]


def _tids(library: Library, line: Line) -> Words:
    find = "SELECT tid, comm FROM main.task ORDER BY events_count DESC, tid LIMIT 500"
    return [(str(tid), str(comm)) for tid, comm in _rows(library, line, "task", find)]


def _tasks(library: Library, line: Line) -> Words:
    tids = _tids(library, line)
    names = dict.fromkeys(comm for _, comm in tids)
    return [*((comm, "") for comm in names if comm.isprintable()), *tids]


def _cgroups(library: Library, line: Line) -> Words:
    find = "SELECT cgroup_ino, path FROM main.cgroup ORDER BY path"
    rows = _rows(library, line, "cgroup", find)
    return [(str(path), str(ino)) for ino, path in rows if str(path).isprintable()]


def _rows(library: Library, line: Line, table: str, find: str) -> list[tuple[object, ...]]:
    """Of the run that the line names, if its database is there; a Tab makes none."""
    named = [text for name in _RUNS for text in line.values.get(name, ())]
    if not named or named[0] == STDIN:
        return []
    try:
        database = kept_database(find_source(str(Path(named[0]).expanduser())), library)
        if database is None:
            return []
        connection, _ = open_database(database, named[0])
        with closing(connection):
            if table not in tables_of(connection, named[0]):
                return []
            plain_tables(connection, named[0], [table])
            with stoppable(connection, _MOST_NS):
                return connection.execute(find).fetchall()
    except (WbscopeError, OSError, sqlite3.Error):
        return []


_OF_PLACE: dict[str, Callable[[Library, Line], Words]] = {
    "bdi": _bdis,
    "budget": _metrics,
    "cgroup": _cgroups,
    "columns": _columns,
    "event": _events,
    "events": _events,
    "figures": _figures,
    "metric": _metrics,
    "name": _queries,
    "profile": _profiles,
    "section": _queries,
    "sort": _columns,
    "task": _tasks,
    "tid": _tids,
}
