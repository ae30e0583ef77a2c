# SPDX-License-Identifier: Apache-2.0
"""Every error that wbscope reports, its exit code, and the words that fixes need.

The library speaks of arguments (`window='2s'`). What shows its texts to somebody who typed options
says the same in options (`--window 2s`), so a text that names an argument remembers where.

WbscopeError
|-- UsageError      2   the command line asks for something that cannot be done
|-- QueryError      2   no such query, or SQL that is not one good SELECT
|-- InputError      3   the trace, run folder or database is missing or damaged
|-- EvidenceError   4   the run does not hold what the question needs
|-- SetupError      5   this machine: missing program, permission, full disk
`-- InternalError  70   a bug in wbscope

Exit code 1 is kept for a gate that says no, 130 for an interrupted command.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Self

__all__ = [
    "EXTRAS",
    "Argument",
    "EvidenceError",
    "InputError",
    "InternalError",
    "Phrase",
    "QueryError",
    "SetupError",
    "UsageError",
    "WbscopeError",
    "missing_library",
    "nearest",
]


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


class WbscopeError(Exception):
    """One thing that went wrong: what was found, what was wanted, the remedy.

    `slug` names the cause and never changes its meaning; `subject` is the file,
    query or argument concerned.  `fix` is a command that works.
    Texts that name arguments are Phrases.
    """

    exit_code = 70

    def __init__(
        self,
        slug: str,
        subject: str,
        message: str,
        *,
        at: str | None = None,
        have: str | None = None,
        effect: str | None = None,
        fix: str | None = None,
    ) -> None:
        super().__init__(f"{subject}: {message}")
        self.slug = slug
        self.subject = subject
        self.message = message
        self.at = at
        self.have = have
        self.effect = effect
        self.fix = fix

    def details(self) -> list[tuple[str, str]]:
        """The labelled lines below the first, in their fixed order."""
        lines = (
            ("at", self.at),
            ("have", self.have),
            ("effect", self.effect),
            ("fix", self.fix),
        )
        return [(label, text) for label, text in lines if text is not None]

    def with_path(self, private: str, shown: str) -> Self:
        """The same error, naming the user's path instead of a private one."""

        def swap(text: str) -> str:
            if isinstance(text, Phrase):
                return text.replaced(private, shown)
            return text.replace(private, shown)

        return self._changed(swap)

    def spoken(self, say: Callable[[Argument], str]) -> Self:
        """The same error with other words for arguments: options, on a command line."""
        return self._changed(lambda text: text.spoken(say) if isinstance(text, Phrase) else text)

    def _changed(self, change: Callable[[str], str]) -> Self:
        def swap(text: str | None) -> str | None:
            return None if text is None else change(text)

        return type(self)(
            self.slug,
            change(self.subject),
            change(self.message),
            at=swap(self.at),
            have=swap(self.have),
            effect=swap(self.effect),
            fix=swap(self.fix),
        )


class UsageError(WbscopeError):
    exit_code = 2


class QueryError(WbscopeError):
    exit_code = 2


class InputError(WbscopeError):
    exit_code = 3


class EvidenceError(WbscopeError):
    exit_code = 4


class SetupError(WbscopeError):
    exit_code = 5


class InternalError(WbscopeError):
    exit_code = 70


# The extra that brings the others of a command, and what it brings.
_WITHIN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "fleet": frozenset({"arrow", "fleet", "gate"}),
        "spark": frozenset({"arrow", "fleet", "gate", "spark"}),
    }
)

# The module that is imported -> the extra of the package wbscope that brings it.
EXTRAS: Mapping[str, str] = MappingProxyType(
    {
        "duckdb": "fleet",
        "google": "perfetto",
        "matplotlib": "plots",
        "numpy": "gate",
        "pandas": "pandas",
        "perfetto": "perfetto",
        "polars": "polars",
        "prompt_toolkit": "prompt",
        "py4j": "spark",
        "pyarrow": "arrow",
        "pyspark": "spark",
        "ruptures": "gate",
        "scipy": "gate",
    }
)


def missing_library(
    error: ImportError, subject: str, whole: str | None = None
) -> SetupError | None:
    """The error for an import that failed for want of an extra; None for any other.

    `whole` is the extra with all that the command needs: it is told where it brings the library, so
    that there is one error and not one after the other.
    """
    library = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(library)
    if extra is None:
        return None
    if whole is not None and extra in _WITHIN[whole]:
        extra = whole
    return SetupError(
        "missing-library",
        subject,
        f"needs the Python library {library}, which is not installed",
        fix=install_line(extra),
    )


def install_line(extra: str, prefix: Path = Path(sys.prefix)) -> str:
    """A command that brings an extra into the environment that is running."""
    if "pipx" in prefix.parts:
        return f"pipx runpip wbscope install 'wbscope[{extra}]'"
    return f"{prefix / 'bin/python'} -m pip install 'wbscope[{extra}]'"


_CUTOFF = 0.6
# Fewer are in any name.
_LEAST_LETTERS = 3


def nearest(wanted: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Those that have the word in them, else those that look like it; wildcards are no letters."""
    known = list(dict.fromkeys(names))
    word = wanted.strip("*?").lower()
    if len(word) >= _LEAST_LETTERS:
        having = [name for name in known if word in name.lower()]
        # What begins so was rather meant than what has it somewhere.
        having.sort(key=lambda name: not name.lower().startswith(word))
        if having:
            return having[:most]
    return difflib.get_close_matches(word, known, n=most, cutoff=_CUTOFF)
