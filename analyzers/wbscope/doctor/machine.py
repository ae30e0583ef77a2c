# SPDX-License-Identifier: Apache-2.0
"""What else of the machine matters for a recording: HZ, BTF, PSI, cgroups, sidecars."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from wbscope.doctor.cgroups import cgroup_check_here
from wbscope.doctor.check import Check, Status
from wbscope.record.machine_facts import kernel_hz

__all__ = ["machine_checks"]

_BTF = Path("/sys/kernel/btf/vmlinux")
_BDI = Path("/sys/kernel/debug/bdi")
_PSI = Path("/proc/pressure/io")
_MS_PER_S = 1000


def kernel_check() -> Check:
    return Check("kernel", Status.ok, f"{platform.release()}, {platform.machine()}")


def machine_checks() -> Iterator[Check]:
    """None of these stops a recording."""
    yield _hz()
    yield _exists(_BTF, "BTF", "for BPF programs", "a kernel with CONFIG_DEBUG_INFO_BTF")
    yield _exists(_BDI, "bdi statistics", "debugfs", "mount -t debugfs nodev /sys/kernel/debug")
    yield _exists(_PSI, "pressure (PSI)", "", "boot with psi=1, a kernel with CONFIG_PSI")
    yield cgroup_check_here()
    readable = os.access("/proc/kallsyms", os.R_OK)
    yield Check(
        "kallsyms",
        Status.ok if readable else Status.missing,
        "readable" if readable else "not there: no names of functions",
        None if readable else "a kernel with CONFIG_KALLSYMS",
    )


def _hz() -> Check:
    hz = kernel_hz()
    if hz is None:
        fix = f"copy the kernel's configuration to /boot/config-{platform.release()}"
        return Check("HZ", Status.missing, "not known before a run: it is told from pauses", fix)
    step = f"{_MS_PER_S / hz:g}"
    return Check("HZ", Status.ok, f"{hz}: pauses are multiples of {step} ms")


def _exists(path: Path, name: str, use: str, fix: str) -> Check:
    try:
        path.stat()
    except PermissionError:
        return Check(
            name, Status.missing, f"not known: {path} cannot be seen", "sudo wbscope doctor"
        )
    except OSError:
        pass
    else:
        return Check(name, Status.ok, str(path))
    return Check(name, Status.missing, f"no {path}{f' ({use})' if use else ''}", fix)
