# SPDX-License-Identifier: Apache-2.0
"""What a guest boots in: the emulator and its initrd."""

from __future__ import annotations

import gzip
import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wbscope.base.errors import SetupError
from wbscope.base.system import dying_with_us
from wbscope.lab.kernels import Disk, Image, call, find, last_line, output_of, unpacked

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


_FOLDERS = ("proc", "sys", "dev", "tmp", "run", "etc", "mods", "bin", "sbin", "usr/bin", "usr/sbin",
            "lib", "lib64", "lab")  # fmt: skip
# Folders of packages that newer ones have below /usr only.
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64")
# Runs /lab/main when all disks are there, then powers off.  What it says goes to the console.
_INIT = """\
#!/bin/busybox sh
/bin/busybox mkdir -p /bb
/bin/busybox --install -s /bb
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/bb HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp; mount -t tmpfs run /run
mount -t tracefs nodev /sys/kernel/tracing; mount -t debugfs nodev /sys/kernel/debug
ln -s /proc/self/fd /dev/fd
while read -r module; do
  insmod "/mods/$module.ko" || echo "wbscope: no module $module"
done < /mods/order
ip link set lo up
tries=0
until [ -b /dev/@last@ ] || [ $tries = 50 ]; do sleep 0.2; tries=$((tries + 1)); done
exec sh /lab/main
"""


def make_initrd(
    output: Path,
    image: Image,
    *,
    modules: Iterable[str],
    programs: Iterable[str],
    files: Mapping[str, bytes],
    last_disk: str,
    start: Path | None = None,
) -> None:
    """`files` lie in /lab of the guest; `main` among them is run.

    `start` has unpacked packages of the guest's architecture, a static busybox among them; that of
    this machine is taken when there is none.

    Raises: SetupError where busybox, cpio, or one of the programs is missing.
    """
    root = output.with_suffix(".root")
    root.mkdir()
    if start is not None:
        _begin(root, start)
    for name in _FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    if start is None:
        shutil.copy(static_busybox(), root / "bin/busybox")
    if not os.path.lexists(root / "bin/sh"):
        (root / "bin/sh").symlink_to("busybox")
    for name in programs:
        _copy(root, Path(find(name, name)), Path("usr/bin") / Path(name).name)
    order = []
    for path in image.module_files(modules):
        name = path.name.partition(".ko")[0]
        (root / "mods" / f"{name}.ko").write_bytes(unpacked(path))
        order.append(f"{name}\n")
    (root / "mods/order").write_text("".join(order))
    for name, content in files.items():
        (root / "lab" / name).write_bytes(content)
        (root / "lab" / name).chmod(0o755)
    (root / "init").write_text(_INIT.replace("@last@", last_disk))
    (root / "init").chmod(0o755)
    listed = "\0".join(
        os.path.relpath(os.path.join(folder, name), root)
        for folder, folders, names in os.walk(root)
        for name in (*sorted(folders), *sorted(names))
    )
    packing = ["cpio", "-o", "-H", "newc", "--quiet", "-0", "-R", "0:0"]
    archive = output_of(packing, "cpio", given=os.fsencode(listed), folder=root)
    with gzip.open(output, "wb", compresslevel=1) as packed:
        packed.write(archive)
    shutil.rmtree(root)


def _begin(root: Path, start: Path) -> None:
    """Packages of older suites have /lib, those of newer ones /usr/lib: one place for both."""
    unused = shutil.ignore_patterns("share", "cache")
    shutil.copytree(start, root, symlinks=True, dirs_exist_ok=True, ignore=unused)
    for name in _MERGED:
        place, merged = root / name, root / "usr" / name
        merged.mkdir(parents=True, exist_ok=True)
        if place.is_dir() and not place.is_symlink():
            shutil.copytree(place, merged, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(place)
        if not place.is_symlink():
            place.symlink_to(f"usr/{name}")
    for name in ("var/run", "var/lib/trace-cmd"):
        (root / name).mkdir(parents=True, exist_ok=True)


def static_busybox() -> Path:
    """Raises: SetupError where there is none, or one that needs libraries."""
    busybox = Path(find("busybox", "busybox-static"))
    if _libraries(busybox):
        raise SetupError(
            "missing-program", "busybox", "needs libraries, wanted the static one",
            fix="apt install busybox-static",
        )  # fmt: skip
    return busybox


def _copy(root: Path, program: Path, target: Path) -> None:
    shutil.copy(program.resolve(), root / target)
    (root / target).chmod(0o755)
    for library in _libraries(program):
        place = root / library.relative_to("/")
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library.resolve(), place)


def _libraries(program: Path) -> list[Path]:
    """None for a static program."""
    told = call(["ldd", str(program)], "libc-bin").stdout.decode(errors="replace")
    return [Path(word) for word in told.split() if word.startswith("/")]
