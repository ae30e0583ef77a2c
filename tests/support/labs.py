# SPDX-License-Identifier: Apache-2.0
"""Folders of a lab whose runs are one number each, without a trace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["METRIC", "new_lab", "write_run"]

METRIC = "ops.latency_ns"


def write_run(folder: Path, value: float, kernel: str = "6.1.0") -> Path:
    """A run folder: what a benchmark printed, in ms, and the kernel."""
    folder.mkdir(parents=True)
    (folder / "ops.txt").write_text(f"latency {value} ms lower\n")
    (folder / "uname").write_text(f"Linux guest {kernel} #1 SMP x86_64 GNU/Linux\n")
    (folder / "meta.json").write_text(json.dumps({"ended": "complete"}))
    return folder


def new_lab(
    folder: Path,
    axes: Mapping[str, Sequence[str]],
    values: Mapping[str, Sequence[float]],
    runs: int,
) -> Path:
    """`values` has the runs of each cell, in ms; the cells are those of two axes or of one."""
    names = list(axes)
    cells: list[list[str]] = [[]]
    for axis in names:
        cells = [[*cell, name] for cell in cells for name in axes[axis]]
    folder.mkdir()
    lab = {
        "schema": 1,
        "wbscope_version": "0.1.0",
        "title": "two limits",
        "digest": "0123456789abcdef",
        "axes": {axis: list(axes[axis]) for axis in names},
        "cells": [
            {"name": ",".join(cell), "values": dict(zip(names, cell, strict=True))}
            for cell in cells
        ],
    }
    (folder / "lab.json").write_text(json.dumps(lab))
    (folder / "matrix.toml").write_text(
        f"# as it was read\nruns = {runs}\nseed = 7\n[setup]\nworkload = 'true'\n"
    )
    for cell, numbers in values.items():
        for number, value in enumerate(numbers, 1):
            write_run(folder / cell / f"run-{number}", value)
    return folder
