# SPDX-License-Identifier: Apache-2.0
"""Which events of each profile this kernel has, renamed or not."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wbscope.doctor.check import Check, Status
from wbscope.library.profiles import Profile

__all__ = ["PATCHED", "EventState", "event_checks", "event_states"]

# What kernel-tracepoints/series adds.
PATCHED = (
    "vmscan:mm_vmscan_reclaim_writeback",
    "writeback:balance_dirty_pages_done",
    "writeback:wb_domain_dirty_state",
)
# The kernels that kernel-tracepoints/series has patches for.
_SERIES = ("6.1", "6.12", "7.2")
_SYSTEM_FIXES = {
    "syscalls": "a kernel with CONFIG_FTRACE_SYSCALLS; slept and written bytes are missing",
    "block": "a kernel with CONFIG_BLOCK",
    "ext4": "modprobe ext4, if the run uses it",
    "jbd2": "modprobe jbd2, if the run uses it",
    "xfs": "modprobe xfs, if the run uses it",
    "nfs": "modprobe nfs, if the run uses it",
    "sunrpc": "modprobe sunrpc, if the run uses it",
    "fuse": "6.12 or later, if the run uses FUSE",
}
_OTHER_FIX = "a kernel that has this subsystem built in, or its module loaded"
# Systems of events, and the file systems that have them.
_OF_FILE_SYSTEMS = {
    "ext4": ("ext4",),
    "jbd2": ("ext4",),
    "xfs": ("xfs",),
    "nfs": ("nfs", "nfs4"),
    "sunrpc": ("nfs", "nfs4"),
    "fuse": ("fuse", "fuseblk"),
}
_NAMED = 4


@dataclass(frozen=True)
class EventState:
    """One event of a profile by its newest name."""

    profile: str
    event: str
    name_here: str | None  # None: missing


def event_states(profiles: Sequence[Profile], available: frozenset[str]) -> list[EventState]:
    """Each event once, with the smallest profile that has it."""
    states: dict[str, EventState] = {}
    for profile in profiles:
        for group in profile.events:
            here = next((name for name in group if name in available), None)
            states.setdefault(group[0], EventState(profile.name, group[0], here))
    return list(states.values())


def event_checks(
    profiles: Sequence[Profile],
    available: frozenset[str],
    release: str = platform.release(),
    *,
    can_probe: bool | None = None,
) -> Iterator[Check]:
    """A line for each profile, for what is missing in it, and for the patched kernel.

    `can_probe` says whether probes can be made here, which measure waits, too; None: not known.
    """
    states = [state for state in event_states(profiles, available) if state.event not in PATCHED]
    for profile in profiles:
        own = [state for state in states if state.profile == profile.name]
        here = [state for state in own if state.name_here]
        renamed = [state.name_here or "" for state in here if state.name_here != state.event]
        found = f"{len(here)} of {len(own)} events"
        if renamed:
            found += f", under an older name: {_some(renamed)}"
        first = profile is profiles[0]
        status = Status.ok if here else Status.fails if first else Status.missing
        fix = None if here else "a kernel with CONFIG_TRACEPOINTS and these subsystems"
        yield Check(f"profile {profile.name}", status, found, fix)
    yield from _missing(states)
    patched = [event for event in PATCHED if event in available]
    if patched:
        yield Check("patched kernel", Status.ok, _some([e.partition(":")[2] for e in patched]))
    else:
        yield Check(
            "patched kernel",
            Status.ok,
            "no: waits and zones are worked out from the stock events",
            _patches_for(release, can_probe),
        )


def _patches_for(release: str, can_probe: bool | None) -> str:
    numbers = re.match(r"\d+\.\d+", release)
    series = numbers[0] if numbers else release
    if series in _SERIES:
        return f"kernel-tracepoints/README.md has the patches for {series}"
    if can_probe:
        return f"no patches for {series}: wbscope record --probe auto measures waits"
    if can_probe is None:
        return f"no patches for {series}; whether probes measure waits: sudo wbscope doctor"
    return f"no patches for {series} (only for {', '.join(_SERIES)}), and no probes here"


def _missing(states: list[EventState]) -> Iterator[Check]:
    systems: dict[str, list[str]] = {}
    for state in states:
        if state.name_here is None:
            system, _, name = state.event.partition(":")
            systems.setdefault(system, []).append(name)
    for system, names in systems.items():
        whole = not any(state.name_here for state in states if state.event.startswith(f"{system}:"))
        if whole and system in _OF_FILE_SYSTEMS and not _in_use(system):
            continue
        fix = (
            _SYSTEM_FIXES.get(system, _OTHER_FIX)
            if whole
            else "this kernel has no such event: none needed"
        )
        yield Check(f"events {system}", Status.missing, f"not there: {_some(names)}", fix)


def _in_use(system: str) -> bool:
    mounted = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    # A kind of FUSE has its own name: fuse.sshfs.
    kinds = {line.split(" ")[2].partition(".")[0] for line in mounted}
    return not kinds.isdisjoint(_OF_FILE_SYSTEMS[system])


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
