# SPDX-License-Identifier: Apache-2.0
"""Folders of runs without a trace: each has an ops.txt with one number."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ops_runs"]

# Runs of a test were recorded one after the other, some time ago.
_STARTED_NS = 1_700_000_000_000_000_000
_SECOND_NS = 1_000_000_000


def ops_runs(
    folder: Path, values: Sequence[float], *, name: str = "stall", unit: str = "s", later: int = 0
) -> Path:
    """FOLDER/1/ops.txt, FOLDER/2/ops.txt ...; `later`: recorded so many seconds after others."""
    for number, value in enumerate(values, 1):
        run = folder / str(number)
        run.mkdir(parents=True, exist_ok=True)
        file = run / "ops.txt"
        file.write_text(f"{name} {value!r} {unit}\n")
        written = _STARTED_NS + (later + number) * _SECOND_NS
        os.utime(file, ns=(written, written))
    return folder
