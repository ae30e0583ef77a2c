# SPDX-License-Identifier: Apache-2.0
"""What runs must have in common: facts of a run, and where two lots of runs differ."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wbscope.compare.rundata import Fact, RunData
from wbscope.engine.library import Library
from wbscope.engine.result import unit_of
from wbscope.render.units import format_value
from wbscope.run import Run

__all__ = ["FACTS", "Difference", "differences", "fingerprint_of", "is_fact", "unknown_facts"]

# What a user can declare with differs = [...]; each says what it covers.
FACTS = {
    "kernel": "release of the kernel; declared, the fields of events may differ too",
    "machine": "architecture, as uname -m prints it",
    "cpus_count": "CPUs",
    "memory_bytes": "MemTotal; 3 % are not counted, as each kernel keeps some for itself",
    "swap_bytes": "SwapTotal; 3 %",
    "page_bytes": "size of a page",
    "hz": "ticks a second of the kernel: no pause is finer",
    "dirty_thresh_bytes": "limit of dirty pages before the run; a quarter is not counted",
    "device": "disks: model, size, scheduler; of runs of `wbscope record`",
    "filesystem": "mounted file systems and their options; of runs of `wbscope record`",
    "sysctl": "settings in the file sysctls; sysctl.NAME is a single one",
    "events": "recorded events that queries read",
    "other_events": "recorded events that no query reads: they cost time, too",
    "fields": "fields of the events that queries read",
    "clock": "trace clock",
    "format": "trace.dat, text or Perfetto",
    "command": "what was run, without folders; of runs of `wbscope record`",
}

# Shares by which numbers may be apart and still be the same fact.
_TOLERANCE = {"memory_bytes": 0.03, "swap_bytes": 0.03, "dirty_thresh_bytes": 0.25}
# Settings that a run itself writes, those that are no settings, and two that the kernel
# sets from the memory that is free at boot, which overcommit alone uses.
_NO_SETTING = re.compile(
    r"vm\.(drop_caches|compact_memory|stat_refresh|(admin|user)_reserve_kbytes)"
    r"|kernel\.ftrace_enabled"
)
# Words that are the members of a set.
_LISTS = ("events", "other_events")
_FILES = ("meta.json", "sysctls", "mounts", "devices")
_NUMBERS = ("cpus_count", "memory_bytes", "swap_bytes", "page_bytes", "hz", "dirty_thresh_bytes")


@dataclass(frozen=True)
class Difference:
    """A fact that is not the same in all runs: value -> the runs that have it."""

    fact: str
    values: Mapping[str, tuple[str, ...]]

    def text(self) -> str:
        """hz: 250 (a, b), 1000 (c); of lists, what not all of them have."""
        told = (f"{value} ({_some(runs)})" for value, runs in self._shown())
        return f"{self.fact}: {', '.join(told)}"

    def _shown(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        if self.fact not in _LISTS:
            yield from self.values.items()
            return
        common = set.intersection(*(set(value.split()) for value in self.values))
        for value, runs in self.values.items():
            yield " ".join(w for w in value.split() if w not in common) or "no other", runs


def fingerprint_of(run: Run) -> dict[str, Fact]:
    """All facts; None where nothing tells."""
    facts: dict[str, Fact] = dict.fromkeys(name for name in FACTS if name != "sysctl")
    for record in run.query("fingerprint"):
        facts[record["key"]] = _typed(record["key"], record["value"])
    texts = run.texts(_FILES)
    meta = _object(texts.get("meta.json", ""))
    for name in (*_NUMBERS, "machine", "command"):
        if facts.get(name) is None and meta.get(name) is not None:
            facts[name] = _typed(name, _one_line(meta[name]))
    recorded = run.recorded().meta
    for name in ("machine", "clock", "format"):
        if recorded.get(name):
            facts[name] = str(recorded[name])
    if facts["machine"] is None:
        facts["machine"] = _machine(run)
    if facts["command"] is not None:  # each run writes into a folder of its own
        facts["command"] = re.sub(r'[^\s"=,]*/', "", str(facts["command"]))
    if devices := texts.get("devices") or meta.get("devices"):
        facts["device"] = _one_line(devices)
    facts["filesystem"] = _file_systems(texts.get("mounts", ""))
    facts |= dict(_sysctls(texts.get("sysctls", "")))
    facts |= _recorded_events(run)
    return facts


def differences(runs: Sequence[RunData], allowed: Sequence[str] = ()) -> list[Difference]:
    """Facts with two values or more among these runs; what is not known differs from nothing."""
    names = dict.fromkeys(name for run in runs for name in run.fingerprint)
    found = []
    for name in names:
        if _is_allowed(name, allowed):
            continue
        groups: list[tuple[Fact, list[str]]] = []
        for run in runs:
            value = run.fingerprint.get(name)
            if value is None:
                continue
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
    unknown = [n for n in names if any(run.fingerprint.get(n) is None for run in runs)]
    if not any(name.startswith("sysctl.") for name in names):
        unknown.append("sysctl")
    return [name for name in unknown if name not in ("fields", "other_events")]


def is_fact(name: str) -> bool:
    """True for what differs = [...] may name."""
    return name in FACTS or name.startswith("sysctl.")


def _is_allowed(name: str, allowed: Sequence[str]) -> bool:
    if name in allowed or (name.startswith("sysctl.") and "sysctl" in allowed):
        return True
    # Another kernel has other fields, and its image takes other room.
    return name in ("fields", "other_events") and "kernel" in allowed


def _same(name: str, first: Fact, second: Fact) -> bool:
    if isinstance(first, str) or isinstance(second, str) or first is None or second is None:
        return first == second
    return abs(first - second) <= _TOLERANCE.get(name, 0.0) * max(abs(first), abs(second))


def _shown(name: str, value: Fact) -> str:
    if isinstance(value, str) or value is None:
        return str(value)
    return format_value(name, unit_of(name), value) if name.endswith("_bytes") else str(value)


def _some(runs: Sequence[str]) -> str:
    return ", ".join(runs) if len(runs) <= 3 else f"{', '.join(runs[:2])} and {len(runs) - 2} more"


def _typed(name: str, value: str | None) -> Fact:
    """Numbers as numbers, so that they can be compared with a tolerance."""
    if value is None or name not in _NUMBERS:
        return value
    return int(value) if re.fullmatch(r"\d{1,18}", value) else value


def _one_line(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return " ".join(text.split())


def _object(text: str) -> dict[str, Any]:
    """meta.json of a run folder; one that cannot be read tells nothing."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _machine(run: Run) -> str | None:
    """The last word of `uname -a`, but GNU/Linux."""
    words = str(run.recorded().meta.get("uname") or "").removesuffix("GNU/Linux").split()
    return words[-1] if len(words) > 3 else None


def _sysctls(text: str) -> Iterator[tuple[str, Fact]]:
    for line in text.splitlines():
        name, equals, value = line.partition(" = ")
        if equals and not _NO_SETTING.fullmatch(name.strip()):
            yield f"sysctl.{name.strip()}", " ".join(value.split())


def _file_systems(text: str) -> str | None:
    """Of /proc/self/mountinfo: where each disk is mounted, its type and options."""
    mounts = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        left, right = before.split(), after.split()
        if len(left) >= 6 and len(right) >= 3 and right[1].startswith("/dev/"):
            mounts.append(f"{left[4]} {right[0]} {left[5]} {right[2]}")
    return "; ".join(sorted(mounts)) or None


def _recorded_events(run: Run) -> dict[str, Fact]:
    """Events by the view that reads them, so that an event's older name is the same one."""
    recorded = run.recorded()
    homes = _homes(run.library)
    seen = sorted(recorded.tables)
    read = sorted({homes[event] for event in seen if event in homes})
    return {
        "events": " ".join(read) or None,
        # The kernel's own tracers are in every file, recorded or not.
        "other_events": " ".join(e for e in seen if e not in homes and not e.startswith("ftrace:")),
        "fields": _fields(run, [event for event in seen if event in homes]),
    }


def _homes(library: Library) -> dict[str, str]:
    """Event -> the newest name of what it is."""
    files = (file for file in library.files.values() if file.source_events)
    return {event: file.source_events[0] for file in files for event in file.source_events}


def _fields(run: Run, events: Sequence[str]) -> Fact:
    """A hash of the columns of the events' tables."""
    tables = run.recorded().tables
    told = [
        (event, sorted(name for name, _ in run.columns(str(tables[event]))))
        for event in events
        if tables[event] is not None
    ]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:12] if told else None
