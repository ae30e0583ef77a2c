# SPDX-License-Identifier: Apache-2.0
"""What the doctor found, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from wbscope.doctor.check import Check, Status
from wbscope.doctor.events import EventState
from wbscope.render.printable import printable

__all__ = ["checks_text", "states_text"]

_MARKS = {Status.ok: "ok", Status.missing: "-", Status.fails: "FAILS"}
_MARK_WIDTH = max(len(mark) for mark in _MARKS.values())


def checks_text(checks: Sequence[Check], width: int) -> str:
    """What follows from all of them; then a line each, the fix below it."""
    names = max(len(check.name) for check in checks)
    lines = [*_verdict(checks, width), ""]
    for check in checks:
        head = f"{_MARKS[check.status]:<{_MARK_WIDTH}}  {check.name:<{names}}  "
        lines += _wrapped(head, check.found, width)
        if check.fix is not None:
            # A command is not broken: it is there to be copied.
            lines.append(" " * len(head) + f"fix: {printable(check.fix)}")
    return "\n".join(lines) + "\n"


def states_text(states: Sequence[EventState]) -> str:
    """Profile, event, and its name here."""
    width = max(len(state.event) for state in states)
    lines = []
    for state in states:
        here = "missing" if state.name_here is None else "ok"
        if state.name_here not in (None, state.event):
            here = f"as {state.name_here}"
        lines.append(f"{state.profile:<10}{state.event:<{width}}  {here}\n")
    return "".join(lines)


def _verdict(checks: Sequence[Check], width: int) -> list[str]:
    """Whether anything can be recorded, what first helps if not, and what is not there if so."""
    failing = [check for check in checks if check.status is Status.fails]
    if not failing:
        missing = ", ".join(check.name for check in checks if check.status is Status.missing)
        without = f" Not all is there: {missing}." if missing else ""
        return _wrapped("", f"wbscope record works here.{without}", width)
    names = ", ".join(check.name for check in failing)
    lines = _wrapped("", f"wbscope record does not work here: {names}.", width)
    fix = next((check.fix for check in failing if check.fix is not None), None)
    return lines if fix is None else [*lines, f"To do: {printable(fix)}"]


def _wrapped(head: str, text: str, width: int) -> list[str]:
    room = max(width - len(head), 20)
    parts = textwrap.wrap(printable(text), room, break_long_words=False) or [""]
    return [head + parts[0], *(" " * len(head) + part for part in parts[1:])]
