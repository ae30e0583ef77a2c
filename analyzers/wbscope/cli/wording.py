# SPDX-License-Identifier: Apache-2.0
"""Texts of the library for people who typed options: `--window 2s`, not window='2s'."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from wbscope.base.arguments import Argument
from wbscope.base.errors import WbscopeError
from wbscope.base.result import Notice, Result

__all__ = ["answer_in_options", "error_in_options", "option", "warnings_in_options"]

# What is not called as its argument is.
_OPTIONS = {
    "end": "--to",
    "metrics": "--metric",
    "output": "-o",
    "start": "--from",
}


def option(argument: Argument) -> str:
    """The option for an argument, with its value as a shell takes it; repeated for a list."""
    name = _OPTIONS.get(argument.name) or f"--{argument.name.replace('_', '-')}"
    if argument.value is None or argument.value is True:
        return name
    values = argument.value if isinstance(argument.value, list | tuple) else [argument.value]
    return " ".join(f"{name} {shlex.quote(str(value))}" for value in values)


def error_in_options(error: WbscopeError) -> WbscopeError:
    """The error as it is shown on a command line."""
    return error.spoken(option)


def warnings_in_options(warnings: Iterable[Notice]) -> tuple[Notice, ...]:
    """The warnings as they are shown on a command line."""
    return tuple(notice.spoken(option) for notice in warnings)


def answer_in_options(result: Result) -> Result:
    """The result with such warnings."""
    return result.spoken(option)
