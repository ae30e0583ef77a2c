# SPDX-License-Identifier: Apache-2.0
"""Can this user trace here, and which events of each profile does this kernel have?"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.errors import SetupError
from wbscope.base.units import format_value
from wbscope.doctor.checks import Check, Status
from wbscope.library.catalog import Profile
from wbscope.record import choose
from wbscope.record.choose import INSTANCE_PREFIX, Instance
from wbscope.record.finish import left_behind

_LOCKDOWN = Path("/sys/kernel/security/lockdown")
_MOUNT = "mount -t tracefs nodev /sys/kernel/tracing"
_FEW_KIB = 1 << 10


def tracing_checks(tracefs: Path | None, reason: str | None = None) -> Iterator[Check]:
    """In the order in which things are needed; the reason is why there is no tracefs."""
    root = os.geteuid() == 0
    yield Check("user", Status.ok, "root" if root else f"uid {os.geteuid()}, not root")
    yield from _lockdown()
    if tracefs is None:
        supported = "tracefs" in Path("/proc/filesystems").read_text(encoding="utf-8")
        found = "not mounted" if supported else "not in this kernel (CONFIG_TRACING)"
        fix = f"{'' if root else 'sudo '}{_MOUNT}" if supported else "a kernel with CONFIG_TRACING"
        yield Check("tracefs", Status.fails, _and(found, reason), fix)
    else:
        writable = os.access(tracefs / "instances", os.W_OK | os.X_OK)
        yield Check(
            "tracefs",
            Status.ok if writable else Status.fails,
            f"{tracefs}, {'writable' if writable else 'not writable'}",
            None if writable else "run as root: sudo wbscope ...",
        )
        if writable:
            yield from _instance_checks(tracefs)
        yield from _others(tracefs)
    yield from _trace_cmd()


def _and(found: str, reason: str | None) -> str:
    told = found if reason is None else f"{found} ({reason})"
    return f"{told}: events, buffers and clocks were not checked"


def _lockdown() -> Iterator[Check]:
    try:
        text = _LOCKDOWN.read_text(encoding="utf-8")
    except OSError:
        return
    if "[confidentiality]" in text:
        fix = "boot with lockdown=integrity"
        yield Check("lockdown", Status.fails, "confidentiality: the kernel refuses tracing", fix)


def _instance_checks(tracefs: Path) -> Iterator[Check]:
    """Made, tried and removed: what is refused is seen now and not in the run."""
    instance = Instance(tracefs, f"{INSTANCE_PREFIX}{os.getpid()}-doctor")
    try:
        instance.make()
        clock = choose.choose_clock(None, tracefs)
        instance.write("trace_clock", clock)
        yield Check("trace instance", Status.ok, "can be made and removed")
        yield Check("clock", Status.ok, f"{clock}{_other_clocks(tracefs, clock)}")
        yield _buffers(instance)
        _, path = next(iter(instance.cpus()))
        os.close(os.open(path / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK))
    except SetupError as error:
        yield Check("trace instance", Status.fails, str(error), error.fix)
    except OSError as error:
        yield Check("trace instance", Status.fails, f"{error.filename}: {error.strerror}")
    finally:
        instance.remove()


def _other_clocks(tracefs: Path, chosen: str) -> str:
    clocks = re.findall(r"[\w-]+", (tracefs / "trace_clock").read_text(encoding="utf-8"))
    others = [clock for clock in choose.CLOCKS if clock in clocks and clock != chosen]
    return f" (also {', '.join(others)})" if others else ""


def _buffers(instance: Instance) -> Check:
    """As record would have them for its smallest profile."""
    cpus = os.cpu_count() or 1
    available = choose.memory_kib()
    each = choose.buffer_kib("writeback", cpus, available)
    text = (
        f"{_size(each)} for each of {cpus} CPUs, of {_size(available)} available memory"
        f" (deep: {_size(choose.buffer_kib('deep', cpus, available))})"
    )
    try:
        instance.write("buffer_size_kb", str(each))
    except SetupError as error:
        fix = "wbscope record --buffer-size 1M -o RUN -- CMD"
        return Check("buffer memory", Status.fails, str(error), fix)
    few = each < _FEW_KIB
    return Check(
        "buffer memory",
        Status.missing if few else Status.ok,
        text,
        "free memory, or record few events: wbscope record --profile writeback" if few else None,
    )


def _others(tracefs: Path) -> Iterator[Check]:
    """Who else traces, and what was left of us."""
    try:
        tracer = (tracefs / "current_tracer").read_text(encoding="utf-8").strip()
        events = (tracefs / "set_event").read_text(encoding="utf-8").split()
    except OSError as error:
        yield Check(
            "other tracing", Status.missing, f"not known: {error.strerror}", "sudo wbscope doctor"
        )
        return
    if tracer != "nop" or events:
        found = f"tracer {tracer}, {len(events)} events enabled: they cost time in every run"
        fix = f"echo nop > {tracefs}/current_tracer; echo > {tracefs}/set_event"
        yield Check("other tracing", Status.missing, found, fix)
    left = left_behind(tracefs)
    if left:
        found = f"{len(left)} recordings whose recorder was killed"
        yield Check("left behind", Status.missing, found, "wbscope record --recover")


def _trace_cmd() -> Iterator[Check]:
    program = shutil.which("trace-cmd")
    problem = choose.trace_cmd_problem()
    version = "not installed" if program is None else _version(program)
    if problem is None:
        yield Check("trace-cmd", Status.ok, version)
        return
    # It is not needed to record, only to read and convert elsewhere.
    fix = "apt install trace-cmd    # not needed: record uses tracefs then"
    if program is not None:
        version, fix = f"{version}, cannot record: {problem}", "not needed: record uses tracefs"
    yield Check("trace-cmd", Status.missing, version, fix)


def _version(program: str) -> str:
    command = [program, "--version"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError:
        return "of unknown version"
    found = re.search(r"version (\S+)", done.stdout + done.stderr)
    return f"version {found[1]}" if found else "of unknown version"


def _size(kib: int) -> str:
    return format_value("size_bytes", "bytes", kib << 10)


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
