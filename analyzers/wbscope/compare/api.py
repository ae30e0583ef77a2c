# SPDX-License-Identifier: Apache-2.0
"""The Python interface of `wbscope compare` and `wbscope gate`: the same results as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wbscope.base.errors import UsageError

if TYPE_CHECKING:
    from wbscope.compare.comparison import Comparison
    from wbscope.compare.gate import GateResult
    from wbscope.compare.policy import Policy

__all__ = ["compare", "gate"]

Runs = str | Path | Sequence[str | Path]


def compare(
    runs: Runs | Mapping[str, Runs],
    against: Runs | None = None,
    *,
    metrics: Sequence[str] = ("*",),
    alpha: float = 0.05,
    margin: float = 0.05,
    allow_damaged: bool = False,
) -> Comparison:
    """Compare runs with others, or several named sides with the first of them.

    `runs` and `against` are what the command line takes: run folders, traces,
    databases, folders of runs, baselines. `metrics` are names, or patterns with *;
    only the queries behind them are run.

    Raises: WbscopeError as the command line reports it.
    """
    from wbscope.compare.comparison import compare_sides, only
    from wbscope.compare.load import Loader
    from wbscope.compare.policy import Rule, wanted_by
    from wbscope.compare.ranking import looked_through

    if isinstance(runs, Mapping):
        sides = {str(name): _texts(given) for name, given in runs.items()}
        if against is not None or len(sides) < 2:
            raise UsageError(
                "bad-sides",
                "compare",
                "wants two named sides or more, or runs and those that they are against",
                fix="wbscope.compare({'before': [...], 'after': [...]})",
            )
    else:
        if against is None:
            raise UsageError(
                "no-base", "compare", "has nothing to compare with", fix="against=[...]"
            )
        sides = {"B": _texts(against), "A": _texts(runs)}
    for name, value, most in (("alpha", alpha, 0.5), ("margin", margin, 1.0)):
        if not 0 <= value < most or (name == "alpha" and value == 0):
            raise UsageError(
                "bad-share", f"{name}={value!r}", f"is no share below {most}", fix=f"{name}=0.05"
            )
    rules = [Rule(pattern) for pattern in metrics]
    loader = Loader(wanted=wanted_by(rules), allow_damaged=allow_damaged)
    base, *others = [loader.side(name, texts) for name, texts in sides.items()]
    families = [metric.family for metric in loader.catalog.metrics]
    return looked_through(only(compare_sides(base, others, alpha, margin), metrics, families))


def gate(
    runs: Runs,
    against: Runs | None = None,
    *,
    policy: str | Path | Policy,
) -> GateResult:
    """Judge runs by a policy: a file, or a Policy made in Python.

    Raises: WbscopeError as the command line reports it; a refusal is no error but
    a result with the status REFUSED.
    """
    from wbscope.compare.gate import judge
    from wbscope.compare.load import Loader
    from wbscope.compare.policy import Policy, read_policy

    chosen = policy if isinstance(policy, Policy) else read_policy(Path(policy))
    # The gate refuses damaged runs itself, with all else that is wrong.
    loader = Loader(wanted=chosen.wants, allow_damaged=True, checks=chosen.checks)
    chosen.check_units(loader.catalog.units())
    side = loader.side("A", _texts(runs))
    base = None if against is None else loader.side("B", _texts(against))
    families = [metric.family for metric in loader.catalog.metrics]
    return judge(side, base, chosen, families)


def _texts(runs: Runs) -> list[str]:
    return [str(runs)] if isinstance(runs, str | Path) else [str(run) for run in runs]
