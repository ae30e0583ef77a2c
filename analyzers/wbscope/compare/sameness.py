# SPDX-License-Identifier: Apache-2.0
"""What runs have in common, where they differ, and which of them are one recording.

A run with a trace, or with a file that says when it was made, is known by its content.
Other files may be the same in two runs: 0 pages swapped, 12 s. Such a run is its content,
its path and the time of its files, and a copy is known by what is in it.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from wbscope.base.result import unit_of
from wbscope.base.units import format_value
from wbscope.compare.rundata import Fact, RunData
from wbscope.library.catalog import NOT_ASKED_FOR
from wbscope.library.library import Library, find_sql_dir
from wbscope.run.run import Run

_HASH_DIGITS = 12
# What no two recordings have in common: when they began, on which clock.
_STAMPS = {
    "meta.json": re.compile(r'"started_ts_ns": *\d'),
    "fio.json": re.compile(r'"timestamp(_ms)?" *: *\d'),
    "perf-stat.txt": re.compile(r"^# started on \w", re.MULTILINE),
    "vmstat.samples": re.compile(r"^# ts=\d", re.MULTILINE),
}
# So many runs have all their contents on the other side by chance less than once in 100
# times, however coarse the numbers.
_LEAST_CONTENTS = 4
# Of so many runs that are in one order on two sides: 12 s and 13 s are that by chance once in 16.
_LEAST_IN_ORDER = 4
# Digits of a number that say how long a thing takes; the rest is noise, and differs.
_SAME_ANYWAY = 2
# What may be the same each time, to the last digit.
_EXACT = ("count", "bytes", "")
# Of so many digits of noise, two runs have all alike less than once in a million times.
_MOST_BY_CHANCE = 6


def folder_id(folder: Path, texts: Mapping[str, str]) -> str:
    """CONTENT of a recording with a mark of its own, else CONTENT.PLACE."""
    told = "\n".join(f"{name}\n{text}" for name, text in sorted(texts.items()))
    content = _hash(told)
    if any(name in texts and mark.search(texts[name]) for name, mark in _STAMPS.items()):
        return content
    times = [f"{name} {_written(folder / name)}" for name in sorted(texts)]
    return f"{content}.{_hash(repr([str(folder.resolve()), *times]))}"


def copies_on_both(runs: Sequence[RunData], others: Sequence[RunData]) -> list[tuple[str, str]]:
    """The names of each run and of the other one that is the same recording."""
    same = {run.source_id: run.name for run in others}
    found = {run.name: same[run.source_id] for run in runs if run.source_id in same}
    contents = {_content(run): run for run in others if _is_unmarked(run)}
    alike = [(run, contents[_content(run)]) for run in runs if _content(run) in contents]
    alike = [pair for pair in alike if _is_unmarked(pair[0]) and pair[0].name not in found]
    everything = _all_found(runs, others)
    varying = _varying([*runs, *others])
    for run, other in alike:
        if everything or _digits(run, varying) >= _MOST_BY_CHANCE:
            found[run.name] = other.name
    return list(found.items())


def copies_within(runs: Sequence[RunData], others: Sequence[RunData] = ()) -> list[list[RunData]]:
    """The runs of a side that are one recording; other runs tell what varies."""
    groups: dict[str, list[RunData]] = {}
    for run in runs:
        groups.setdefault(run.source_id, []).append(run)
    contents: dict[str, list[RunData]] = {}
    for run in runs:
        if _is_unmarked(run):
            contents.setdefault(_content(run), []).append(run)
    repeated = {content: alike for content, alike in contents.items() if len(alike) > 1}
    varying = _varying([*runs, *others]) if repeated else set()
    every = len(contents) >= _LEAST_CONTENTS and len(repeated) == len(contents)
    for content, alike in repeated.items():
        if every or _digits(alike[0], varying) >= _MOST_BY_CHANCE:
            for run in alike:
                groups.pop(run.source_id, None)
            groups[content] = alike
    return [group for group in groups.values() if len(group) > 1]


def may_be_copies(runs: Sequence[RunData], others: Sequence[RunData]) -> bool:
    """Each run says what the other side's run in its place says, and not all say the same.

    Of coarse numbers that is no proof of a copied folder, and a reason to look.
    """
    sides = [[_content(run) for run in side if _is_unmarked(run)] for side in (runs, others)]
    told, of_others = sides
    are_all = len(told) == len(runs) and len(of_others) == len(others)
    return (
        are_all
        and told == of_others
        and len(told) >= _LEAST_IN_ORDER
        and len(set(told)) > 1
        and not copies_on_both(runs, others)
    )


def _all_found(runs: Sequence[RunData], others: Sequence[RunData]) -> bool:
    """Every run of the smaller side is on the other, and no two of a side are alike."""
    sides = [[_content(run) for run in side if _is_unmarked(run)] for side in (runs, others)]
    few, many = sorted(sides, key=len)
    if len(few) < _LEAST_CONTENTS or any(len(set(side)) < len(side) for side in sides):
        return False
    return set(few) <= set(many)


def _varying(runs: Iterable[RunData]) -> set[str]:
    """Metrics that are not the same in all runs.

    Where none varies, as among copies of one run, all but whole counts and sizes: these may be
    the same each time, a time never is to so many digits.
    """
    seen: dict[str, set[float | None]] = {}
    exact: set[str] = set()
    for run in runs:
        for name, (metric, value) in run.scalars.items():
            seen.setdefault(name, set()).add(value)
            if metric.unit in _EXACT and (value is None or value.is_integer()):
                exact.add(name)
    return {name for name, values in seen.items() if len(values) > 1} or {*seen} - exact


def _digits(run: RunData, varying: set[str]) -> int:
    """How many digits of its numbers are noise, which no other run has."""
    values = (value for name, (_, value) in run.scalars.items() if name in varying)
    return sum(max(_significant(value) - _SAME_ANYWAY, 0) for value in values if value)


def _significant(value: float) -> int:
    """12.340 s are 4 digits, whatever the unit; what conversion leaves is none."""
    return len(f"{abs(value):.11e}".partition("e")[0].rstrip("0").replace(".", ""))


def _is_unmarked(run: RunData) -> bool:
    return "." in run.source_id


def _content(run: RunData) -> str:
    return run.source_id.partition(".")[0]


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:  # removed since it was read
        return 0


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]


def is_before(release: str, border: str) -> bool | None:
    """True when the kernel is older than the border, such as 6.16; None = not known."""
    first, second = _number(release), _number(border)
    return None if first is None or second is None else first < second


def _number(release: str) -> tuple[int, int] | None:
    match = re.match(r"(\d{1,6})\.(\d{1,6})", release)
    return (int(match[1]), int(match[2])) if match else None


# What a user can declare with differs = [...]; each says what it covers.
FACTS = {
    "kernel": "release of the kernel; declared, fields and events that one lacks may differ too",
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
    "other_events": "recorded events that no query reads: they also cost time",
    "fields": "fields of the events that queries read",
    "clock": "trace clock",
    "format": "trace.dat, text or Perfetto",
    "command": "what was run, without folders; of runs of `wbscope record`",
}

# Kept with the facts, and none: events that queries read and this kernel does not have.
ABSENT_EVENTS = "absent_events"
# Settings that a run itself writes, those that are no settings, and two that the kernel
# sets from the memory that is free at boot, which overcommit alone uses.
_NO_SETTING = re.compile(
    r"vm\.(drop_caches|compact_memory|stat_refresh|(admin|user)_reserve_kbytes)"
    r"|kernel\.ftrace_enabled"
)
# File systems that nobody can write to: no run is another because of them.
_READ_ONLY = ("squashfs", "erofs", "iso9660", "cramfs", "romfs")
_FILES = ("meta.json", "sysctls", "mounts", "devices")
_MOST_CHARACTERS = 1 << 20
_NO_FIELDS = {"repeats_count", "common_flags"}
_NUMBERS = ("cpus_count", "memory_bytes", "swap_bytes", "page_bytes", "hz", "dirty_thresh_bytes")


def fingerprint_of(run: Run) -> dict[str, Fact]:
    """All facts; None where nothing tells."""
    facts: dict[str, Fact] = dict.fromkeys(name for name in FACTS if name != "sysctl")
    for record in run.query("fingerprint"):
        facts[record["key"]] = _typed(record["key"], record["value"])
    texts = run.texts(_FILES)
    facts |= _of_files(texts, facts)
    recorded = run.recorded().meta
    for name in ("machine", "clock", "format"):
        if recorded.get(name):
            facts[name] = str(recorded[name])
    if facts["machine"] is None:
        facts["machine"] = _machine(str(recorded.get("uname") or ""))
    facts |= _recorded_events(run)
    facts[ABSENT_EVENTS] = _absent_events(run, texts.get("meta.json", ""), facts["kernel"])
    return facts


def fingerprint_of_folder(folder: Path) -> dict[str, Fact]:
    """The facts of a run without a trace: what the files beside its measurements tell."""
    texts = {name: _text(folder / name) for name in (*_FILES, "uname", "meminfo", "meminfo.before")}
    facts: dict[str, Fact] = dict.fromkeys(name for name in FACTS if name != "sysctl")
    if len(words := texts["uname"].split()) > 2:  # Linux HOST RELEASE ...
        facts["kernel"] = words[2]
    facts["machine"] = _machine(" ".join(words))
    memory = texts["meminfo"] or texts["meminfo.before"]
    for fact, name in (("memory_bytes", "MemTotal"), ("swap_bytes", "SwapTotal")):
        if match := re.search(rf"^{name}: +([0-9]{{1,15}}) kB$", memory, re.MULTILINE):
            facts[fact] = int(match[1]) << 10
    return facts | _of_files(texts, facts)


def _text(path: Path) -> str:
    """A file that is not there, or cannot be read, tells nothing."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_CHARACTERS)
    except OSError:
        return ""


def _of_files(texts: Mapping[str, str], found: Mapping[str, Fact]) -> dict[str, Fact]:
    """What the files of `wbscope record` add, in a run folder or in a database."""
    facts = _of_recorder(texts.get("meta.json", ""), found)
    if devices := texts.get("devices"):
        facts["device"] = _one_line(devices)
    facts["filesystem"] = _file_systems(texts.get("mounts", ""))
    return facts | dict(_sysctls(texts.get("sysctls", "")))


def _of_recorder(text: str, found: Mapping[str, Fact]) -> dict[str, Fact]:
    """What meta.json of `wbscope record` adds; its HZ is read, and pauses only hint at one."""
    meta = _object(text)
    machine = meta.get("machine")
    told = machine if isinstance(machine, dict) else {}
    facts = {
        name: _typed(name, _one_line(told[name]))
        for name in (*_NUMBERS, "machine")
        if told.get(name) is not None and (found.get(name) is None or name == "hz")
    }
    if command := meta.get("command"):  # each run writes into a folder of its own
        facts["command"] = re.sub(r'[^\s"=,]*/', "", _one_line(command))
    return facts


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
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _machine(uname: str) -> str | None:
    """The last word of `uname -a`, but GNU/Linux."""
    words = uname.removesuffix("GNU/Linux").split()
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
        is_whole = len(left) >= 6 and len(right) >= 3
        if is_whole and right[0] not in _READ_ONLY and right[1].startswith("/dev/"):
            mounts.append(f"{left[4]} {right[0]} {left[5]} {right[2]}")
    return "; ".join(sorted(mounts)) or None


def _recorded_events(run: Run) -> dict[str, Fact]:
    """Events by the view that reads them, so that an event's older name is the same one."""
    recorded = run.recorded()
    homes = _homes(run.library)
    seen = sorted(recorded.tables)
    return {
        "events": " ".join(sorted({homes[e] for e in seen if e in homes})) or None,
        # The kernel's own tracers are in every file, recorded or not.
        "other_events": " ".join(e for e in seen if e not in homes and not e.startswith("ftrace:")),
        "fields": _fields(run, [event for event in seen if event in homes]),
    }


def _absent_events(run: Run, meta: str, kernel: Fact) -> str | None:
    """What the recorder did not find, and what came with a later kernel than this."""
    told = _object(meta)
    missing = told.get("missing")
    found = set(missing) if isinstance(missing, list) else set()
    for event in {event for profile in run.library.profiles for event in profile.probes}:
        made = told.get("waits" if event.endswith(":blocked") else "probe")
        if isinstance(made, dict) and not made.get("kind") and made.get("why") != NOT_ASKED_FOR:
            found.add(event)
    since = _releases(find_sql_dir())
    found |= {event for event, release in since.items() if is_before(str(kernel), release)}
    homes = _homes(run.library)
    return " ".join(sorted({homes[event] for event in found if event in homes})) or None


@cache
def _releases(root: Path) -> dict[str, str]:
    """Event -> the release that it came with, as the catalog says."""
    catalog = tomllib.loads((root / "catalog/events.toml").read_text(encoding="utf-8"))
    return {event["name"]: event["since"] for event in catalog["event"]}


def _homes(library: Library) -> dict[str, str]:
    """Event -> the newest name of what it is."""
    files = (file for file in library.files.values() if file.source_events)
    return {event: file.source_events[0] for file in files for event in file.source_events}


def _fields(run: Run, events: Sequence[str]) -> Fact:
    """A hash of the columns of the events' tables.

    Without what ingest has added since: a baseline of an older wbscope has the same fields.
    """
    tables = run.recorded().tables
    told = [
        (event, sorted({name for name, _ in run.columns(str(tables[event]))} - _NO_FIELDS))
        for event in events
        if tables[event] is not None
    ]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:12] if told else None


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
