# SPDX-License-Identifier: Apache-2.0
"""QEMU: one machine of some architecture, from its kernel to its end."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wbscope.base.children import dying_with_us
from wbscope.base.errors import SetupError
from wbscope.lab.programs import find, last_line
from wbscope.lab.setup import Disk

__all__ = ["Machine", "drive", "emulate", "emulator", "machine_of", "sparse"]

# To boot a kernel under KVM and see its panic.
_TRY_SECONDS = 20.0


@dataclass(frozen=True)
class Machine:
    """How QEMU plays one architecture; `cpu` where that is emulated."""

    name: str
    program: str
    package: str
    kind: str
    terminal: str
    cpu: str = "max"


_MACHINES = {
    one.name: one
    for one in (
        # QEMU hands wrong flags to an interrupt after cmpxchg16b, and the kernel panics.
        Machine("x86_64", "qemu-system-x86_64", "qemu-system-x86", "q35", "ttyS0", "max,-cx16"),
        Machine("i386", "qemu-system-i386", "qemu-system-x86", "q35", "ttyS0"),
        Machine("aarch64", "qemu-system-aarch64", "qemu-system-arm", "virt", "ttyAMA0"),
        Machine("armhf", "qemu-system-arm", "qemu-system-arm", "virt", "ttyAMA0"),
        Machine("ppc64le", "qemu-system-ppc64", "qemu-system-ppc", "pseries", "hvc0", "power9"),
        Machine("s390x", "qemu-system-s390x", "qemu-system-misc", "s390-ccw-virtio", "ttysclp0"),
    )
}


def machine_of(name: str | None = None) -> Machine:
    """That of this machine when there is no name.

    Raises: SetupError for one that is not known.
    """
    known = _MACHINES.get(name or platform.machine())
    if known is None:
        raise SetupError(
            "no-machine", name or platform.machine(), "is no architecture that guests can have",
            have=" ".join(_MACHINES), fix="boot the guests on one of these",
        )  # fmt: skip
    return known


def emulator(machine: Machine) -> str:
    """Raises: SetupError where QEMU is missing."""
    return find(machine.program, machine.package)


def sparse(path: Path, size: int) -> None:
    """A disk of so many bytes that takes no room yet."""
    with path.open("wb") as file:
        file.truncate(size)


def drive(path: Path, disk: Disk | None = None, *, read_only: bool = False) -> str:
    """The words behind -drive; a file's limits are those of the disk."""
    limits = ""
    if disk is not None:
        given = {
            "bps-write": disk.bytes_per_s,
            "iops-write": disk.iops,
            "bps-read": disk.read_bytes_per_s,
            "iops-read": disk.read_iops,
        }
        limits = "".join(f",throttling.{key}={value}" for key, value in given.items() if value)
    if read_only:
        limits += ",readonly=on"
    # A comma would begin another option.
    # On a full disk QEMU would stop the guest, for somebody to go on with it.
    options = "if=virtio,format=raw,cache=unsafe,werror=report"
    return f"file={str(path).replace(',', ',,')},{options}{limits}"


def emulate(
    machine: Machine,
    vmlinuz: Path,
    initrd: Path,
    drives: Sequence[str],
    *,
    memory_kib: int,
    cpus: int | str,
    append: str,
    console: Path,
    limit_s: float,
    cpu: str | None = None,
) -> str | None:
    """Boot and wait for the end; what went wrong with QEMU itself.

    `cpus` is what -smp takes, `cpu` is QEMU's word for another one, which is emulated then.

    Raises: SetupError where QEMU is missing.
    """
    program = emulator(machine)
    is_ours = machine.name == platform.machine() and cpu is None
    fast = is_ours and _has_kvm(program, machine.kind, vmlinuz)
    command = [
        program, "-M", machine.kind, "-cpu", "host" if fast else cpu or machine.cpu,
        "-accel", "kvm" if fast else "tcg,thread=multi", "-m", f"{memory_kib}K",
        "-smp", str(cpus), "-kernel", str(vmlinuz), "-initrd", str(initrd),
        "-append",
        f"console={machine.terminal} panic=-1 rdinit=/init quiet no_timer_check {append}",
        "-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio",
        *(word for one in drives for word in ("-drive", one)),
    ]  # fmt: skip
    with console.open("wb") as out:
        qemu = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            preexec_fn=dying_with_us(signal.SIGKILL),
        )  # fmt: skip
    try:
        code = qemu.wait(limit_s)
    except subprocess.TimeoutExpired:
        return f"it took longer than {limit_s:g} s, and was ended"
    finally:
        qemu.kill()
        qemu.wait()
    if code == 0:
        return None
    return f"QEMU ended with {code}: {last_line(console.read_text(errors='replace'))}"


@cache
def _has_kvm(program: str, kind: str, vmlinuz: Path, seconds: float = _TRY_SECONDS) -> bool:
    """Whether it works here, which /dev/kvm alone does not tell: on some machines QEMU aborts, on
    others the firmware runs and the kernel stands still.  So this kernel has to get to its end,
    the panic of one without a root file system.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    command = [program, "-M", kind, "-accel", "kvm", "-cpu", "host", "-m", "256M",
               "-kernel", str(vmlinuz), "-append", "panic=-1 quiet",
               "-nodefaults", "-display", "none", "-no-reboot"]  # fmt: skip
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds,
            check=False, preexec_fn=dying_with_us(signal.SIGKILL),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
