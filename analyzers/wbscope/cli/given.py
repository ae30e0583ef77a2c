# SPDX-License-Identifier: Apache-2.0
"""SQL from stdin, for the verbs that take a statement."""

from __future__ import annotations

import sys

from wbscope.base.errors import UsageError

__all__ = ["no_statement", "statements_of_stdin"]


def statements_of_stdin(command: str, example: str) -> str:
    """What is there, whatever its bytes: those that are no text are refused with their statement.

    Raises: UsageError when stdin is closed, with an example of the command.
    """
    if sys.stdin is None:
        raise no_statement(command, "stdin is closed", example)
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def no_statement(command: str, why: str, example: str) -> UsageError:
    """Nothing was asked."""
    return UsageError("no-statement", command, f"got no statement, and {why}", fix=example)
