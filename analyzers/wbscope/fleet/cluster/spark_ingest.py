# SPDX-License-Identifier: Apache-2.0
"""Many runs into a dataset on a cluster: each task reads some runs, where an executor is.

A task that dies is done again by Spark; what it had published is known by then. So every run is in
the dataset once, and what came of it is counted from what was there before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from wbscope.base.errors import InputError, SetupError, WbscopeError
from wbscope.base.result import Notice
from wbscope.fleet.cluster.hadoop_dataset import HadoopDataset, make_dataset_at
from wbscope.fleet.cluster.hadoop_sources import fetched, sources_at
from wbscope.fleet.cluster.hadoopfiles import files_of_session, files_of_worker, is_uri, settings_of
from wbscope.fleet.cluster.spark_session import ATTEMPTS
from wbscope.fleet.cluster.spark_watch import cluster_failed
from wbscope.fleet.dataset import Dataset
from wbscope.fleet.harvest import Each, Fetch, Outcome, as_named, ingest_into, ingest_sources
from wbscope.fleet.redact import Redaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ingest_on_spark"]

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
