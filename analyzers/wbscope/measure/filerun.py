# SPDX-License-Identifier: Apache-2.0
"""What one file of measurements holds: runs, of one thing or of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wbscope.base.result import Notice
from wbscope.measure.bad import bad
from wbscope.measure.metric import Scalars

__all__ = ["FileRun", "FileRuns", "Parts", "repetitions"]


@dataclass(frozen=True)
class FileRun:
    """A repetition.

    is_sample  one number of one thing of several: what it has no number of, nobody
               asked of it
    """

    name: str
    scalars: Scalars
    is_sample: bool = False


# Part of a file -> its runs; "" where a file has no parts.
Parts = Mapping[str, tuple[FileRun, ...]]


@dataclass(frozen=True)
class FileRuns:
    """The content of a file.

    parts     what can be told from each other by name: kernels, settings, commands
    whole     the runs when no part is named; None = a part must be named
    part_is   what a part is, as a message says it: kernels
    """

    parts: Parts
    whole: tuple[FileRun, ...] | None
    part_is: str = "parts"
    notices: tuple[Notice, ...] = ()


def repetitions(
    results: Sequence[tuple[int, Scalars]], subject: str, fix: str
) -> tuple[FileRun, ...]:
    """Results in the order of the text, with the line of each, as runs.

    A run ends where a name comes again; all must have the same names.

    Raises: InputError when they do not: these are no repetitions of one thing.
    """
    runs: list[tuple[int, Scalars]] = []
    for line, scalars in results:
        if not runs or any(name in runs[-1][1] for name in scalars):
            runs.append((line, Scalars()))
        runs[-1][1].add_all(scalars)
    for line, scalars in runs[1:]:
        if scalars.keys() != runs[0][1].keys():
            odd = sorted(scalars.keys() ^ runs[0][1].keys())
            has, lacks = (line, runs[0][0]) if odd[0] in scalars else (runs[0][0], line)
            problem = f"holds results that are no repetitions: {odd[0]} is in that of line {has},"
            raise bad(subject, f"{problem} not in that of line {lacks}", fix, at=f"line {line}")
    return tuple(FileRun(str(number), one) for number, (_, one) in enumerate(runs, 1))
