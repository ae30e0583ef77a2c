# SPDX-License-Identifier: Apache-2.0
"""SQL from stdin, for the verbs that take a statement."""

from __future__ import annotations

import sys

from wbscope.base.errors import InputError, UsageError
from wbscope.base.smallfile import read_bounded

__all__ = ["no_statement", "statements_of_stdin"]


def statements_of_stdin(command: str, example: str) -> str:
    """What is there, whatever its bytes: those that are no text are refused with their statement.

    Raises: UsageError when stdin is closed, with an example of the command; InputError when it
    cannot be read, or has no end.
    """
    if sys.stdin is None:
        raise no_statement(command, "stdin is closed", example)
    try:
        return read_bounded(sys.stdin.buffer).decode("utf-8", "surrogateescape")
    except OSError as error:
        told = f"cannot be read: {error.strerror or error}"
        raise InputError("cannot-read", "stdin", told, fix=example) from error


def no_statement(command: str, why: str, example: str) -> UsageError:
    """Nothing was asked."""
    return UsageError("no-statement", command, f"got no statement, and {why}", fix=example)
