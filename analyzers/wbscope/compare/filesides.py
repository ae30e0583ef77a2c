# SPDX-License-Identifier: Apache-2.0
"""A file of measurements as the runs of a side: FILE, or FILE#PART of one with several."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from wbscope.compare.fingerprint import FACTS
from wbscope.compare.measure import Wanted, wanted_of
from wbscope.compare.metric_catalog import Catalog
from wbscope.compare.rundata import RunData
from wbscope.measure.content import is_measurements, read_measurements, runs_of_part
from wbscope.measure.filerun import FileRun

__all__ = ["is_file_of_runs", "runs_of_file"]

_HASH_DIGITS = 12


def is_file_of_runs(text: str) -> bool:
    """True for a file of measurements, with or without a part."""
    return is_measurements(_split(text)[0])


def runs_of_file(text: str, name: str, catalog: Catalog, wanted: Wanted) -> list[RunData]:
    """The runs in it; NAME:RUN each where there are several.

    Raises: InputError, UsageError as read_measurements() and runs_of_part() do.
    """
    path, part = _split(text)
    found = read_measurements(path)
    runs = runs_of_part(found, part, str(path))
    facts = dict.fromkeys(fact for fact in FACTS if fact != "sysctl")
    place = f"{path.resolve()} {path.stat().st_mtime_ns} {part or ''}"
    notices = found.notices if part is None else ()
    return [
        RunData(
            name=f"{name}:{run.name}" if len(runs) > 1 else name,
            source_id=f"{_hash(_told(run))}.{_hash(f'{place} {number}')}",
            scalars=wanted_of(run.scalars, wanted, catalog.rows),
            fingerprint=facts,
            warnings=notices if number == 0 else (),
            is_sample=run.is_sample,
            path=text,
        )
        for number, run in enumerate(runs)
    ]


def _split(text: str) -> tuple[Path, str | None]:
    """A # may also be in the name of the file."""
    path, sign, part = text.rpartition("#")
    if not sign or os.path.exists(text):
        return Path(text), None
    if not os.path.exists(path):
        path, _, part = text.partition("#")
    return Path(path), part


def _told(run: FileRun) -> str:
    spreads = run.scalars.spreads
    return repr([(name, value, spreads.get(name)) for name, (_, value) in run.scalars.items()])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
