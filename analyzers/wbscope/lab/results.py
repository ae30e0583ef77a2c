# SPDX-License-Identifier: Apache-2.0
"""The numbers of a lab's runs in one small file, from which the same report is made again.

It is a baseline, so compare reads it too, with one more entry: what the folder of the lab told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from wbscope.base.errors import InputError, WbscopeError
from wbscope.compare.baseline import baseline_text, read_baseline
from wbscope.compare.rundata import RunData
from wbscope.lab.finished import CellRuns, Finished
from wbscope.lab.summary import LabReport
from wbscope.measure.metric import Scalars, split_name

__all__ = ["kept_text", "read_kept"]

_KEY = "lab"


def kept_text(report: LabReport) -> str:
    """The file: the metrics of the report, of every run in it.

    Raises: UsageError where runs measure one metric in two ways.
    """
    lab = report.lab
    wanted = {metric.name for metric in report.metrics}
    about = {
        "title": lab.title,
        "digest": lab.digest,
        "wbscope_version": lab.version,
        "axes": {axis: list(names) for axis, names in lab.axes.items()},
        "wanted": lab.wanted,
        "seed": lab.seed,
        "metrics": list(lab.metrics),
        "matrix": lab.matrix,
        "searched": lab.searched,
        "cells": [
            {
                "name": cell.name,
                "values": dict(cell.values),
                "runs": len(report.sides[cell.name].runs) if cell.name in report.sides else 0,
                "failed": {str(number): why for number, why in cell.failed.items()},
                "missing": list(cell.missing),
            }
            for cell in lab.cells
        ],
    }
    runs = [
        _only(replace(run, name=f"{cell}/{run.name}"), wanted)
        for cell, side in report.sides.items()
        for run in side.runs
    ]
    return baseline_text(runs, {_KEY: about})


def _only(run: RunData, wanted: set[str]) -> RunData:
    """Without the metrics that the report does not tell."""
    scalars = Scalars()
    for name, (metric, value) in run.scalars.items():
        if name in wanted:
            scalars.add(metric, value)
    families = {split_name(name)[0] for name in wanted}
    queries = {name.partition(".")[0] for name in wanted}
    return replace(
        run,
        scalars=scalars,
        zeros={name: value for name, value in run.zeros.items() if name in families},
        lacking={query: why for query, why in run.lacking.items() if query in queries},
        definitions={query: text for query, text in run.definitions.items() if query in queries},
    )


def read_kept(path: Path) -> Finished:
    """Raises: InputError where it is no such file."""
    runs = list(read_baseline(path))
    document = json.loads(path.read_text(encoding="utf-8"))
    try:
        return _finished(path, document[_KEY], runs)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, WbscopeError) as error:
        raise InputError(
            "no-lab", str(path), f"has no numbers of a lab: {error!r}",
            fix="wbscope lab report DIR --save results.json",
        ) from error  # fmt: skip


def _finished(path: Path, lab: Mapping[str, Any], runs: list[RunData]) -> Finished:
    if sum(cell["runs"] for cell in lab["cells"]) != len(runs):
        raise ValueError(f"{len(runs)} runs are not those of the cells")
    cells = []
    for cell in lab["cells"]:
        mine, runs = runs[: cell["runs"]], runs[cell["runs"] :]
        names = [run.name.removeprefix(f"{cell['name']}/") for run in mine]
        cells.append(
            CellRuns(
                name=str(cell["name"]),
                values={str(axis): str(value) for axis, value in cell["values"].items()},
                runs=tuple(Path(name) for name in names),
                failed={int(number): str(why) for number, why in cell["failed"].items()},
                missing=tuple(int(number) for number in cell["missing"]),
                kept=tuple(replace(run, name=name) for run, name in zip(mine, names, strict=True)),
            )
        )
    return Finished(
        folder=path,
        title=str(lab["title"]),
        digest=str(lab["digest"]),
        version=str(lab["wbscope_version"]),
        axes={str(axis): tuple(map(str, names)) for axis, names in lab["axes"].items()},
        wanted=int(lab["wanted"]),
        seed=int(lab["seed"]),
        matrix=str(lab["matrix"]),
        metrics=tuple(map(str, lab["metrics"])),
        cells=tuple(cells),
        searched=str(lab.get("searched", "")),
    )
