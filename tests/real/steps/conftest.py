# SPDX-License-Identifier: Apache-2.0
"""A small run whose steps workers make, in a cache of its own."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.runs import REPOSITORY
from support.steps import (
    workers,
)
from support.waits import wait_until
from wbscope.library import database, steps
from wbscope.library.library import Library, load_library
from wbscope.run.ingested import ingest
from wbscope.source.source import find_source

_RUN = REPOSITORY / "examples/four-equal-writers"


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, library: Library) -> Path:
    """As the cache has it: without steps of its own."""
    path = tmp_path_factory.mktemp("run") / "run.db"
    ingest(find_source(str(_RUN)), path, library, views=False)
    return path


@pytest.fixture
def run_db(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made, tmp_path / "run.db"))


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Of its own; workers are there also of a small run, and on one processor."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(folder))
    monkeypatch.setattr(database, "_MANY_RECORDS", 0)
    monkeypatch.setattr(steps, "_WORTH_NS", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    return folder


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No thread of the test, and no folder of theirs."""
    temp = tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    before = workers()
    yield
    gc.collect()
    wait_until(lambda: set(workers()) <= set(before), "no worker is left")
    assert list(temp.iterdir()) == []
    private = [path for path in tmp_path.rglob(".*") if ".wbscope-" in path.name]
    assert private == []
