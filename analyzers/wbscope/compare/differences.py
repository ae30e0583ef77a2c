# SPDX-License-Identifier: Apache-2.0
"""Where runs differ in what they should have in common, and what nobody knows of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wbscope.base.result import unit_of
from wbscope.base.units import format_value
from wbscope.compare.fingerprint import ABSENT_EVENTS, FACTS
from wbscope.compare.rundata import Fact, RunData

__all__ = ["Difference", "differences", "facts_text", "is_fact", "unknown_facts"]

# Shares by which numbers may be apart and still be the same fact.
_TOLERANCE = {"memory_bytes": 0.03, "swap_bytes": 0.03, "dirty_thresh_bytes": 0.25}
# Words that are the members of a set.
_LISTS = ("events", "other_events")
_MOST_WORDS = 4
# Another kernel has other fields, and other events that no query reads.
_OF_KERNEL = ("fields", "other_events")


@dataclass(frozen=True)
class Difference:
    """A fact that is not the same in all runs: value -> the runs that have it."""

    fact: str
    values: Mapping[str, tuple[str, ...]]

    def text(self) -> str:
        """hz: 250 (a, b), 1000 (c); of lists, what not all of them have, the first few."""
        told = (f"{value} ({_some(runs)})" for value, runs in self._shown())
        return f"{self.fact}: {', '.join(told)}"

    def _shown(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        if self.fact not in _LISTS:
            yield from self.values.items()
            return
        common = set.intersection(*(set(value.split()) for value in self.values))
        for value, runs in self.values.items():
            words = [word for word in value.split() if word not in common]
            yield _first(words) or "no other", runs


def differences(runs: Sequence[RunData], allowed: Sequence[str] = ()) -> list[Difference]:
    """Facts with two values or more among these runs; what is not known differs from nothing."""
    names = dict.fromkeys(name for run in runs for name in run.fingerprint)
    absent = _absent(runs) if "kernel" in allowed else frozenset()
    found = []
    for name in names:
        if name == ABSENT_EVENTS or _is_allowed(name, allowed):
            continue
        groups: list[tuple[Fact, list[str]]] = []
        for run in runs:
            value = run.fingerprint.get(name)
            if value is None:
                continue
            if name == "events":
                value = " ".join(word for word in str(value).split() if word not in absent)
            group = next((g for v, g in groups if _same(name, v, value)), None)
            if group is None:
                groups.append((value, [run.name]))
            else:
                group.append(run.name)
        if len(groups) > 1:
            values = {_shown(name, value): tuple(group) for value, group in groups}
            found.append(Difference(name, values))
    return found


def unknown_facts(runs: Sequence[RunData]) -> list[str]:
    """Facts that at least one run does not tell: nobody knows whether they are equal."""
    names = dict.fromkeys(name for run in runs for name in run.fingerprint)
    settings = [name for name in names if name.startswith("sysctl.")]
    unknown = [
        name
        for name in names
        if name not in (*settings, *_OF_KERNEL, ABSENT_EVENTS)
        and any(run.fingerprint.get(name) is None for run in runs)
    ]
    # One that a run with others does not have is none of its kernel.
    if any(all(run.fingerprint.get(name) is None for name in settings) for run in runs):
        unknown.append("sysctl")
    return unknown


def is_fact(name: str) -> bool:
    """True for what differs = [...] may name."""
    return name in FACTS or name.startswith("sysctl.")


def _is_allowed(name: str, allowed: Sequence[str]) -> bool:
    if name in allowed or (name.startswith("sysctl.") and "sysctl" in allowed):
        return True
    return name in _OF_KERNEL and "kernel" in allowed


def _absent(runs: Sequence[RunData]) -> frozenset[str]:
    """Events that the kernel of at least one run does not have."""
    told = (run.fingerprint.get(ABSENT_EVENTS) for run in runs)
    return frozenset(word for text in told if text for word in str(text).split())


def _same(name: str, first: Fact, second: Fact) -> bool:
    if isinstance(first, str) or isinstance(second, str) or first is None or second is None:
        return first == second
    return abs(first - second) <= _TOLERANCE.get(name, 0.0) * max(abs(first), abs(second))


def _shown(name: str, value: Fact) -> str:
    if isinstance(value, str) or value is None:
        return str(value)
    return format_value(name, unit_of(name), value) if name.endswith("_bytes") else str(value)


def _first(words: Sequence[str]) -> str:
    """Of a kernel's hundred events enough to know what it is about."""
    if len(words) <= _MOST_WORDS:
        return " ".join(words)
    return f"{' '.join(words[: _MOST_WORDS - 1])} and {len(words) - _MOST_WORDS + 1} more"


def _some(runs: Sequence[str]) -> str:
    return ", ".join(runs) if len(runs) <= 3 else f"{', '.join(runs[:2])} and {len(runs) - 2} more"


def facts_text(names: Sequence[str]) -> str:
    """Facts by name; of many settings only how many there are."""
    settings = [name for name in names if name.startswith("sysctl.")]
    if len(settings) < 2:
        return ", ".join(names)
    others = [name for name in names if name not in settings]
    return ", ".join([*others, f"sysctl ({len(settings)} settings)"])
