# SPDX-License-Identifier: Apache-2.0
"""What a gate refuses to judge: runs that are not comparable, not whole or not independent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wbscope.base.units import counted
from wbscope.compare.comparison import Side, told_apart
from wbscope.compare.copies import copies_on_both, copies_within
from wbscope.compare.differences import differences, facts_text, unknown_facts
from wbscope.compare.policy import Policy
from wbscope.compare.rundata import RunData

__all__ = ["Refusal", "refusals"]

# What may differ among the runs of a base, if the policy lets it differ between sides.
_OF_BASE = ("kernel",)


@dataclass(frozen=True)
class Refusal:
    """Why nothing is judged, and what allows it, if anything does."""

    slug: str
    message: str
    fix: str


def refusals(
    side: Side, base: Side | None, policy: Policy, *, itself: bool = False
) -> tuple[list[Refusal], list[str]]:
    """What is wrong with these runs, and the facts about them that nobody knows.

    The first runs are dropped already. `itself`: the base is meant to be the side itself.
    """
    sides = [side] if base is None else [side, base]
    # Runs of several kernels are one base where the policy lets kernels differ.
    mixed = [fact for fact in _OF_BASE if fact in policy.differs]
    allowed = [(one, mixed if one is base or itself else []) for one in sides]
    runs = [run for one in sides for run in one.runs]
    found = [refusal for one, facts in allowed for refusal in _of_side(one, policy, facts, runs)]
    if base is not None and not itself:
        found += _on_both(side, base)
    within = {d.fact for one, facts in allowed for d in differences(one.runs, facts)}
    if base is not None:
        for difference in differences(told_apart(sides), policy.differs):
            if difference.fact not in within:
                fix = f'differs = ["{difference.fact}"]    # in the policy, if it is meant to'
                found.append(Refusal("not-comparable", difference.text(), fix))
    unknown = unknown_facts(runs) if base is not None else []
    if unknown and policy.unknown == "refuse":
        told = f"nothing tells whether the runs have in common: {facts_text(unknown)}"
        found.append(Refusal("unknown-facts", told, "record with wbscope record"))
    return found, unknown


def _on_both(side: Side, base: Side) -> Iterator[Refusal]:
    """One wrong path, and a gate would be green for ever."""
    both = [f"{run} ({other})" for run, other in copies_on_both(side.runs, base.runs)]
    if both:
        told = f"{', '.join(both)} of {side.name} are among the runs of {base.name}"
        fix = "name other runs; wbscope gate --self-check judges runs against themselves"
        yield Refusal("same-recording", f"{told}: nothing can differ", fix)


def _of_side(
    side: Side, policy: Policy, allowed: Sequence[str], runs: Sequence[RunData]
) -> Iterator[Refusal]:
    """runs: of both sides."""
    if not side.runs:
        yield Refusal("no-runs", f"{side.name} has no runs", "name at least one run")
    given = len(side.runs) + policy.drop_first
    if policy.expect_runs not in (None, given):
        told = f"{side.name} has {counted(given, 'run')}, the policy expects {policy.expect_runs}"
        fix = f"find out what became of the others, or expect_runs = {given}"
        if given > (policy.expect_runs or 0):
            fix = f"leave out what is not of this test, or expect_runs = {given}"
        yield Refusal("number-of-runs", told, fix)
    for difference in differences(side.runs, allowed):
        told = f"runs of {side.name} differ among themselves: {difference.text()}"
        yield Refusal("mixed-side", told, "give only repetitions of one thing to a side")
    for group in copies_within(side.runs, runs):
        names = ", ".join(run.name for run in group)
        told = f"{names} of {side.name} are one recording: it counts as one run"
        yield Refusal("same-recording", told, "leave the copies out")
    for run in side.runs:
        if policy.damaged == "refuse" and run.damaged:
            told = f"{side.name} {run.name}: {run.damaged[0].message}"
            yield Refusal("damaged-run", told, 'record it again, or damaged = "allow"')
        if policy.failed == "refuse" and run.failed:
            told = f"{side.name} {run.name}: {run.failed[0].message}"
            yield Refusal("command-failed", told, 'record it again, or failed = "allow"')
        if policy.checks and run.checked is None:
            told = f"{side.name} {run.name}: nobody knows whether its trace passes the check"
            yield Refusal("not-checked", told, "save the baseline with this policy, from the runs")
        elif policy.checks and run.checked:
            told = f"{side.name} {run.name}: {run.checked[0]}"
            more = f" (and {len(run.checked) - 1} more)" if len(run.checked) > 1 else ""
            yield Refusal(
                "check-failed", f"{told}{more}", "record it again; wbscope check RUN has all of it"
            )
        if policy.lost_events == "refuse" and run.lost:
            told = f"{side.name} {run.name}: {run.lost[0].message}"
            yield Refusal(
                "lost-events", told, 'record with larger buffers, or lost_events = "allow"'
            )
