# SPDX-License-Identifier: Apache-2.0
"""One run as its files of a dataset: everything that is asked of it, once."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wbscope.base.errors import EvidenceError, InputError
from wbscope.base.result import Notice, Result
from wbscope.base.system import as_utf8
from wbscope.base.version import __version__
from wbscope.compare.baseline import baseline_text
from wbscope.compare.measure import measure
from wbscope.compare.metrics import load_catalog
from wbscope.compare.rundata import RunData
from wbscope.fleet.layout import (
    DEVICES,
    FACTS,
    FLEET_SCHEMA,
    METRICS,
    OWN_TABLES,
    RUNS,
    UNKNOWN,
    WARNINGS,
    Partition,
    data_path,
    of_run,
    partition_value,
    table_of,
    write_table,
)
from wbscope.fleet.redact import Redaction, redact_database
from wbscope.library.library import Library, load_library
from wbscope.library.sqlite import SqliteEngine
from wbscope.measure.metric import Scalars, split_name
from wbscope.run.agreement import Agreement, agreement_of
from wbscope.run.filters import Filters
from wbscope.run.ingested import ingest
from wbscope.run.run import Run
from wbscope.source.source import Kind, Source, find_source

MANIFEST_SCHEMA = "wbscope.manifest/1"

_HASH_DIGITS = 32
_SHOWN = "RUN"  # where a run lay is nothing to a reader of the dataset
_WRONG = ("severe", "warning", "note")
# Of a run that lasts too long for windows, the other questions have answers.
_NOT_ASKED = "run-too-long"
# The file `devices`: == NAME and facts.
_DISK = re.compile(r"^== (\S+)\n((?:(?!== ).*\n)*)", re.MULTILINE)
_MODEL = re.compile(r"^device/(vendor|model) (\S.*)$", re.MULTILINE)
_NO_NAME = ("", "(none)", "localhost")
_MOST_UNIX_S = 1 << 33

Known = Callable[[str], bool]


@dataclass(frozen=True)
class FileFacts:
    """A written file: rows, bytes and sha256."""

    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class RunFiles:
    """The files of a run in a folder, TABLE.parquet each, what its manifest says, its warnings.

    A table without rows has no file.
    """

    run: str
    partition: Partition
    files: dict[str, FileFacts]
    manifest: dict[str, Any]
    warnings: tuple[Notice, ...] = ()

    def paths(self) -> dict[str, str]:
        """Table -> where its file belongs below the dataset; `runs` last."""
        ordered = sorted(self.files, key=lambda table: (table == RUNS, table))
        return {table: data_path(table, self.partition, self.run) for table in ordered}


@dataclass(frozen=True)
class _Places:
    """What is known of a run from outside of its events, and from where."""

    host: str | None
    host_basis: str
    unix_s: int | None
    date_basis: str

    @property
    def date(self) -> str:
        if self.unix_s is None:
            return UNKNOWN
        return f"{datetime.fromtimestamp(self.unix_s, UTC):%Y-%m-%d}"


class _AskedOnce(Run):
    """A run whose answers are kept: metrics are made of the same ones as tables."""

    def __init__(self, source: Source, engine: SqliteEngine, library: Library) -> None:
        super().__init__(source, engine, library)
        self._answers: dict[tuple[str, Filters], Result] = {}

    def ask(self, name: str, filters: Filters) -> Result:
        key = (name, filters)
        if key not in self._answers:
            self._answers[key] = super().ask(name, filters)
        return self._answers[key]


def content_hash(source: Source) -> str:
    """The name of a run: of all that its database is made from, wherever that lies.

    A lone trace is the same run as a folder with nothing else in it.

    Raises: InputError.
    """
    told = []
    try:
        for path in source.inputs():
            name = "" if path == source.trace else path.name
            told.append(f"{name}\0{_digest(path)}\n")
    except OSError as error:
        raise InputError(
            "cannot-read",
            str(source.path),
            f"cannot be read: {error.strerror or error}",
            at=None if error.filename is None else str(error.filename),
            fix=f"ls -l {shlex.quote(str(source.path))}",
        ) from error
    return hashlib.sha256("".join(told).encode()).hexdigest()[:_HASH_DIGITS]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_run(
    text: str,
    folder: Path,
    *,
    scratch: Path | None = None,
    redaction: Redaction | None = None,
    library: Library | None = None,
    known: Known = lambda _run: False,
    found: Callable[[str], None] = lambda _run: None,
    called: str | None = None,
) -> RunFiles | None:
    """Ask a run everything and write TABLE.parquet for each answer with rows, synced.

    None when its content is `known`; `found` is told the hash before anything else can go wrong.
    `scratch` (else `folder`) has the database for as long as it is read; `called` is what the
    source is told to be, where `text` is a copy of it.

    Raises: WbscopeError for a bad run, OSError such as a full disk.
    """
    library = library or load_library()
    named = find_source(text)
    with named.at_hand() as source:
        run_id = content_hash(source)
        found(run_id)
        if known(run_id):
            return None
        with _database(source, scratch or folder, library, redaction) as database:
            engine = SqliteEngine(database, _SHOWN, library)
            shown = Source(Path(_SHOWN), database, Kind.DATABASE)
            with _AskedOnce(shown, engine, library) as run:
                told = named.name if redaction is None else redaction.path(named.name)
                place = called or text
                place = place if redaction is None else redaction.path(place)
                names = as_utf8(told), as_utf8(place)
                return _Written(run, run_id, folder, *names, _places(run, named)).files()


@contextmanager
def _database(
    source: Source, folder: Path, library: Library, redaction: Redaction | None
) -> Iterator[Path]:
    """The run's database; a file of our own unless it is only read."""
    if source.kind is Kind.DATABASE and redaction is None:
        yield source.trace
        return
    own = folder / "run.db"
    if source.kind is Kind.DATABASE:
        shutil.copyfile(source.trace, own)
    else:
        ingest(source, own, library, force=True, views=False)
    try:
        if redaction is not None:
            redact_database(own, redaction)
        yield own
    finally:
        own.unlink(missing_ok=True)


def _places(run: Run, source: Source) -> _Places:
    """Host and time: of meta.json, else of uname and of the trace's file."""
    meta = _object(run.texts(["meta.json"]).get("meta.json", ""))
    machine = meta.get("machine")
    uname = str(run.recorded().meta.get("uname") or "").split()
    host, host_basis = None, "none"
    if isinstance(machine, dict) and _is_name(machine.get("hostname")):
        host, host_basis = str(machine["hostname"]), "meta.json"
    elif len(uname) > 1 and _is_name(uname[1]):
        host, host_basis = uname[1], "uname"
    unix_s = meta.get("written_unix_s")
    if isinstance(unix_s, int) and 0 < unix_s < _MOST_UNIX_S:
        return _Places(host, host_basis, unix_s, "meta.json")
    modified = int(source.trace.stat().st_mtime)
    if 0 < modified < _MOST_UNIX_S:
        return _Places(host, host_basis, modified, "mtime")
    return _Places(host, host_basis, None, "none")


@dataclass
class _Written:
    """Asks an open run and writes what it says."""

    run: _AskedOnce
    run_id: str
    folder: Path
    name: str
    source: str
    places: _Places

    def files(self) -> RunFiles:
        answers, lacking = self._answers()
        data = self._data(answers)
        tables = {name: of_run(self.run_id, result) for name, result in answers.items()}
        own = {
            RUNS: [self._run_row(data, answers)],
            METRICS: list(_metric_rows(data)),
            FACTS: [(f, None if v is None else str(v)) for f, v in data.fingerprint.items()],
            DEVICES: list(_device_rows(self.run)),
            WARNINGS: [(notice.slug, notice.message) for notice in data.warnings],
        }
        for table, rows in own.items():
            tables[table] = OWN_TABLES[table], [(self.run_id, *row) for row in rows]
        files = {}
        for table, (columns, rows) in tables.items():
            if rows:
                path = self.folder / f"{table}.parquet"
                write_table(table_of(table, columns, rows), path)
                files[table] = _facts(path, len(rows))
        for table in files:
            _sync(self.folder / f"{table}.parquet")
        partition = self._partition()
        empty = sorted(table for table, (_, rows) in tables.items() if not rows)
        made = RunFiles(self.run_id, partition, files, {}, data.warnings)
        return replace(made, manifest=self._manifest(made, data, answers, lacking, empty))

    def _answers(self) -> tuple[dict[str, Result], dict[str, str]]:
        """Each canned query, and why it has no answer."""
        answers, lacking = {}, {}
        names = [query.name for query in self.run.library.queries()]
        for name in self.run.expect(names):
            try:
                answers[name] = self.run.ask(name, Filters())
            except EvidenceError as error:
                lacking[name] = error.message
            except InputError as error:
                if error.slug != _NOT_ASKED:
                    raise
                lacking[name] = error.message
        return (
            {name: answers[name] for name in names if name in answers},
            {name: lacking[name] for name in names if name in lacking},
        )

    def _data(self, answers: dict[str, Result]) -> RunData:
        """The run as compare and gate have it."""
        data = measure(self.run, self.name, load_catalog(self.run.library))
        titles = self.run.library.files
        found = answers["findings"].records() if "findings" in answers else []
        return replace(
            data,
            checked=self._faults(),
            findings={one["id"]: titles[one["id"]].title for one in found if _is_wrong(one)},
        )

    def _faults(self) -> tuple[str, ...]:
        """What speaks against the trace; that nothing can be compared does, too, as in a gate."""
        try:
            return agreement_of(self.run).faults
        except EvidenceError as error:
            return (error.message,)

    def _partition(self) -> Partition:
        release = self.run.recorded().meta.get("kernel_release")
        return Partition(
            self.places.date,
            partition_value(self.places.host),
            partition_value(None if release is None else str(release)),
        )

    def _run_row(self, data: RunData, answers: dict[str, Result]) -> tuple[Any, ...]:
        meta = self.run.recorded().meta
        verdicts = _verdicts(answers)
        check = answers.get("check")
        agreed = None if check is None else Agreement(_SHOWN, check)
        lost = meta.get("lost_events_count")
        about = replace(data, scalars=Scalars())
        return (
            data.source_id,
            self.name,
            self.source,
            self.places.host,
            self.places.host_basis,
            meta.get("kernel_release"),
            data.fingerprint.get("machine"),
            self.places.unix_s,
            self.places.date_basis,
            None if data.session is None else data.session.name,
            meta.get("events_count"),
            meta.get("loaded_count"),
            None if lost is None else int(lost),
            self.run.duration_ns(),
            int(bool(data.damaged)),
            verdicts.get("agrees", 0),
            verdicts.get("differs", 0),
            len(agreed.faults) if agreed and agreed.is_compared else None,
            meta.get("schema_version"),
            FLEET_SCHEMA,
            __version__,
            baseline_text([about]),
        )

    def _manifest(
        self,
        made: RunFiles,
        data: RunData,
        answers: dict[str, Result],
        lacking: dict[str, str],
        empty: list[str],
    ) -> dict[str, Any]:
        """What is to be known of a run without opening a file of it."""
        meta = self.run.recorded().meta
        paths = made.paths()
        partition = made.partition
        return {
            "schema": MANIFEST_SCHEMA,
            "fleet_schema": FLEET_SCHEMA,
            "run": made.run,
            "recording": data.source_id,
            "name": self.name,
            "source": self.source,
            "date": partition.date,
            "date_basis": self.places.date_basis,
            "host": partition.host,
            "host_basis": self.places.host_basis,
            "kernel": partition.kernel,
            "database_schema": meta.get("schema_version"),
            "wbscope_version": __version__,
            "damaged": bool(data.damaged),
            "lost_events_count": meta.get("lost_events_count"),
            "warnings": [[notice.slug, notice.message] for notice in data.warnings],
            "checks": _verdicts(answers),
            "faults": None if data.checked is None else list(data.checked),
            "lacking": lacking,
            "empty": empty,
            "files": {
                paths[table]: {
                    "table": table,
                    "rows": facts.rows,
                    "bytes": facts.bytes,
                    "sha256": facts.sha256,
                }
                for table, facts in made.files.items()
            },
        }


def _metric_rows(data: RunData) -> Iterator[tuple[Any, ...]]:
    for place, (name, (metric, value)) in enumerate(data.scalars.items()):
        spread = data.scalars.spreads.get(name)
        family = split_name(name)[0]
        about = metric.unit, metric.better, metric.meaning, metric.source, metric.not_across
        spreads = (None, None) if spread is None else (spread.sd, spread.n)
        yield (place, name, family, *about, value, *spreads)


def _device_rows(run: Run) -> Iterator[tuple[Any, ...]]:
    """What each backing device is: its name, where it is mounted, its model."""
    names = run.names()
    disks = dict(_DISK.findall(run.texts(["devices"]).get("devices", "")))
    for bdi in names.devices:
        device = names.device(bdi)
        facts = dict(_MODEL.findall(disks.get(device, "")))
        model = " ".join(facts[key] for key in ("vendor", "model") if key in facts)
        yield bdi, device, " ".join(names.mounts.get(bdi, ())), model or None


def _verdicts(answers: dict[str, Result]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in answers["check"].records() if "check" in answers else []:
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
    return counts


def _is_wrong(finding: dict[str, Any]) -> bool:
    return finding["severity"] in _WRONG


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.strip() not in _NO_NAME


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _facts(path: Path, rows: int) -> FileFacts:
    return FileFacts(rows, path.stat().st_size, _digest(path))


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
