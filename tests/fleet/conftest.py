# SPDX-License-Identifier: Apache-2.0
"""A dataset of three runs that most tests only read."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.corpus import ARCHIVE, CORPUS
from support.hdfs import Hdfs, hdfs
from support.runs import example
from support.spark import Cluster, standalone


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of three kernels: writers on one disk, reclaim, and a memory cgroup, which tells its host."""
    folder = tmp_path_factory.mktemp("sources") / "cgroup"
    folder.mkdir()
    with tarfile.open(CORPUS / "6.1-memory-cgroup" / ARCHIVE) as archive:
        archive.extractall(folder)
    return {
        "writers": example("four-equal-writers").folder,
        "reclaim": example("reclaim-writes").folder,
        "cgroup": folder,
    }


@pytest.fixture(scope="session")
def dataset(
    wbscope: Wbscope, sources: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The three of them."""
    path = tmp_path_factory.mktemp("fleet") / "dataset"
    done = wbscope.run("fleet", "ingest", *sources.values(), "-o", path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="session")
def cluster(wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master of Spark and two workers."""
    folder = tmp_path_factory.mktemp("cluster")
    env = {"WBSCOPE_CACHE_DIR": wbscope.env["WBSCOPE_CACHE_DIR"]}
    with standalone(folder, env=env) as started:
        yield started


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """An HDFS."""
    with hdfs(tmp_path_factory.mktemp("hdfs")) as started:
        yield started
