# SPDX-License-Identifier: Apache-2.0
"""The labelled corpus is what its README says: enough runs, small, and each proves its cause."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.corpus import ARCHIVE, CORPUS, cases, causes, proof, unpack

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
        "README.md", "causes.toml", "disks.sh", "keep.py", "known-bad.toml", "matrix.toml",
        "strict-limit.toml",
    }  # fmt: skip
