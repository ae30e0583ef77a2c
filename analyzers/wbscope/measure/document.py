# SPDX-License-Identifier: Apache-2.0
"""JSON documents of other tools, and what is wrong with the ones that cannot be read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from wbscope.base.errors import InputError

# As wbscope-ingest reads files beside a trace.
MOST_BYTES = 16 << 20
_SHOWN = 60
# No value of any of these tools is near it; digits without end are no number.
_MOST_DIGITS = 30


def bad(subject: str, message: str, fix: str, *, at: str | None = None) -> InputError:
    """The file is not what its name says, or is damaged."""
    return InputError(
        "bad-measurement",
        subject,
        message,
        at=at,
        effect="nothing of this file was used",
        fix=fix,
    )


def failed(subject: str, message: str) -> InputError:
    """The tool says that the workload did not end well."""
    return InputError(
        "failed-workload",
        subject,
        f"{message}: its numbers are not those of a whole run",
        fix=f"record the run again, or take {subject} out of its folder",
    )


def shown(text: str) -> str:
    """A piece of the file as a message shows it."""
    cut = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
    return f'"{cut}"'


def decimal(text: str) -> float | None:
    """A plain decimal number of 0 or more; None when the text is another thing."""
    if len(text) > _MOST_DIGITS or re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def scaled(value: float, scale: float) -> float:
    """In the metric's unit, without what binary fractions add: 16.47 ms is 16470000 ns."""
    return round(value * scale, 6)


# Counters of 64 bits; more is no number that any of these tools writes.
_MOST = 2.0**64


class Node:
    """A value of the document and the way to it."""

    def __init__(self, value: Any, path: str, subject: str, fix: str) -> None:
        self._value = value
        self.path = path
        self._subject = subject
        self._fix = fix

    def has(self, key: str) -> bool:
        """True when this is an object with the key."""
        return isinstance(self._value, dict) and key in self._value

    def names(self) -> list[str]:
        """The keys of an object."""
        return list(self._of(dict, "an object"))

    def __getitem__(self, key: str) -> Node:
        inside = self._of(dict, "an object")
        if key not in inside:
            raise bad(self._subject, f'has no "{key}"', self._fix, at=self.path)
        return Node(inside[key], f"{self.path}.{key}", self._subject, self._fix)

    def __iter__(self) -> Iterator[Node]:
        for index, value in enumerate(self._of(list, "a list")):
            yield Node(value, f"{self.path}[{index}]", self._subject, self._fix)

    def is_null(self) -> bool:
        """True for a value that is not known."""
        return self._value is None

    def text(self) -> str:
        """A string."""
        found: str = self._of(str, "a text")
        return found

    def number(self) -> float:
        """A finite number of 0 or more."""
        found = self._value
        good = isinstance(found, int | float) and not isinstance(found, bool)
        if not good or not 0 <= found < _MOST:
            raise self.wrong("a number of 0 or more")
        return float(found)

    def wrong(self, wanted: str) -> Exception:
        """The error that this value is not what was wanted."""
        found = shown(str(self._value))
        return bad(self._subject, f"found {found}, wanted {wanted}", self._fix, at=self.path)

    def _of(self, kind: type, wanted: str) -> Any:
        if not isinstance(self._value, kind):
            raise self.wrong(wanted)
        return self._value


def load(
    text: str, subject: str, fix: str, at: str | None = None, start: int = 0
) -> tuple[Any, int]:
    """The JSON value at `start` and where it ends; NaN and endless digits are refused."""
    decoder = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_unique)
    try:
        return decoder.raw_decode(text, start)
    except RecursionError as error:
        raise bad(subject, "is nested too deeply to be read", fix, at=at) from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}" if at is None else at
        raise bad(subject, f"is no whole JSON: {error.msg}", fix, at=where) from error
    except ValueError as error:
        raise bad(subject, f"is no good JSON: {error}", fix, at=at) from error


class _Repeated:
    """Stands for a key with two values; an error only when somebody wants it."""

    def __str__(self) -> str:
        return "two values of one key"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        found[key] = _Repeated() if key in found and found[key] != value else value
    return found
