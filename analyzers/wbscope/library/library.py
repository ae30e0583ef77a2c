# SPDX-License-Identifier: Apache-2.0
"""The SQL library: all objects of one sql/ folder, by name and in order of need.

What is kept is an optimisation only: where it is missing, damaged or of another library, the files
are read.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import io
import json
import os
import pickle
import re
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import Any

from wbscope.base.cache import entry_of, refuse_foreign, trim_cache, used
from wbscope.base.errors import QueryError, SetupError
from wbscope.base.outputs import private_output
from wbscope.base.result import Column
from wbscope.base.version import __version__
from wbscope.library.catalog import Catalog, Profile, read_catalog, read_profiles, sqlite_adapters
from wbscope.library.engine import PARAMS, WARNINGS
from wbscope.library.rules import Check, Evidence, Hole, Rule, Setting, Template, Term
from wbscope.library.sqlfile import Drawing, Metric, SqlFile, Track, broken_library, read_sql_file
from wbscope.library.statements import Macro, Select, read_macros

Parsed = tuple[dict[str, SqlFile], tuple[Profile, ...]]
"""The objects of a library by name, and its profiles."""

_SUFFIX = ".library"
_PARTS: Sequence[type] = (
    Check, Column, Drawing, Evidence, Hole, Metric, Profile, Rule, Setting, SqlFile, Template, Term,
    Track, type(Path()),
)  # fmt: skip
# Made of nothing but these, so that reading a file runs no code that it names.
_ALLOWED: dict[tuple[str, str], type] = {(one.__module__, one.__name__): one for one in _PARTS}


def state_of(root: Path, engine: str, makers: Iterable[Path]) -> str:
    """Another text for another library for this engine, whose files are below `root`.

    `makers` are the folders of what its adapters are made with.
    """
    states = [_state_of(folder) for folder in (root, Path(__file__).parent, *makers)]
    return json.dumps([__version__, engine, str(root), states])


def kept_or_read(state: str, read: Callable[[], Parsed]) -> Parsed:
    """What `read` gives, from the cache where it has it of the same state.

    Raises: SetupError of `read`; never for the cache.
    """
    try:
        entry = entry_of([state], _SUFFIX)
        if used(entry):
            files, profiles = _Reader(io.BytesIO(entry.read_bytes())).load()
            return files, profiles
    except (OSError, SetupError):
        return read()
    except Exception:  # whatever damage makes of it, the files are there
        entry.unlink(missing_ok=True)
    parsed = read()
    with contextlib.suppress(OSError, SetupError):
        refuse_foreign(entry)
        with private_output(entry) as private:
            private.write_bytes(pickle.dumps(parsed, protocol=pickle.HIGHEST_PROTOCOL))
        trim_cache(keep=entry)
    return parsed


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a library")
        return _ALLOWED[module, name]


def _state_of(folder: Path) -> list[tuple[str, int, int, int]]:
    """Another value for another text of any file in it, in the order of names.

    What cannot be read is left out: who reads the files says what is wrong.
    """
    found = []
    waiting = [os.path.realpath(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    waiting.append(entry.path)
                elif entry.name.endswith((".sql", ".toml", ".py", ".formats")):
                    status = entry.stat()
                    found.append(
                        (entry.path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                    )
    return sorted(found)


ENGINES = ("sqlite", "perfetto")
_FOLDERS = ("views", "queries", "findings", "timelines", "warnings")
# What is asked, and made only for who reads it.
_QUESTIONS = ("query", "finding")
_CALL = re.compile(r"\b\w+!(?=\()")
_CATALOG = "catalog/events.toml"
_PROFILES = "catalog/profiles.toml"


@dataclass(frozen=True)
class Library:
    """The objects by name, and what profiles record."""

    files: dict[str, SqlFile]
    profiles: tuple[Profile, ...] = ()

    def digest(self) -> str:
        """Another text for another library."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        told = ((n, f.select, f.key, repr(f.drawing)) for n, f in self.files.items())
        return hashlib.sha256(repr(sorted(told)).encode()).hexdigest()

    def queries(self) -> list[SqlFile]:
        """The canned queries, by name."""
        return self._of_kind("query")

    def findings(self) -> list[SqlFile]:
        """The rules of findings, by name."""
        return self._of_kind("finding")

    def timelines(self) -> list[SqlFile]:
        """The timeline views, in the order in which they are shown."""
        return sorted(self._of_kind("timeline"), key=lambda file: (file.order, file.name))

    def objects(self) -> list[str]:
        """The names of all views: everything but the queries and findings."""
        return [name for name, file in self.files.items() if file.kind not in _QUESTIONS]

    def answers(self, tables: Container[str]) -> list[str]:
        """The queries that are views, too: not one that a table of the file is."""
        return [query.name for query in self.queries() if query.name not in tables]

    def query(self, name: str) -> SqlFile:
        """The query of this name; QueryError with the closest names otherwise."""
        file = self.files.get(name)
        if file is not None and file.kind == "query":
            return file
        names = [query.name for query in self.queries()]
        close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        raise QueryError(
            "unknown-query",
            name,
            f"is none of the {len(names)} queries",
            have=", ".join(close) or ", ".join(names),
            fix="wbscope queries",
        )

    def find(self, name: str) -> SqlFile:
        """The query or view of this name; QueryError with the closest names otherwise."""
        if name in self.files:
            return self.files[name]
        close = difflib.get_close_matches(name, self.files, n=5, cutoff=0.5)
        raise QueryError(
            "unknown-query",
            name,
            f"is none of the {len(self.queries())} queries and {len(self.objects())} views",
            have=", ".join(close) or None,
            fix="wbscope queries",
        )

    def closure(self, names: Iterable[str], given: Container[str] = ()) -> list[str]:
        """These objects and all they need, each after what it needs.

        What is given is left out, and with it what only it needs.
        """
        found: set[str] = set()
        waiting = [name for name in names if name not in given]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += [need for need in self.files[name].needs if need not in given]
        return sorted(found, key=self._places.__getitem__)

    @cached_property
    def _places(self) -> dict[str, int]:
        """The place of each in an order in which it comes after what it needs."""
        graph = {name: self.files[name].needs for name in sorted(self.files)}
        return {name: place for place, name in enumerate(TopologicalSorter(graph).static_order())}

    def depending(self, columns: Iterable[str]) -> frozenset[str]:
        """The objects whose rows may differ where these columns of wb_params do.

        A reader of wb_params names the columns that it looks at (a unit test looks).
        """
        words = re.compile(rf"\b(?:{'|'.join(columns) or '(?!)'})\b")
        found: set[str] = set()
        for name in self.closure(self.files):
            file = self.files[name]
            is_reader = PARAMS in file.needs and words.search(file.select)
            if is_reader or not found.isdisjoint(file.needs):
                found.add(name)
        return frozenset(found)

    def events(self) -> list[str]:
        """Every event an adapter can read: what a default ingest loads."""
        files = (file for file in self.files.values() if not file.extra)
        return sorted({event for file in files for event in file.source_events})

    def load_plan(self) -> str:
        """What the tables of events have besides the fields: ingest/src/load_plan.h, as JSON."""
        plan: dict[str, dict[str, Any]] = {}
        for file in self.files.values():
            for event in file.source_events:
                made = plan.setdefault(event, {})
                if file.previous:
                    made["previous"] = file.previous
                    made["group"] = file.group
                if file.repeats:
                    made["repeats"] = file.repeats
                if "common_flags" in file.fields:
                    made["flags"] = True
                if file.context:
                    made["context"] = dict(file.context)
                indexes: list[dict[str, Any]] = [{"columns": one} for one in file.indexes]
                if file.notable:
                    columns, _, where = file.notable.partition(" WHERE ")
                    indexes.append({"columns": columns.split(), "where": where})
                made["indexes"] = [*made.get("indexes", ()), *indexes]
        return json.dumps({event: made for event, made in plan.items() if any(made.values())})

    def _of_kind(self, kind: str) -> list[SqlFile]:
        files = (file for file in self.files.values() if file.kind == kind)
        return sorted(files, key=lambda file: file.name)


Adapters = Callable[[Catalog], Iterable[SqlFile]]
"""What an engine makes of the catalog."""


_loaded: dict[str, Library] = {}


def load_library(
    folder: Path | None = None,
    engine: str = ENGINES[0],
    adapters: Adapters = sqlite_adapters,
    makers: Sequence[Path] = (),
    query_prefix: str = "",
) -> Library:
    """Read the library from `folder`, or that of this installation, which is read once for all.

    This process has each once until a file of it changes, and the cache that of the installation.

    Its views, queries and timelines are one text; the adapters below are the engine's: made of
    the catalog, and what lies in adapters/ENGINE besides. `makers` are the folders with all that
    `adapters` reads beside the library, its code among it. Whatever reads a query reads a view
    whose name begins with `query_prefix`.

    Raises: SetupError.
    """
    root = find_sql_dir() if folder is None else folder

    def read() -> Parsed:
        return _read(root, engine, adapters, query_prefix)

    state = state_of(root, engine, makers)
    if state not in _loaded:
        parsed = kept_or_read(state, read) if folder is None else read()
        _loaded[state] = Library(*parsed)
    return _loaded[state]


def _read(root: Path, engine: str, adapters: Adapters, query_prefix: str) -> Parsed:
    catalog = root / _CATALOG
    found = list(adapters(read_catalog(catalog))) if catalog.exists() else []
    path = root / "macros.sql"
    macros = read_macros(path.read_text(encoding="utf-8")) if path.exists() else []
    for part in (f"adapters/{engine}", *_FOLDERS):
        for path in sorted((root / part).glob("*.sql")):
            found += [_expanded(file, macros) for file in read_sql_file(path)]
    files: dict[str, SqlFile] = {}
    for file in found:
        if file.name in files:
            there = files[file.name].path
            raise broken_library(file.path, f"{file.name} is also in {there}")
        files[file.name] = file
    if not files:
        raise broken_library(root, f"no .sql file in {', '.join(_FOLDERS)}")
    _add_warnings(files)
    _borrow_events(files)
    _check_needs(files)
    _inherit_columns(files)
    if query_prefix:
        _prefix_queries(files, query_prefix)
    return files, read_profiles(root / _PROFILES)


def _expanded(file: SqlFile, macros: Iterable[Macro]) -> SqlFile:
    select = file.select
    try:
        for macro in macros:
            select = macro.expand(select)
    except ValueError as error:
        raise broken_library(file.path, f"{file.name}: {error}") from error
    if left := _CALL.search(select):
        raise broken_library(file.path, f"{file.name}: {left[0]} is none of sql/macros.sql")
    if select == file.select:
        return file
    # What a macro reads is read by who calls it.
    return replace(file, select=select, needs=Select(select).reads)


def find_sql_dir() -> Path:
    """$WBSCOPE_SQL_DIR, else sql/ in the package, else sql/ of the checkout."""
    if chosen := os.environ.get("WBSCOPE_SQL_DIR"):
        return Path(chosen)
    package = Path(__file__).resolve().parents[1]
    installed = package / "sql"
    return installed if installed.is_dir() else package.parents[1] / "sql"


def _check_needs(files: dict[str, SqlFile]) -> None:
    for file in files.values():
        for need in file.needs:
            # A query is a view, too; what a finding asks is told, not built upon.
            if need not in files or files[need].kind == "finding":
                told = f"{file.name} reads {need}, which no view defines"
                raise broken_library(file.path, told)
            if files[need].is_private() and files[need].path != file.path:
                told = f"{file.name} reads {need}, which is private to {files[need].path.name}"
                raise broken_library(file.path, told)
        if file.explain and (file.explain not in files or files[file.explain].kind != "query"):
            told = f"{file.name}: @explain {file.explain}, which is no query"
            raise broken_library(file.path, told)
    try:
        TopologicalSorter({f.name: f.needs for f in files.values()}).prepare()
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        first = files[error.args[1][0]]
        raise broken_library(first.path, f"needs itself: {circle}") from error


def _borrow_events(files: dict[str, SqlFile]) -> None:
    """Where @events or @optional says `as NAME`, they are those of that object."""
    for file in list(files.values()):
        told = {"events": [*chain.from_iterable(file.events)], "optional": [*file.optional]}
        for tag, words in told.items():
            if words[:1] != ["as"]:
                continue
            if len(words) != 2 or words[1] not in files:
                said = " ".join(words)
                raise broken_library(file.path, f"{file.name}: @{tag} {said}, which is no object")
            taken: dict[str, Any] = {tag: getattr(files[words[1]], tag)}
            files[file.name] = replace(files[file.name], **taken)


def _add_warnings(files: dict[str, SqlFile]) -> None:
    """Let wb_warning be the view of all warnings, those of every answer first."""
    told = [(file, file.caution) for file in files.values() if file.caution is not None]
    for file, _ in told:
        del files[file.name]
    if WARNINGS not in files:
        return
    view = files[WARNINGS]
    told.sort(key=lambda one: one[1].scopes != ("*",))
    selects = [view.select, *(caution.select(file.select) for file, caution in told)]
    needs = dict.fromkeys(chain(view.needs, *(file.needs for file, _ in told)))
    files[WARNINGS] = replace(view, select="\nUNION ALL\n".join(selects), needs=tuple(needs))
    for scope in dict.fromkeys(chain.from_iterable(caution.scopes for _, caution in told)):
        name = WARNINGS if scope == "*" else scope
        if name not in files:
            raise broken_library(view.path, f"@scope {scope} is no query")
        mine = [(file, caution) for file, caution in told if scope in caution.scopes]
        files[name] = replace(
            files[name],
            warns="\nUNION ALL\n".join(caution.words(file.select) for file, caution in mine),
            warns_needs=tuple(dict.fromkeys(chain.from_iterable(file.needs for file, _ in mine))),
        )


def _prefix_queries(files: dict[str, SqlFile], prefix: str) -> None:
    queries = {file.name for file in files.values() if file.kind == "query"}

    def prefixed(text: str, needs: Iterable[str]) -> str:
        read = "|".join(queries.intersection(needs)) or "(?!)"
        return re.sub(rf"\b(FROM|JOIN)(\s+)({read})\b", rf"\1\2{prefix}\3", text)

    for name, file in files.items():
        select, warns = prefixed(file.select, file.needs), prefixed(file.warns, file.warns_needs)
        files[name] = replace(file, select=select, warns=warns)


def _inherit_columns(files: dict[str, SqlFile]) -> None:
    """Describe the columns without @column as those that they are passed through from.

    Where some are neither, an object has those of its header only.
    """
    graph = {name: file.needs for name, file in files.items()}
    for name in TopologicalSorter(graph).static_order():
        file = files[name]
        if all(column.type for column in file.columns):
            continue
        select = Select(file.select)
        columns = tuple(_described(files, select, column) for column in file.columns)
        if not all(column.type for column in columns):
            columns = tuple(column for column in file.columns if column.type)
        files[name] = replace(file, columns=columns)


def _described(files: dict[str, SqlFile], select: Select, column: Column) -> Column:
    """This column, from its header or from the only view that it is passed through from."""
    if column.type:
        return column
    found = {one for n in select.passed(column.name) for one in files[n].columns}
    same = [one for one in found if one.name == column.name]
    return same[0] if len(same) == 1 else column
