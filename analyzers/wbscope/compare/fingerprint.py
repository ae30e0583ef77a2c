# SPDX-License-Identifier: Apache-2.0
"""What runs must have in common: the facts of a run."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from wbscope.compare.rundata import Fact
from wbscope.compare.versions import is_before
from wbscope.library.library import Library, find_sql_dir
from wbscope.library.profiles import NOT_ASKED_FOR
from wbscope.run.run import Run

__all__ = ["ABSENT_EVENTS", "FACTS", "fingerprint_of", "fingerprint_of_folder"]

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
    "other_events": "recorded events that no query reads: they cost time, too",
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
_NO_FIELDS = {"repeats_count"}
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
        if len(left) < 6 or len(right) < 3 or right[0] in _READ_ONLY:
            continue
        if right[1].startswith("/dev/"):
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


def _absent_events(run: Run, meta: str, kernel: Fact) -> str | None:
    """What the recorder did not find, and what came with a later kernel than this."""
    told = _object(meta)
    missing, probe = told.get("missing"), told.get("probe")
    found = set(missing) if isinstance(missing, list) else set()
    if isinstance(probe, dict) and probe.get("kind") is None and probe.get("why") != NOT_ASKED_FOR:
        found |= {event for profile in run.library.profiles for event in profile.probes}
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
