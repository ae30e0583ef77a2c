# SPDX-License-Identifier: Apache-2.0
"""Who answers for a dataset: DuckDB in this process, or the executors of a Spark cluster."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wbscope.base.errors import Argument, Phrase, QueryError, UsageError, nearest
from wbscope.base.outputs import private_folder
from wbscope.base.result import Notice, unique_names
from wbscope.base.watch import (
    default_limit_ns,
    memory_limit,
    running,
    temp_limit,
    too_much_memory,
    too_much_temp,
)
from wbscope.fleet.cluster.hadoop_files import files_of_session, is_uri
from wbscope.fleet.dataset import Dataset, files_by_table, open_dataset
from wbscope.fleet.layout import ERRORS, PARTITIONS, columns_of_table, table_names
from wbscope.fleet.questions import (
    FleetEngine,
    contents,
    losses_of,
    not_a_select,
    plain_value,
    tables_in,
)
from wbscope.library.engine import Rows
from wbscope.library.guard import check_is_text
from wbscope.library.library import Library, load_library

_NEAR = re.compile(r'syntax error at or near "(\w+)"')
_UNKNOWN = re.compile(r"Table with name (\w+) does not exist")
_TYPES = {"INTEGER": "BIGINT", "REAL": "DOUBLE", "TEXT": "VARCHAR"}


class DuckEngine:
    """A FleetEngine over the runs that have a manifest; each SELECT has its own connection."""

    def __init__(self, dataset: Dataset, limit_ns: int | None = None) -> None:
        """`limit_ns` is what one SELECT may take; without it there is the default.

        Raises: InputError for a dataset that cannot be read, ImportError without DuckDB.
        """
        import duckdb

        self._dataset = dataset
        self._limit_ns = limit_ns
        self._library: Library = load_library()
        manifests = dataset.manifests().values()
        self.losses = losses_of(manifests)
        self._files = files_by_table(manifests)
        self._files[ERRORS] = [
            str(path.relative_to(dataset.path)) for path in dataset.error_files()
        ]
        self._duckdb: Any = duckdb

    def select(self, sql: str, tables: Sequence[str] | None = None) -> Rows:
        """Columns and rows of one SELECT; without `tables`, of those that it names.

        Raises: QueryError.
        """
        self._check(sql)
        named = tables_in(sql, table_names(self._library)) if tables is None else tables
        with self._limited() as connection:
            try:
                self._prepare(connection, named)
                cursor = connection.execute(sql)
                columns = unique_names([column[0] for column in cursor.description or ()])
                return columns, [tuple(map(plain_value, row)) for row in cursor.fetchall()]
            except (self._duckdb.InterruptException, self._duckdb.OutOfMemoryException):
                raise
            except self._duckdb.Error as error:
                raise self._refused(error, named) from error

    def _check(self, sql: str) -> None:
        """QueryError unless it is one SELECT: what reads only."""
        check_is_text(sql, "wbscope fleet sql DATASET -")
        try:
            statements = self._duckdb.extract_statements(sql)
        except self._duckdb.Error as error:
            raise self._refused(error, ()) from error
        kinds = [statement.type.name for statement in statements]
        if kinds != ["SELECT"]:
            raise not_a_select(f"is {' and '.join(kinds) or 'nothing'}")

    def _prepare(self, connection: Any, named: Iterable[str]) -> None:
        """Views of the tables; from then on only their files can be opened, and nothing set."""
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
            connection.execute(f"SET {setting} = false")
        paths = []
        for table in named:
            files = [str((self._dataset.path / f).absolute()) for f in self._files.get(table, ())]
            connection.execute(self._view(connection, table, files))
            paths += files
        connection.execute(f"SET allowed_paths = {_list(paths)}")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")

    def _view(self, connection: Any, table: str, files: Sequence[str]) -> str:
        """Declared columns first; one that no file has is NULL, whatever version wrote them."""
        declared = {c.name: _TYPES[c.type] for c in columns_of_table(self._library, table)}
        declared |= dict.fromkeys(PARTITIONS, "VARCHAR")
        if not files:
            nothing = ", ".join(
                f"CAST(NULL AS {kind}) AS {_name(n)}" for n, kind in declared.items()
            )
            return f"CREATE VIEW {_name(table)} AS SELECT {nothing} WHERE false"
        kinds = ", ".join(f"{key}: VARCHAR" for key in PARTITIONS)
        source = (
            f"read_parquet({_list(files)}, hive_partitioning = true, union_by_name = true,"
            f" hive_types = {{{kinds}}})"
        )
        described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
        there = [row[0] for row in described]
        columns = [
            _name(name) if name in there else f"CAST(NULL AS {kind}) AS {_name(name)}"
            for name, kind in declared.items()
        ]
        columns += [_name(name) for name in there if name not in declared]
        return f"CREATE VIEW {_name(table)} AS SELECT {', '.join(columns)} FROM {source}"

    @contextmanager
    def _limited(self) -> Iterator[Any]:
        """A connection that signals and limits stop.

        Raises: QueryError for a limit, KeyboardInterrupt for a signal.
        """
        # What does not fit into memory goes there; without a name DuckDB writes where it is run.
        spilled = Path(tempfile.gettempdir()) / "wbscope-fleet"
        with (
            private_folder(spilled) as folder,
            closing(self._duckdb.connect(":memory:")) as connection,
            running(connection.interrupt, self._limit_ns or default_limit_ns()) as run,
        ):
            # The rest of what is allowed is Python's: rows that are fetched.
            connection.execute(f"SET memory_limit = '{memory_limit() // 2} B'")
            connection.execute(f"SET temp_directory = {_text(str(folder))}")
            connection.execute(f"SET max_temp_directory_size = '{temp_limit()} B'")
            try:
                yield connection
            except self._duckdb.InterruptException as error:
                raise run.broken or KeyboardInterrupt from error
            except self._duckdb.OutOfMemoryException as error:
                is_temp = "max_temp_directory_size" in str(error)
                raise (too_much_temp() if is_temp else too_much_memory()) from error
            except RuntimeError as error:  # what DuckDB makes of a handler that raises
                if str(error) != "Query interrupted":
                    raise
                raise run.broken or KeyboardInterrupt from error

    def _refused(self, error: Exception, named: Sequence[str]) -> QueryError:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        have = ", ".join(named)
        if unknown := _UNKNOWN.search(lines[0] if lines else ""):
            have = ", ".join(nearest(unknown[1], table_names(self._library))) or have
        return QueryError(
            "bad-sql",
            "fleet sql",
            lines[0] if lines else type(error).__name__,
            at=next((line for line in lines[1:] if line.startswith("LINE ")), None),
            have=f"tables {have}" if have else None,
            fix=self._fix(lines),
        )

    def _fix(self, lines: Sequence[str]) -> str:
        """A table may have the name of a word of SQL: check."""
        word = _NEAR.search(lines[0] if lines else "")
        if word and word[1].lower() in table_names(self._library):
            return f'write "{word[1].lower()}" in double quotes: it is an SQL keyword'
        return "wbscope fleet sql DATASET    # lists the tables"


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class Cluster:
    """A Spark master, and settings of Spark for this command."""

    master: str
    settings: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def fleet_engine(
    place: str, cluster: Cluster | None, limit_ns: int | None = None
) -> Iterator[FleetEngine]:
    """An engine over the dataset for as long as it is needed.

    `limit_ns` is for each SELECT; without it there is the default ($WBSCOPE_TIMEOUT).

    `place` is a folder, or with a cluster a URI that Hadoop knows.

    Raises: InputError for a dataset that cannot be read; ImportError without the engine;
    UsageError and SetupError as spark_session.
    """
    check_place(place, cluster)
    dataset = None if is_uri(place) else open_dataset(Path(place))
    if cluster is None:
        assert dataset is not None
        yield DuckEngine(dataset, limit_ns)
        return
    from wbscope.fleet.cluster.spark import spark_session
    from wbscope.fleet.cluster.spark_sql import SparkEngine

    with spark_session(cluster.master, cluster.settings) as session:
        if dataset is not None:
            yield SparkEngine(session, dataset, limit_ns or default_limit_ns())
            return
        from wbscope.fleet.cluster.hadoop_dataset import open_dataset_at

        remote = open_dataset_at(files_of_session(session), place, cluster.master)
        yield SparkEngine(session, remote, limit_ns or default_limit_ns())


def fleet_contents(
    place: str, cluster: Cluster | None
) -> tuple[list[tuple[str, int, int, int]], tuple[Notice, ...]]:
    """The tables of a dataset, as contents(); Spark is started for a URI only.

    Raises: as fleet_engine.
    """
    check_place(place, cluster)
    if cluster is None or not is_uri(place):
        return contents(open_dataset(Path(place)))
    from wbscope.fleet.cluster.hadoop_dataset import open_dataset_at
    from wbscope.fleet.cluster.spark import spark_session

    with spark_session(cluster.master, cluster.settings) as session:
        return contents(open_dataset_at(files_of_session(session), place, cluster.master))


def check_place(place: str, cluster: Cluster | None) -> None:
    """Only Spark has Hadoop's file systems.

    Raises: UsageError.
    """
    if cluster is None and is_uri(place):
        raise UsageError(
            "uri-without-master",
            place,
            "is a URI, which only Spark reads and writes",
            fix=Phrase("add ", Argument("master", "local[*]")),
        )
