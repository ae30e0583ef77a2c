# SPDX-License-Identifier: Apache-2.0
"""Several runs in one answer: names that tell them apart, rows one below the other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from wbscope.base.current import absolute
from wbscope.base.errors import UsageError
from wbscope.base.result import Result
from wbscope.library.sqlfile import Column

__all__ = ["joined", "short_names"]

_RUN = Column("run", "TEXT", "run that the row is of: the shortest name that tells it apart")


def short_names(runs: Sequence[str]) -> list[str]:
    """As many last parts of each path as no other one ends in."""
    parts = [Path(os.path.normpath(absolute(Path(run)))).parts for run in runs]
    names = []
    for run, mine in zip(runs, parts, strict=True):
        others = [theirs for theirs in parts if theirs is not mine]
        size = next(
            (n for n in range(1, len(mine) + 1) if all(o[-n:] != mine[-n:] for o in others)), None
        )
        if size is None:
            raise UsageError(
                "same-run",
                run,
                "is given twice, wanted each run once",
                fix="leave it out once",
            )
        names.append(os.path.join(*mine[-size:]))
    return names


def joined(answers: Sequence[tuple[str, Result]]) -> Result:
    """One result with the column `run` first; warnings say which run they are of."""
    first = answers[0][1]
    return Result(
        name=first.name,
        columns=(_RUN.name, *first.columns),
        units=first.units,
        rows=[(run, *row) for run, result in answers for row in result.rows],
        warnings=tuple(
            replace(notice, run=run) for run, result in answers for notice in result.warnings
        ),
        fields=(_RUN, *first.fields),
        start_ns=0 if all(result.start_ns == 0 for _, result in answers) else None,
        labels=_common([result for _, result in answers]),
        keys=(_RUN.name, *first.keys),
        first=first.first,
    )


def _common(results: Sequence[Result]) -> dict[str, dict[str | int, str]]:
    """Names that mean the same in all runs with such a value; others stay as they are."""
    common: dict[str, dict[str | int, str]] = {}
    for end in {end for result in results for end in result.labels}:
        values = [(result, _values(result, end)) for result in results]
        for value in set().union(*(held for _, held in values)):
            names = {r.labels.get(end, {}).get(value) for r, held in values if value in held}
            if len(names) == 1 and (name := names.pop()) is not None:
                common.setdefault(end, {})[value] = name
    return common


def _values(result: Result, end: str) -> set[str | int]:
    places = [i for i, name in enumerate(result.columns) if f"_{name}".endswith(f"_{end}")]
    return {row[place] for row in result.rows for place in places if row[place] is not None}
