# SPDX-License-Identifier: Apache-2.0
"""Gate results of made-up runs: every verdict there is, without a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wbscope.base.result import Notice
from wbscope.compare.comparison import Side
from wbscope.compare.gate import GateResult, judge
from wbscope.compare.policy import Policy, read_policy
from wbscope.compare.rundata import RunData
from wbscope.measure.metric import Better, Metric, Scalars

__all__ = ["METRICS", "POLICY", "hostile", "judged", "policy_file", "runs", "side"]

# Six runs a side each; what the policy below makes of them is in the names.
_LOW, _HIGH = (100, 101, 102, 103, 104, 105), (140, 141, 142, 143, 144, 145)
METRICS: dict[str, tuple[str, Better, Sequence[float], Sequence[float]]] = {
    "made.worse_ns": ("ns", "lower", _LOW, _HIGH),
    "made.same_bytes_per_s": ("bytes/s", "higher", (1e6,) * 6, (1e6,) * 6),
    "made.better_ns": ("ns", "lower", _HIGH, _LOW),
    "made.unsure_count": ("count", "lower", (10, 90, 20, 80, 30, 70), (15, 95, 25, 85, 35, 75)),
    "made.zero_count": ("count", "lower", (667839,) * 6, (0,) * 6),
    "made.over_budget_ns": ("ns", "lower", (1,) * 6, (2e8,) * 6),
}
POLICY = """\
# A policy with every kind of verdict.
[metrics."made.worse_ns"]
margin = "5%"

[metrics."made.same_bytes_per_s"]
margin = "5%"

[metrics.'made.better_ns']
margin = "5%"

[metrics."made.unsure*"]
margin = "5%"

[metrics."made.zero_count"]
margin = "5%"

[metrics."made.over_budget_ns"]
budget = "<= 100ms"

[metrics."made.nowhere.count"]
margin = "5%"
"""


def policy_file(folder: Path, text: str = POLICY) -> Path:
    path = folder / "gate.toml"
    path.write_text(text)
    return path


def runs(
    values: Mapping[str, Sequence[float | None]],
    prefix: str = "run",
    metrics: Mapping[str, Metric] | None = None,
    **facts: object,
) -> tuple[RunData, ...]:
    """One run for each value; facts are RunData's other fields."""
    made = []
    for index in range(len(next(iter(values.values())))):
        scalars = Scalars()
        for name, numbers in values.items():
            unit, better = METRICS[name][:2] if name in METRICS else ("count", "lower")
            told = Metric(name, unit, better, f"What {name} is.", "made")
            scalars.add((metrics or {}).get(name, told), numbers[index])
        made.append(RunData(f"{prefix}-{index + 1}", f"{prefix}{index}", scalars, **facts))  # type: ignore[arg-type]
    return tuple(made)


def side(name: str, which: int, **facts: object) -> Side:
    """The base is 2, what is judged 3: the index in METRICS."""
    values = {metric: entry[which] for metric, entry in METRICS.items()}  # type: ignore[misc]
    return Side(name, runs(values, name, **facts))  # type: ignore[arg-type]


def judged(policy: Policy | Path, **facts: object) -> GateResult:
    """Every verdict at once."""
    rules = read_policy(policy) if isinstance(policy, Path) else policy
    families = [*METRICS, "made.nowhere.count"]
    return judge(side("now", 3, **facts), side("before", 2), rules, families)


def hostile(folder: Path) -> GateResult:
    """Names and warnings that mean something in XML, Markdown, JSON and workflow commands."""
    name = "made.<b>|`x`&\"'::error%0A@team[comm=]]>\x07]".replace("]]>\x07", "__>")
    metric = Metric(name, "count", "lower", "A <script> & ::warning::\n| cell |", "made")
    notice = Notice("lost-events", "::error::\x1b[31m lost & gone\nnext]]>\ufffe")
    told = {name: metric}
    base = Side("be|fore", runs({name: (1, 2, 3, 4, 5, 6)}, "a", told))
    now = Side("n<o>w", runs({name: (11, 12, 13, 14, 15, 16)}, "b", told, warnings=(notice,)))
    text = 'lost_events = "allow"\n[metrics."made.*"]\nmargin = "5%"\n'
    return judge(now, base, read_policy(policy_file(folder, text)), [name])
