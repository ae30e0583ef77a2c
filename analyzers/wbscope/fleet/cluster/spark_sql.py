# SPDX-License-Identifier: Apache-2.0
"""A dataset in Spark SQL, and many runs into a dataset on a cluster.

A task that dies is done again by Spark; what it had published is known by then. So every run is in
the dataset once, and what came of it is counted from what was there before.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wbscope.base.errors import InputError, QueryError, SetupError, WbscopeError
from wbscope.base.result import Notice, unique_names
from wbscope.base.units import seconds
from wbscope.fleet.cluster.hadoop_dataset import HadoopDataset, make_dataset_at
from wbscope.fleet.cluster.hadoop_files import (
    fetched,
    files_of_session,
    files_of_worker,
    is_uri,
    settings_of,
    sources_at,
)
from wbscope.fleet.cluster.spark import ATTEMPTS, cluster_failed
from wbscope.fleet.dataset import Dataset, files_by_table
from wbscope.fleet.harvest import Each, Fetch, Outcome, as_named, ingest_into, ingest_sources
from wbscope.fleet.layout import ERRORS, PARTITIONS, columns_of_table, table_names
from wbscope.fleet.questions import (
    Stored,
    losses_of,
    not_a_select,
    plain_value,
    tables_in,
    too_late,
)
from wbscope.fleet.redact import Redaction
from wbscope.library.engine import Rows
from wbscope.library.guard import check_is_text
from wbscope.library.library import load_library

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


_TYPES = {"INTEGER": "BIGINT", "REAL": "DOUBLE", "TEXT": "STRING"}
# Functions that call any Java method, and what can spell their names; a SELECT is only to read.
_CALLS = re.compile(r"\b(reflect|try_reflect|java_method|identifier)\b", re.IGNORECASE)
_PROGRAM = re.compile(r"^[\s:+|'-]*ScriptTransformation\b", re.MULTILINE)
_AGAIN_SECONDS = 0.1
_GLOB = re.compile(r"([\\{}\[\]*?])")


class SparkEngine:
    """A FleetEngine over the runs that have a manifest.

    A dataset in a folder lies where every executor has it under the same path.
    """

    def __init__(self, session: SparkSession, dataset: Stored, limit_ns: int | None = None) -> None:
        """`limit_ns` is what one SELECT may take.

        Raises: InputError for a dataset that cannot be read.
        """
        # Of its own, and with each table that was asked for: thousands of files are listed once.
        self._session = session.newSession()
        self._made: set[str] = set()
        self._dataset = dataset
        self._limit_ns = limit_ns
        self._library = load_library()
        manifests = dataset.manifests()
        self.losses = losses_of(manifests.values())
        self._files = files_by_table(manifests.values())
        self._files[ERRORS] = list(dataset.errors())
        # Files that one version wrote have the same columns.
        self._version = {
            file: (one["fleet_schema"], one["database_schema"], one["wbscope_version"])
            for one in manifests.values()
            for file in one["files"]
        }

    def select(self, sql: str, tables: Sequence[str] | None = None) -> Rows:
        """Columns and rows of one SELECT; without `tables`, of those that it names.

        Raises: QueryError; SetupError where the cluster fails.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        names = table_names(self._library)
        named = tables_in(sql, names) if tables is None else tables
        text = sql.strip().rstrip(";")
        late = threading.Event()
        try:
            self._check(text)
            with self._limited(late):
                for table in named:
                    self._make(table)
                answer = self._session.sql(text)
                rows = [tuple(map(plain_value, row)) for row in answer.collect()]
        except (PySparkException, Py4JError) as error:
            if late.is_set():
                raise too_late(self._limit_ns) from error
            raise self._refused(error, named) from error
        return unique_names(answer.columns), rows

    def _check(self, text: str) -> None:
        """A query by Spark's own grammar: no statement that changes, sets or loads."""
        check_is_text(text, "wbscope fleet sql DATASET -")
        from pyspark.errors import ParseException

        if found := _CALLS.search(text):
            raise not_a_select(f"has the word {found[1]}, which calls Java by name")
        java: Any = self._session._jsparkSession
        parser = java.sessionState().sqlParser()
        try:
            plan = parser.parseQuery(text).toString()
        except ParseException:
            # Whether it is another statement, or none at all.
            raise not_a_select(f"is {_kind(parser.parsePlan(text))}") from None
        if _PROGRAM.search(plan):
            raise not_a_select("starts a program (TRANSFORM ... USING)")

    def _make(self, table: str) -> None:
        """A view of the table, if there is none yet."""
        if table not in self._made:
            self._table(table).createOrReplaceTempView(table)
            self._made.add(table)

    def _table(self, table: str) -> DataFrame:
        """Declared columns first; one that a file lacks is NULL, whatever version wrote it."""
        declared = {c.name: _TYPES[c.type] for c in columns_of_table(self._library, table)}
        declared |= dict.fromkeys(PARTITIONS, "STRING")
        files = self._files.get(table, [])
        others = self._others(files, declared)
        schema = _schema(declared | others)
        if not files:
            return self._session.createDataFrame([], schema)
        place = self._dataset.place
        reader = self._session.read.schema(schema).option("basePath", f"{place}/{table}")
        paths = [_GLOB.sub(r"\\\1", f"{place}/{file}") for file in files]
        return reader.parquet(*paths).select(*(f"`{name}`" for name in schema.names))

    def _others(self, files: Iterable[str], declared: Iterable[str]) -> dict[str, str]:
        """Columns that this wbscope does not know, by a file of each version."""
        from pyarrow import parquet
        from pyspark.sql.pandas.types import from_arrow_schema

        found: dict[str, str] = {}
        for file in {self._version.get(file): file for file in files}.values():
            fields = from_arrow_schema(parquet.read_schema(self._dataset.readable(file))).fields
            found |= {one.name: one.dataType.simpleString() for one in fields}
        return {name: kind for name, kind in sorted(found.items()) if name not in set(declared)}

    @contextmanager
    def _limited(self, late: threading.Event) -> Iterator[None]:
        if (limit_ns := self._limit_ns) is None:
            yield
            return

        done = threading.Event()

        def stop() -> None:
            """One job after the other: between two of them there is none to be cancelled."""
            if done.wait(seconds(limit_ns)):
                return
            late.set()
            while not done.wait(_AGAIN_SECONDS):
                self._session.sparkContext.cancelAllJobs()

        thread = threading.Thread(target=stop, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _refused(self, error: Exception, named: Sequence[str]) -> WbscopeError:
        from pyspark.errors import AnalysisException, ParseException, PySparkException

        java: Any = getattr(error, "java_exception", None)
        kind = java.getClass().getName() if java is not None else ""
        is_text = isinstance(error, AnalysisException | ParseException)
        if not is_text and not kind.startswith("org.apache.spark.sql"):
            named_by_spark = isinstance(error, PySparkException) and error.getCondition()
            if not named_by_spark:
                return cluster_failed(error, "fleet sql")
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return QueryError(
            "bad-sql",
            "fleet sql",
            lines[0] if lines else type(error).__name__,
            have=f"tables {', '.join(named)}" if named else None,
            fix="wbscope fleet sql DATASET    # lists the tables",
        )


def _schema(columns: dict[str, str]) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromDDL(", ".join(f"`{name}` {kind}" for name, kind in columns.items()))


def _kind(plan: Any) -> str:
    """The kind of a statement, as Spark calls it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(plan.getClass().getSimpleName())).upper()


# A task is done again as a whole: what it loses is at most the run that it was at.
_MOST_RUNS_IN_TASK = 16
_TASKS_FOR_CORE = 4
# Of an ingester that is killed, for want of memory or by somebody.
_TRIES = 3


@dataclass(frozen=True)
class _Told:
    """What came of a source, as it comes back from an executor."""

    source: str
    outcome: Outcome | None  # None: the job cannot go on
    run: str | None
    is_again: bool  # a task that was done again finds its own work
    error: tuple[str, str, str, str | None] | None  # slug, subject, message, fix
    losses: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class _Job:
    """What an executor is told: where the dataset is, and how Hadoop is set up."""

    place: str
    redaction: Redaction | None
    settings: dict[str, str]

    def add(self, source: str, each: Each) -> None:
        """Read one source, and put it into the dataset."""
        key = None if self.redaction is None else self.redaction.id
        fetch = self._fetch() if is_uri(source) else as_named
        if is_uri(self.place):
            target = HadoopDataset(self.place, key, files_of_worker(self.settings))
            ingest_into(target, [source], each, redaction=self.redaction, tries=_TRIES, fetch=fetch)
            return
        dataset = Dataset(Path(self.place), key)
        ingest_sources([source], dataset, each, redaction=self.redaction, tries=_TRIES, fetch=fetch)

    def _fetch(self) -> Fetch:
        return partial(fetched, files_of_worker(self.settings))


def ingest_on_spark(
    session: SparkSession,
    sources: Iterable[str],
    output: Dataset | str,
    each: Each,
    *,
    redaction: Redaction | None = None,
) -> None:
    """Add the runs of all sources: URIs, or what every executor has under the same paths.

    `output` is a dataset in a folder, or the URI of one. `each` is told in the order of the
    sources, when all are done.

    Raises: InputError and UsageError for sources and output, SetupError for what is wrong with
    the dataset or a machine of the cluster.
    """
    files, settings = files_of_session(session), settings_of(session)
    listed: list[str] = []
    for source in sources:
        found = sources_at(files, source) if is_uri(source) else [str(Path(source).absolute())]
        listed += found
    key = None if redaction is None else redaction.id
    dataset: Dataset | HadoopDataset
    if isinstance(output, Dataset):
        dataset, place = output, str(output.path.absolute())
    else:
        dataset = make_dataset_at(files, output, key)
        dataset.recover()
        place = dataset.place
    before = set(dataset.runs())
    if not listed:
        return
    context = session.sparkContext
    tasks = max(context.defaultParallelism * _TASKS_FOR_CORE, -(-len(listed) // _MOST_RUNS_IN_TASK))

    def part(sources: Iterable[str]) -> Iterator[_Told]:
        return _ingest_part(sources, _Job(place, redaction, settings))

    try:
        told = context.parallelize(listed, min(tasks, len(listed))).mapPartitions(part).collect()
    except Exception as error:  # py4j's
        raise cluster_failed(error, "fleet ingest") from error
    for one in told:
        if one.outcome is None:
            slug, subject, message, fix = one.error or ("spark-failed", one.source, "", None)
            raise SetupError(slug, subject, message, fix=fix)
        if one.outcome == "failed":
            slug, subject, message, fix = one.error or ("", one.source, "", None)
            each(one.source, "failed", one.run, InputError(slug, subject, message, fix=fix), ())
            continue
        is_new = one.outcome == "added" or (one.is_again and one.run not in before)
        each(one.source, "added" if is_new else "known", one.run, None, one.losses)
        if one.run is not None:
            before.add(one.run)


def _ingest_part(sources: Iterable[str], job: _Job) -> Iterator[_Told]:
    """On an executor: the runs of a task, one after the other."""
    from pyspark import TaskContext

    task = TaskContext.get()
    attempt = 0 if task is None else task.attemptNumber()
    for source in sources:
        try:
            yield replace(_ingest_one(source, job), is_again=attempt > 0)
        except WbscopeError as error:
            if attempt < ATTEMPTS - 1:
                raise  # another executor may have what this one lacks
            yield _Told(source, None, None, True, _of_error(error))


def _ingest_one(source: str, job: _Job) -> _Told:
    told: list[_Told] = []

    def each(
        _: str,
        outcome: Outcome,
        run: str | None,
        error: WbscopeError | None,
        losses: Sequence[Notice],
    ) -> None:
        why = None if error is None else _of_error(error)
        told.append(_Told(source, outcome, run, False, why, tuple(losses)))

    job.add(source, each)
    return told[0]


def _of_error(error: WbscopeError) -> tuple[str, str, str, str | None]:
    return error.slug, str(error.subject), str(error.message), error.fix and str(error.fix)
