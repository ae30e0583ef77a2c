# SPDX-License-Identifier: Apache-2.0
"""The lines of perf stat -j: one JSON object for each event."""

from __future__ import annotations

from collections.abc import Iterator

from wbscope.measure.bad import bad, decimal, shown
from wbscope.measure.document import Node, load

__all__ = ["json_counts"]

_FIX = "record it with: perf stat -j -o perf-stat.txt COMMAND"
_PARTS = ("interval", "cpu", "core", "die", "socket", "node", "thread", "cgroup", "cluster")
_NOT_COUNTED = ("<not supported>", "<not counted>")


def json_counts(text: str, subject: str) -> Iterator[tuple[str, str, str, float | None]]:
    """(place, event, unit, value); the value of an event that could not be counted is None.

    Raises: InputError.
    """
    found = False
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        at = f"line {number}"
        value, end = load(line.strip(), subject, _FIX, at)
        if line.strip()[end:]:
            raise bad(subject, f"found {shown(line.strip()[end:])} after an object", _FIX, at=at)
        event = Node(value, at, subject, _FIX)
        for part in _PARTS:
            if event.has(part):
                fix = f"{_FIX}, without -I, -A, --per-socket, --per-thread and the like"
                raise bad(subject, f"counts by {part}, wanted sums of the whole run", fix, at=at)
        if not event.has("counter-value"):  # more metrics of the event before
            event["metric-value"]
            continue
        yield at, event["event"].text(), event["unit"].text(), _value(event["counter-value"])
        found = True
    if not found:
        raise bad(subject, "has no event", _FIX)


def _value(node: Node) -> float | None:
    text = node.text()
    if text in _NOT_COUNTED:
        return None
    value = decimal(text)
    if value is None:
        raise node.wrong("a decimal number")
    return value
