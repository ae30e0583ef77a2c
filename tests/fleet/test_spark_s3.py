# SPDX-License-Identifier: Apache-2.0
"""Runs and a dataset on an object store: a server of S3, by the words of docs/fleet.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.corpus import CORPUS, unpack
from support.datasets import Base, check_same
from support.hdfs import hadoop_version
from support.s3 import S3, jars_of_docs, s3
from support.spark import QUICK_JVM, Cluster, needs_spark
from support.sparkjobs import OneSession, one_session

pytestmark = [needs_spark]
QUESTION = (
    "SELECT host, cause, sum(dur) AS ns FROM stalls GROUP BY host, cause ORDER BY host, cause"
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3(tmp_path_factory.mktemp("s3")) as started:
        yield started


@pytest.fixture(scope="module")
def spark(wbscope: Wbscope, store: S3) -> Iterator[OneSession]:
    """On this machine alone."""
    quick = f"spark.driver.extraJavaOptions={QUICK_JVM}"
    with one_session(wbscope, Cluster("local[1]", store.settings), quick) as session:
        yield session


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, and one that cannot be read."""
    folder = tmp_path_factory.mktemp("traces")
    base = Base(unpack(CORPUS / "6.1-healthy-copy", tmp_path_factory.mktemp("scratch")))
    for number in range(2):
        base.replica(number, folder)
    (folder / "6-noise.dat").write_bytes(b"noise" * 100)
    return folder


def test_a_dataset_on_s3_is_that_of_a_folder(
    wbscope: Wbscope, store: S3, spark: OneSession, traces: Path, tmp_path: Path
) -> None:
    source, dataset, local = store.put(traces, "traces"), f"{store.uri}/dataset", tmp_path / "local"
    assert wbscope.run("fleet", "ingest", traces, "-o", local).returncode == 4
    assert spark.ingest(source, "-o", dataset) == {"added": 2, "known": 0, "failed": 1}
    copy = store.get("dataset", tmp_path / "copy")
    check_same(wbscope, copy, local, source, traces)
    assert spark.ingest(source, "-o", dataset) == {"added": 0, "known": 2, "failed": 1}
    check_same(wbscope, store.get("dataset", tmp_path / "again"), local, source, traces)
    ours = spark.document("fleet", "sql", dataset, QUESTION)["rows"]
    assert ours == wbscope.document("fleet", "sql", local, QUESTION)["rows"]
    assert {row["host"] for row in ours} == {"db00", "db01"}


def test_the_jars_of_the_docs_are_those_of_pyspark() -> None:
    packages = jars_of_docs()["spark.jars.packages"].split(",")
    assert packages[0] == f"org.apache.hadoop:hadoop-aws:{hadoop_version()}"
