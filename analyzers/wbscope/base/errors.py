# SPDX-License-Identifier: Apache-2.0
"""Every error that wbscope reports, and the exit code that goes with it.

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

from collections.abc import Callable
from typing import Self

from wbscope.base.arguments import Argument, Phrase

__all__ = [
    "EvidenceError",
    "InputError",
    "InternalError",
    "QueryError",
    "SetupError",
    "UsageError",
    "WbscopeError",
]


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
