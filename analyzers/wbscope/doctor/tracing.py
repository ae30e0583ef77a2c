# SPDX-License-Identifier: Apache-2.0
"""Can this user trace here: tracefs, instances, clocks, buffers, trace-cmd."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from wbscope.base.errors import SetupError
from wbscope.base.units import format_value
from wbscope.doctor.check import Check, Status
from wbscope.record import choose
from wbscope.record.finish import left_behind
from wbscope.record.tracefs import INSTANCE_PREFIX, Instance

__all__ = ["tracing_checks"]

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
