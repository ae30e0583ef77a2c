# SPDX-License-Identifier: Apache-2.0
"""What a question is restricted to, and whether a trace agrees with what is beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wbscope.base.errors import Argument, Phrase, UsageError
from wbscope.base.span import WHOLE, Span, parse_span
from wbscope.base.units import parse_duration, parse_number


@dataclass(frozen=True)
class Filters:
    """`window` is how the length of a window was written; None keeps the library's defaults.

    `bdi` and `cgroup` may be names, which each run knows for itself.
    """

    window_ns: int | None = None
    window: str | None = None
    bdi: str | None = None
    tid: int | None = None
    comm_glob: str | None = None
    cgroup: int | str | None = None
    span: Span = WHOLE

    def names(self) -> list[str]:
        """Those in force, as queries name them in @filters."""
        given = {
            "window": self.window_ns is not None,
            "bdi": self.bdi is not None,
            "task": self.comm_glob is not None,
            "tid": self.tid is not None,
            "cgroup": self.cgroup is not None,
            "range": bool(self.span),
        }
        return [name for name, is_given in given.items() if is_given]


def parse_filters(
    window: str | None = None,
    bdi: str | None = None,
    tid: int | None = None,
    task: str | int | None = None,
    cgroup: int | str | None = None,
    start: str | None = None,
    end: str | None = None,
    time_range: str | None = None,
) -> Filters:
    """From what Run.query() takes.

    Raises: UsageError.
    """
    _check_types(tid, task, bdi, cgroup)
    if isinstance(cgroup, str) and re.fullmatch(r"-?\d+", cgroup):
        cgroup = parse_number("cgroup", cgroup, negative=True)
    tid, comm_glob = _task(tid, task)
    window_ns = None if window is None else parse_duration("window", window, positive=True)
    span = parse_span(start, end, time_range)
    return Filters(window_ns, window, bdi, tid, comm_glob, cgroup, span)


def check_text(argument: str, value: object, example: str) -> None:
    """Raises: UsageError for what is no text."""
    if not isinstance(value, str):
        raise _bad_type(argument, value, "a text", example)


def _bad_type(argument: str, value: object, wanted: str, example: str) -> UsageError:
    told = f"is of type {type(value).__name__}, wanted {wanted}"
    return UsageError("bad-type", f"{argument}={value!r}", told, fix=example)


def _check_types(tid: object, task: object, bdi: object, cgroup: object) -> None:
    """What the command line makes sure of; other types would only fit no row."""
    number, name = ("a whole number", int), ("a text", str)
    for option, value, (wanted, *types), example in (
        ("tid", tid, number, "tid=1234"),
        ("task", task, ("a tid or a pattern of names", int, str), "task='dd*'"),
        ("bdi", bdi, name, "bdi='8:0'"),
        ("cgroup", cgroup, ("an inode or a path", int, str), "cgroup=1"),
    ):
        if value is None or (isinstance(value, tuple(types)) and not isinstance(value, bool)):
            continue
        raise _bad_type(option, value, wanted, example)
    if bdi == "":
        raise UsageError(
            "no-bdi",
            Phrase(Argument("bdi", "")),
            "is empty, wanted a name of events",
            fix=Phrase(Argument("bdi", "8:0")),
        )


def _task(tid: int | None, task: str | int | None) -> tuple[int | None, str | None]:
    """A task as a tid and a pattern of names; digits alone are a tid."""
    if task == "":
        raise UsageError(
            "no-task",
            Phrase(Argument("task", "")),
            "is empty, wanted a tid or a pattern of names",
            fix=Phrase(Argument("task", "dd*")),
        )
    if isinstance(task, str) and task.isdecimal():
        task = parse_number("task", task)
    if not isinstance(task, int):
        return tid, task
    if tid is not None and tid != task:
        raise UsageError(
            "two-choices",
            Phrase(Argument("tid", tid), " ", Argument("task", task)),
            "are two threads, wanted one",
            fix=Phrase(Argument("tid", tid)),
        )
    return task, None
