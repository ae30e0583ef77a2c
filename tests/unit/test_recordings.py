# SPDX-License-Identifier: Apache-2.0
"""The labelled corpus, and traces repeated by tools/repeat_trace.py."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from support.archives import sums
from support.cli import Wbscope
from support.corpus import ARCHIVE, CORPUS, cases, causes, proof, unpack
from support.kernel_events import formats
from support.runs import REPOSITORY
from support.tracedat import Trace

# The labelled corpus is what its README says: enough runs, small, and each proves its cause.

_CASES = cases()
_MOST_BYTES = 400_000


def _told(case: Path) -> dict[str, object]:
    return tomllib.loads((case / "cause.toml").read_text())


def test_there_are_enough() -> None:
    kernels = defaultdict(set)
    for case in _CASES:
        told = _told(case)
        kernels[told["cause"]].add(".".join(str(told["kernel"]).split(".")[:2]))
    healthy = [case for case in _CASES if _told(case)["healthy"]]
    injected = {cause for cause in kernels if not str(cause).startswith("healthy")}
    assert len(_CASES) >= 44
    assert len(healthy) >= 18
    assert len(injected) >= 12
    # The known-bad kernel is one version; everything else was seen on two.
    once = {cause for cause in injected if len(kernels[cause]) < 2}
    assert once <= {"no-background-start", "strict-limit-busy"}
    assert kernels.keys() == causes().keys()


def test_the_archives_hold_what_is_listed() -> None:
    """To list others: PYTHONPATH=tests python -c 'from support.archives import *; print(sums())'"""
    assert sums() == (REPOSITORY / "tests/SHA256SUMS").read_text()


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_the_numbers_beside_the_trace_prove_the_cause(case: Path, tmp_path: Path) -> None:
    assert (case / ARCHIVE).stat().st_size <= _MOST_BYTES
    told = _told(case)
    run = unpack(case, tmp_path)
    ranges = causes()[str(told["cause"])]
    assert told["injected"] == ranges["injected"]
    values = {one.quantity: proof(run, one.quantity) for one in ranges["proof"]}
    assert values == told["proof"]
    for one in ranges["proof"]:
        assert one.least <= values[one.quantity] <= one.most, one.quantity


@pytest.mark.dealt
@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_the_trace_is_whole(case: Path, tmp_path: Path, wbscope: Wbscope) -> None:
    run = unpack(case, tmp_path)
    done = wbscope.run("check", str(run))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lost" not in done.stderr


def test_no_file_of_others() -> None:
    names = {path.name for path in CORPUS.iterdir() if path.is_file()}
    assert names == {
        "README.md", "blind.toml", "causes.toml", "disks.sh", "keep.py", "known-bad.toml",
        "matrix.toml", "strict-limit.toml",
    }  # fmt: skip


# tools/repeat_trace.py: each copy has the events of the trace, later by the same time.

_COPIES = 3
_TOOL = REPOSITORY / "tools/repeat_trace.py"
_COUNT = 400  # more than a page


def _repeat(source: Path, output: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, _TOOL, source, str(_COPIES), "-o", output]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_each_copy_is_the_trace_later(wbscope: Wbscope, tmp_path: Path, trace: Trace) -> None:
    one = trace.write(tmp_path / "one.dat")
    long = tmp_path / "long.dat"
    done = _repeat(one, long)
    assert done.returncode == 0, done.stderr
    ask = "SELECT ts, nr_dirty FROM raw_global_dirty_state ORDER BY seq"
    rows = {}
    for path in (one, long):
        done = wbscope.run("ingest", path, "-o", path.with_suffix(".db"), "--all")
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr
        rows[path] = wbscope.sql(path.with_suffix(".db"), ask)
    times = [row["ts"] for row in rows[one]]
    step = times[-1] - times[0] + 1000
    assert len(times) == 2 * _COUNT
    assert [row["ts"] for row in rows[long]] == [
        ts + copy * step for copy in range(_COPIES) for ts in times
    ]
    assert [row["nr_dirty"] for row in rows[long]] == [
        row["nr_dirty"] for row in rows[one]
    ] * _COPIES


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no trace")
    done = _repeat(tmp_path / "text", tmp_path / "long.dat")
    assert (done.returncode, str(tmp_path / "text") in done.stderr) == (3, True)
    assert not (tmp_path / "long.dat").exists()


def test_a_name_that_is_taken_stays(tmp_path: Path, trace: Trace) -> None:
    (tmp_path / "long.dat").write_text("mine")
    done = _repeat(trace.write(tmp_path / "one.dat"), tmp_path / "long.dat")
    assert (done.returncode, "File exists" in done.stderr) == (3, True)
    assert (tmp_path / "long.dat").read_text() == "mine"


@pytest.fixture
def trace() -> Trace:
    """Two CPUs; times as deltas, as extensions of them, and whole."""
    made = Trace(formats("global_dirty_state"), version=6, cpus=2, cmdlines={11: "dd"})
    stamps = ("auto", "extend", "absolute")
    for number in range(2 * _COUNT):
        values = {"nr_dirty": number}
        stamp = stamps[number % len(stamps)]
        made.event(number % 2, 10**9 + number * 1500, 11, "global_dirty_state", values, stamp=stamp)
    return made
