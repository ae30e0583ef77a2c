# SPDX-License-Identifier: Apache-2.0
"""Who answers for a dataset: DuckDB in this process, or the executors of a Spark cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from wbscope.fleet.dataset import open_dataset
from wbscope.fleet.fleetsql import FleetEngine

__all__ = ["Cluster", "fleet_engine"]


@dataclass(frozen=True)
class Cluster:
    """A Spark master, and settings of Spark for this command."""

    master: str
    settings: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def fleet_engine(
    path: Path, cluster: Cluster | None, limit_ns: int | None = None
) -> Iterator[FleetEngine]:
    """An engine over the dataset for as long as it is needed; `limit_ns` for each SELECT.

    Raises: InputError for a dataset that cannot be read; ImportError without the engine;
    UsageError and SetupError as spark_session.
    """
    dataset = open_dataset(path)
    if cluster is None:
        from wbscope.fleet.duck import DuckEngine

        yield DuckEngine(dataset, limit_ns)
        return
    from wbscope.fleet.spark_session import spark_session
    from wbscope.fleet.spark_sql import SparkEngine

    with spark_session(cluster.master, cluster.settings) as session:
        yield SparkEngine(session, dataset, limit_ns)
