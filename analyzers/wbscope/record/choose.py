# SPDX-License-Identifier: Apache-2.0
"""What can be recorded here: events of a profile that this kernel has, clock, buffer size."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import EvidenceError, SetupError, UsageError
from wbscope.base.nearest import nearest
from wbscope.library.profiles import Profile

__all__ = [
    "CLOCKS",
    "ChosenEvents",
    "available_events",
    "buffer_kib",
    "choose_clock",
    "choose_events",
    "choose_profile",
    "matching_events",
    "memory_kib",
    "trace_cmd_problem",
]

CLOCKS = ("boot", "mono")
# Of the memory that is available, what all ring buffers together may take: dirty
# thresholds are a share of free memory, so the recorder must not eat into it.
_SHARE = {"deep": 12}
_DEFAULT_SHARE = 24
_LEAST_KIB, _MOST_KIB = 1 << 9, 1 << 16
_PROC = Path("/proc")


@dataclass(frozen=True)
class ChosenEvents:
    """Events to record, the older names among them, and what this kernel lacks."""

    events: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]  # newest name, name here
    missing: tuple[str, ...]


def available_events(tracefs: Path) -> frozenset[str]:
    """Every 'system:name' of this kernel that can be enabled."""
    text = (tracefs / "available_events").read_text(encoding="utf-8")
    return frozenset(text.split())


def choose_profile(name: str, profiles: Sequence[Profile]) -> Profile:
    for profile in profiles:
        if profile.name == name:
            return profile
    names = ", ".join([*(profile.name for profile in profiles), "custom"])
    raise UsageError(
        "unknown-profile",
        Phrase(Argument("profile", name)),
        "is no profile",
        have=names,
        fix=Phrase(Argument("profile", "writeback")),
    )


def choose_events(profile: Profile, available: frozenset[str]) -> ChosenEvents:
    """Of each group of names the first that is there.

    Raises: EvidenceError when none of all is.
    """
    events, renamed, missing = [], [], []
    for group in profile.events:
        name = next((name for name in group if name in available), None)
        if name is None:
            missing.append(group[0])
            continue
        events.append(name)
        if name != group[0]:
            renamed.append((group[0], name))
    if not events:
        raise EvidenceError(
            "no-events",
            Phrase(Argument("profile", profile.name)),
            f"this kernel has none of its {len(profile.events)} events",
            fix="wbscope doctor",
        )
    return ChosenEvents(tuple(events), tuple(renamed), tuple(missing))


def matching_events(patterns: Iterable[str], available: frozenset[str]) -> tuple[str, ...]:
    """Events by 'system:name', 'system', else 'name', or a pattern of these, in order of name."""
    found: set[str] = set()
    for pattern in patterns:
        tried = (pattern,) if ":" in pattern else (f"{pattern}:*", f"*:{pattern}")
        each = ({event for event in available if fnmatchcase(event, one)} for one in tried)
        matched = next(filter(None, each), set())
        if not matched:
            raise EvidenceError(
                "no-such-event",
                Phrase(Argument("event", pattern)),
                f"matches none of the {len(available)} events of this kernel",
                have=", ".join(near := _near(pattern, available)) or None,
                fix=Phrase(Argument("event", near[0])) if near else "wbscope doctor --events",
            )
        found |= matched
    return tuple(sorted(found))


def _near(pattern: str, available: Iterable[str]) -> list[str]:
    """Events like it, or systems where no event is named."""
    events = sorted(available)
    if ":" in pattern.strip(":*"):
        return nearest(pattern, events)
    shorts = {system: system for system in (event.partition(":")[0] for event in events)}
    for event in events:
        shorts.setdefault(event.partition(":")[2], event)
    return [shorts[short] for short in nearest(pattern.partition(":")[0], shorts)]


def choose_clock(wanted: str | None, tracefs: Path) -> str:
    """boot goes on in suspend, mono is older: both are what user space can read too.

    Raises: UsageError for another one, SetupError when the kernel has neither.
    """
    clocks = re.findall(r"[\w-]+", (tracefs / "trace_clock").read_text(encoding="utf-8"))
    if wanted is not None and wanted not in CLOCKS:
        raise UsageError(
            "unknown-clock", Phrase(Argument("clock", wanted)), "is not offered",
            have=", ".join(CLOCKS), fix=Phrase(Argument("clock", "boot")),
        )  # fmt: skip
    for clock in CLOCKS if wanted is None else (wanted,):
        if clock in clocks:
            return clock
    raise SetupError(
        "no-clock",
        str(tracefs / "trace_clock"),
        f"has no clock {wanted or 'boot or mono'}",
        have=" ".join(clocks),
        fix=Phrase(Argument("clock", "mono")) if "mono" in clocks else "a kernel of 3.17 or later",
    )


def memory_kib(name: str = "MemAvailable") -> int:
    """A value of /proc/meminfo; 0 when it is not there (MemAvailable: before 3.14)."""
    for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0])
    return memory_kib("MemFree") if name == "MemAvailable" else 0


def buffer_kib(profile: str, cpus: int, available_kib: int) -> int:
    """Ring buffer of each CPU, KiB: a share of the available memory, within bounds."""
    each = available_kib // _SHARE.get(profile, _DEFAULT_SHARE) // max(cpus, 1)
    return max(_LEAST_KIB, min(_MOST_KIB, each))


def trace_cmd_problem(proc: Path = _PROC) -> str | None:
    """Why trace-cmd cannot record here; None when it can."""
    program = shutil.which("trace-cmd")
    if program is None:
        return "trace-cmd is not installed"
    if not (proc / "kallsyms").exists():
        # trace-cmd 3.1 writes a broken file without it.
        return "the kernel has no /proc/kallsyms"
    try:
        enabled = proc / "sys/kernel/ftrace_enabled"
        value = enabled.read_bytes()
        with enabled.open("wb", buffering=0) as file:
            file.write(value)
    except FileNotFoundError:
        pass  # without the function tracer trace-cmd does not touch it
    except OSError as error:
        return f"kernel.ftrace_enabled cannot be written: {os.strerror(error.errno or 0)}"
    command = [program, "record", "-h"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        return f"{program} cannot be run: {error.strerror}"
    if "-B" not in done.stdout + done.stderr:
        return "trace-cmd has no instances (option -B)"
    return None
