# SPDX-License-Identifier: Apache-2.0
"""Makes all runs of a matrix that are not there yet, one after the other."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import SetupError
from wbscope.lab.matrix import Matrix
from wbscope.lab.order import Job, interleaved
from wbscope.lab.places import Failure, Places
from wbscope.lab.store import Store

__all__ = ["Progress", "Summary", "make_one", "make_runs"]

# A trace of seconds and what a guest writes to its disks in them.
_LEAST_ROOM_BYTES = 256 << 20


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
    matrix: Matrix,
    store: Store,
    places: Places,
    told: Callable[[Progress], None],
    session: str | None = None,
) -> Summary:
    """In their interleaved order; a failed run is one row, and the next one follows.

    session  of runs that a call before this one began; None = a new one

    Raises: SetupError, InputError, UsageError before the first run for what is missing;
    SetupError where the disk is full.
    """
    jobs = list(interleaved(matrix))
    summary = Summary(kept=sum(store.is_done(job) for job in jobs))
    todo = [(place, job) for place, job in enumerate(jobs, 1) if not store.is_done(job)]
    for _, job in todo:
        places.check(job.cell.setup)
    session = session or str(uuid.uuid4())
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
        why = make_one(job, store, places, matrix, about)
        if why is None:
            summary.made += 1
        else:
            summary.failed[job.name] = why
        spent.append(time.monotonic() - began)
        left = sum(spent) / len(spent) * (len(todo) - number)
        told(Progress(job, number, len(todo), spent[-1], left, why))
    return summary


def make_one(
    job: Job, store: Store, places: Places, matrix: Matrix, about: Mapping[str, object]
) -> str | None:
    """Why it failed; None = the run is there.

    Raises: SetupError where the disk is full.
    """
    _check_room(store.folder)
    try:
        with store.place(job) as work:
            try:
                run = places.make(job.cell.setup, work, matrix.limit_s, matrix.boots)
                store.keep(job, run, about)
                return None
            except Failure as failure:
                # On a full disk every run would fail, each with another last word.
                _check_room(store.folder)
                store.keep_failure(job, failure.why, _left(failure, work))
                return failure.why
    except OSError as error:
        raise _no_room(store.folder, str(error.strerror or error)) from error


def _check_room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < _LEAST_ROOM_BYTES:
        raise _no_room(folder, f"{free >> 20} MiB are free, wanted {_LEAST_ROOM_BYTES >> 20} MiB")


def _no_room(folder: Path, why: str) -> SetupError:
    return SetupError(
        "cannot-write", str(folder), f"a run cannot be made there: {why}",
        fix=Phrase("make room, then go on with ", Argument("resume", True)),
    )  # fmt: skip


def _left(failure: Failure, work: Path) -> Path:
    """A folder with the texts that the failed run left."""
    folder = work / "left-behind"
    folder.mkdir()
    for name, text in failure.left.items():
        if text:
            (folder / name).write_text(text, encoding="utf-8", errors="replace")
    return folder
