# SPDX-License-Identifier: Apache-2.0
"""A program, or a verb that has verbs of its own: how its help looks is the same for all."""

from __future__ import annotations

from typing import Any

import typer

__all__ = ["HELP_OPTIONS", "verb_group"]

HELP_OPTIONS = ("-h", "--help")


def verb_group(name: str, **more: Any) -> typer.Typer:
    """No Rich markup: help texts keep their examples line by line, and no box reaches a pipe.

    `more` are further arguments of typer.Typer.
    """
    return typer.Typer(
        name=name,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": list(HELP_OPTIONS)},
        **more,
    )
