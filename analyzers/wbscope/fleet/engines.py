# SPDX-License-Identifier: Apache-2.0
"""Who answers for a dataset: DuckDB in this process, or the executors of a Spark cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import UsageError
from wbscope.base.result import Notice
from wbscope.base.watch import default_limit_ns
from wbscope.fleet.cluster.hadoopfiles import files_of_session, is_uri
from wbscope.fleet.dataset import open_dataset
from wbscope.fleet.fleetsql import FleetEngine, contents

__all__ = ["Cluster", "check_place", "fleet_contents", "fleet_engine"]


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
        from wbscope.fleet.duck import DuckEngine

        assert dataset is not None
        yield DuckEngine(dataset, limit_ns)
        return
    from wbscope.fleet.cluster.spark_session import spark_session
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
    from wbscope.fleet.cluster.spark_session import spark_session

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
