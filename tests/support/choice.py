# SPDX-License-Identifier: Apache-2.0
"""Which tests `make test` runs for a commit: all functions, and of their many cases an eighth.

A case belongs to one of eight parts by the hash of its name, and a commit has the part of its
number in the history: any eight successive commits run every case. The same commit runs the same
tests on every machine, at any time. What is always there: functions that tests/costs.txt does
not name, the recordings of `pairwise()`, and what is marked `core`.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest

__all__ = [
    "CASES",
    "PARTS",
    "WHOLE_ONLY",
    "Case",
    "Commit",
    "chosen",
    "commit_of",
    "is_dealt",
    "pairwise",
    "part_of",
]

PARTS = 8
# They wait for recordings, browsers and clusters, and few changes reach what they test: of these
# the functions are dealt, too.
_APART = frozenset({"fleet", "lab", "live", "ui", "viewer"})
# They want what make test does not install (Spark, an HDFS, kernels): make test-all runs them.
WHOLE_ONLY = (
    "fleet/test_hadoop",
    "fleet/test_spark",
    "kernel/",
    "lab/",
    "live/test_guest",
    "live/test_lab",
)

# What a recording has besides, one for each processor.
_SHAPES = ("lost", "instances")


@dataclass(frozen=True)
class Case:
    """One test: "real/test_x.py::test_y", the name of its case, its markers."""

    function: str
    name: str = ""
    marks: frozenset[str] = frozenset()

    @property
    def folder(self) -> str:
        return self.function.partition("/")[0]


CASES = pytest.StashKey[list[Case]]()
"""All that pytest has found, whatever it runs of them."""


@dataclass(frozen=True)
class Commit:
    """What the tests are of, and its part."""

    name: str
    part: int


def part_of(text: str) -> int:
    """0 to 7, the same for ever."""
    return hashlib.sha256(text.encode()).digest()[0] % PARTS


def commit_of(folder: Path) -> Commit:
    """HEAD's part is its number in the first line of history; in a shallow clone its hash's.

    Only a number has any eight successive commits see all: eight hashes see two thirds of it.
    """

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", folder, *words], capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    name = git("rev-parse", "HEAD")
    if not name:
        return Commit("no commit", 0)
    if git("rev-parse", "--is-shallow-repository") == "true":
        return Commit(name[:12], part_of(name))
    return Commit(name[:12], int(git("rev-list", "--count", "--first-parent", "HEAD")) % PARTS)


def chosen(
    cases: Iterable[Case],
    part: int,
    costs: Mapping[str, float],
    always: Collection[str] = (),
) -> set[Case]:
    """Those that make test runs in this part.

    `costs` has the CPU seconds of functions, all cases together, where they are worth a choice:
    what is new is not in it. `always` are names of cases that are always run.
    """
    functions: Mapping[str, list[Case]] = defaultdict(list)
    for case in cases:
        if not case.function.startswith(WHOLE_ONLY):
            functions[case.function].append(case)
    return {
        case
        for name, group in functions.items()
        for case in _of_function(group, part, costs.get(name, 0.0), always)
    }


def is_dealt(cases: Sequence[Case], cost: float) -> bool:
    """Whether parts share the cases of this function: a part may have none where it is one."""
    first = cases[0]
    return first.folder in _APART or "dealt" in first.marks or cost > 0


def _of_function(
    cases: Sequence[Case], part: int, cost: float, always: Collection[str]
) -> Iterable[Case]:
    if not is_dealt(cases, cost):
        return cases
    kept = [
        case
        for case in cases
        if "core" in case.marks or case.name in always or part_of(_hashed(case)) == part
    ]
    # Of a function with many cases there is one in each part, though no hash is this part's.
    least = min(cases, key=lambda case: hashlib.sha256(case.name.encode()).digest())
    return kept or ([least] if len(cases) > 1 else [])


def _hashed(case: Case) -> str:
    """Of a page or recording that is dear, all functions of a file are in one part."""
    file = case.function.partition("::")[0]
    subject = file if case.name and case.folder in _APART else case.function
    return f"{subject}[{case.name}]"


def pairwise(names: Iterable[str]) -> list[str]:
    """Recordings that have each pair of kernel, processor, version and compression that any has.

    A name is KERNEL-PROCESSOR-VERSION[-FORM], 6.1-armhf-v7-lost: version 7 is compressed with zstd
    where the form says nothing else. The one with the most pairs that are still missing is taken
    next, of equal ones the first by name. Of each processor there is one with lost events and one
    with buffers, and of each kernel each version of the file that it has.
    """
    missing = {name: _pairs(name) for name in sorted(names)}
    taken: list[str] = []
    while any(missing.values()):
        best = max(missing, key=lambda name: len(missing[name]))
        taken.append(best)
        got = missing[best]
        missing = {name: pairs - got for name, pairs in missing.items()}
    return sorted(taken)


def _pairs(name: str) -> frozenset[tuple[str, ...]]:
    kernel, processor, version, *form = name.split("-", 3)
    compression = "none" if version == "v6" else "zstd"
    for other in ("none", "zlib"):
        compression = other if form == [other] else compression
    shapes = [shape for shape in _SHAPES if form and form[0].startswith(shape)] or ["plain"]
    return frozenset(combinations((kernel, processor, version, compression), 2)) | {
        (processor, shapes[0]),
        (kernel, processor, version),
    }
