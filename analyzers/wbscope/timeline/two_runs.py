# SPDX-License-Identifier: Apache-2.0
"""Two runs in one Perfetto trace: a group for each, and one time 0 for both."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from wbscope.base.outputs import check_output, private_output
from wbscope.base.span import WHOLE, Span
from wbscope.run.run import Run
from wbscope.timeline.export import Beside, Timeline, write_timeline

__all__ = ["LETTERS", "group_names", "write_two_timelines"]

LETTERS = ("A", "B")
"""What the names of the groups of two runs begin with, those below them too: A Stalls."""


def group_names(first: Run, second: Run) -> tuple[str, str]:
    """What the groups of two runs are called: A: NAME and B: NAME."""
    names = [_name(run) for run in (first, second)]
    if names[0] == names[1]:
        names = [first.name, second.name]
    one, other = (f"{letter}: {name}" for letter, name in zip(LETTERS, names, strict=True))
    return one, other


def write_two_timelines(
    first: Run, second: Run, output: Path, *, force: bool = False, span: Span = WHOLE
) -> Timeline:
    """Write the views of both runs, or the part `span` of each, without their recorded events.

    Times are those of the first run: the second one, or its part, begins when that begins.
    Raises: as write_timeline() does.
    """
    runs = (first, second)
    check_output(
        output,
        force,
        [path for run in runs for path in (Path(run.name), run.database)],
        "two.pftrace",
    )
    titles = group_names(first, second)
    begin_ns = _begin(first, span)
    done: list[Timeline] = []
    with private_output(output, force=force) as private:
        parts = [private.with_name(f"{letter}.pftrace") for letter in LETTERS]
        for place, (run, title, part) in enumerate(zip(runs, titles, parts, strict=True), 2):
            beside = Beside(title, LETTERS[place - 2], place, begin_ns)
            done.append(write_timeline(run, part, span=span, beside=beside))
        with private.open("wb") as whole:
            for part in parts:
                with part.open("rb") as one:
                    shutil.copyfileobj(one, whole)
    return Timeline(
        output=output,
        views=tuple(dict.fromkeys(view for one in done for view in one.views)),
        skipped=tuple(error for one in done for error in one.skipped),
        warnings=tuple(
            replace(notice, run=title)
            for one, title in zip(done, titles, strict=True)
            for notice in one.warnings
        ),
    )


def _name(run: Run) -> str:
    return run.source.name


def _begin(run: Run, span: Span) -> int:
    start, _ = run.on_clock(span)
    return run.bounds()[0] if start is None else start
