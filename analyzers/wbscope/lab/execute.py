# SPDX-License-Identifier: Apache-2.0
"""Makes all runs of a matrix that are not there yet, one after the other."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from wbscope.lab.matrix import Matrix
from wbscope.lab.order import Job, interleaved
from wbscope.lab.places import Failure, Places
from wbscope.lab.store import Store

__all__ = ["Progress", "Summary", "make_runs"]


@dataclass(frozen=True)
class Progress:
    """One run ended.

    left_s  about so long for those that are left; by those that were made
    """

    job: Job
    number: int
    of: int
    seconds: float
    left_s: float
    why: str | None


@dataclass
class Summary:
    """What this command did; `failed` has the reason for each run that is missing."""

    made: int = 0
    kept: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def make_runs(
    matrix: Matrix, store: Store, places: Places, told: Callable[[Progress], None]
) -> Summary:
    """In their interleaved order; a failed run is one row, and the next one follows.

    Raises: SetupError, InputError before the first run for a kernel that is not to be had.
    """
    jobs = list(interleaved(matrix))
    summary = Summary(kept=sum(store.is_done(job) for job in jobs))
    todo = [(place, job) for place, job in enumerate(jobs, 1) if not store.is_done(job)]
    for kernel in dict.fromkeys(job.cell.setup.kernel for _, job in todo):
        places.check(kernel)
    session = str(uuid.uuid4())
    spent: list[float] = []
    for number, (place, job) in enumerate(todo, 1):
        began = time.monotonic()
        about = {
            "cell": job.cell.name,
            "values": job.cell.values,
            "number": job.number,
            "place_in_order": place,
            "session": session,
            "digest": matrix.digest,
            "seed": matrix.seed,
        }
        why = None
        with store.place(job) as work:
            try:
                run = places.make(job.cell.setup, work, matrix.limit_s, matrix.boots)
                store.keep(job, run, about)
                summary.made += 1
            except Failure as failure:
                why = failure.why
                store.keep_failure(job, why, _left(failure, work))
                summary.failed[job.name] = why
        spent.append(time.monotonic() - began)
        left = sum(spent) / len(spent) * (len(todo) - number)
        told(Progress(job, number, len(todo), spent[-1], left, why))
    return summary


def _left(failure: Failure, work: Path) -> Path:
    """A folder with the texts that the failed run left."""
    folder = work / "left-behind"
    folder.mkdir()
    for name, text in failure.left.items():
        if text:
            (folder / name).write_text(text, encoding="utf-8", errors="replace")
    return folder
