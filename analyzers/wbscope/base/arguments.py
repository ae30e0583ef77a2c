# SPDX-License-Identifier: Apache-2.0
"""Texts that name arguments: as Python writes them, and as a command line would.

The library speaks of arguments (`window='2s'`). What shows its texts to somebody who typed options
says the same in options (`--window 2s`), so a text that names an argument remembers where.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Argument", "Phrase"]


@dataclass(frozen=True)
class Argument:
    """An argument with its value; without one (None), its name alone."""

    name: str
    value: object = None

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        value = str(self.value) if isinstance(self.value, Path) else self.value
        return f"{self.name}={value!r}"


class Phrase(str):
    """A text made of words and arguments; as a str it is what Python's users read."""

    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: str | Argument) -> Phrase:
        made = super().__new__(cls, "".join(map(str, parts)))
        made.parts = parts
        return made

    def replaced(self, old: str, new: str) -> Phrase:
        """The same with another text in the place of this one, in values, too."""

        def swap(part: str | Argument) -> str | Argument:
            if isinstance(part, str):
                return part.replace(old, new)
            value = part.value
            if not isinstance(value, str | Path) or old not in str(value):
                return part
            text = str(value).replace(old, new)
            return Argument(part.name, text if isinstance(value, str) else Path(text))

        return Phrase(*map(swap, self.parts))

    def spoken(self, say: Callable[[Argument], str]) -> str:
        """The same text with other words for each argument."""
        return "".join(part if isinstance(part, str) else say(part) for part in self.parts)
