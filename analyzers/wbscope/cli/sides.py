# SPDX-License-Identifier: Apache-2.0
"""Runs on sides: RUN... --against RUN..., or --side NAME=RUN for each."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from wbscope.base.errors import InputError, UsageError

__all__ = [
    "AgainstOption",
    "BaselineOption",
    "FacesOption",
    "SideOption",
    "SidesCommand",
    "named_sides",
]

# They take every word up to the next option.
_GREEDY = ("--against", "--baseline")

AgainstOption = Annotated[
    list[str] | None,
    typer.Option("--against", metavar="RUN...", help="Runs to compare with."),
]
BaselineOption = Annotated[
    list[str] | None,
    typer.Option("--baseline", metavar="FILE...", help="Baselines to compare with."),
]
SideOption = Annotated[
    list[str] | None,
    typer.Option("--side", metavar="NAME=RUN", help="A run of a named side; the first is base."),
]
FacesOption = Annotated[bool, typer.Option("--no-faces", help="No :) :( :| in front.")]


class SidesCommand(TyperCommand):
    """Lets --against and --baseline take several runs, as the shell expands them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _spread(args))


def named_sides(
    runs: Sequence[str],
    against: Sequence[str] | None,
    baselines: Sequence[str] | None,
    sides: Sequence[str] | None,
    command: str,
) -> dict[str, list[str]]:
    """Side -> its runs, the base first.

    Raises: UsageError when there is nothing to compare; InputError without a baseline's file.
    """
    base = [*(against or ()), *(baselines or ())]
    _check_baselines(runs, baselines or ())
    if sides:
        if runs or base:
            raise UsageError(
                "two-ways",
                "--side",
                "names all runs, so there is no place for others",
                have=" ".join([*runs, *base]),
                fix=f"wbscope {command} --side old=RUN1 --side new=RUN2",
            )
        return _by_name(sides, command)
    if not runs:
        raise UsageError(
            "no-runs",
            command,
            "has no runs",
            fix=f"wbscope {command} RUN... --against {shlex.join(base) or 'RUN...'}",
        )
    return {"B": base, "A": list(runs)} if base else {"A": list(runs)}


def _check_baselines(runs: Sequence[str], baselines: Sequence[str]) -> None:
    """The first job of a CI has none: what makes one is told."""
    for name in baselines:
        if not os.path.exists(name):
            save = shlex.join(["wbscope", "baseline", "save", *runs, "-o", name])
            raise InputError(
                "no-baseline",
                name,
                "does not exist",
                effect="nothing was judged",
                fix=f"{save}    # accepts these runs as the base",
            )


def _by_name(sides: Sequence[str], command: str) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for text in sides:
        name, equals, run = text.partition("=")
        if not equals or not run or re.fullmatch(r"\S{1,40}", name) is None:
            raise UsageError(
                "bad-side",
                f"--side {text}",
                "is no NAME=RUN",
                fix=f"wbscope {command} --side old=RUN1 --side new=RUN2",
            )
        named.setdefault(name, []).append(run)
    if len(named) < 2:
        raise UsageError(
            "one-side",
            "--side",
            f"names one side, {next(iter(named))}, wanted two or more",
            fix=f"wbscope {command} --side old=RUN1 --side new=RUN2",
        )
    return named


def _spread(args: Sequence[str]) -> list[str]:
    """--against a b c as --against a --against b --against c."""
    spread: list[str] = []
    option: str | None = None
    for index, word in enumerate(args):
        if word == "--":
            return [*spread, *args[index:]]
        if word in _GREEDY:
            option = word
            if index + 1 == len(args) or _is_option(args[index + 1]):
                raise UsageError(
                    "usage", word, "has no runs behind it, wanted one or more", fix=f"{word} RUN"
                )
        elif _is_option(word):
            option = None
            spread.append(word)
        elif option is not None:
            spread += [option, word]
        else:
            spread.append(word)
    return spread


def _is_option(word: str) -> bool:
    """`-` is none: it is the run on stdin."""
    return word.startswith("-") and word != "-"
