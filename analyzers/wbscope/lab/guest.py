# SPDX-License-Identifier: Apache-2.0
"""A guest for a run: its scenario, started and read.

The guest has no network and no files of this machine but what is copied into its first file
system. It writes two archives to raw disks: the recording, and what lies beside it.

A scenario is a shell text in a guest, without a recording of ours: what tests and tools boot that
record by themselves.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.errors import InputError, SetupError
from wbscope.lab.emulator import (
    Machine,
    drive,
    emulate,
    emulator,
    machine_of,
    make_initrd,
    sparse,
    static_busybox,
)
from wbscope.lab.kernels import Disk, Image, Setup, call, find, last_line
from wbscope.record.remote import extract_files

_WORKLOAD = Path(__file__).with_name("workload.sh")
# Archives; sparse, so that only what is written takes room.
_RECORDING_BYTES, _BESIDE_BYTES = 2 << 30, 512 << 20
_MODULES = ("virtio_pci", "virtio_blk")
_MAKERS = {
    "ext4": ("mkfs.ext4", "-qF", "e2fsprogs"),
    "xfs": ("mkfs.xfs", "-qf", "xfsprogs"),
    "btrfs": ("mkfs.btrfs", "-qf", "btrfs-progs"),
}
_MAIN = """\
export DATA=/data OUT=/out LAB=/lab CGROUPS=/sys/fs/cgroup
mkdir -p /out /sys/fs/cgroup
end() { # STAGE WHY
  echo "$1 $2" > /stage
  tar -cf /dev/vdb -C / stage said out
  sync
  poweroff -f
}
attempt() { # STAGE CMD...: a command that has to succeed
  stage=$1
  shift
  "$@" >> /said 2>&1 || end "$stage" "ended with $?: $*"
}
write() { printf '%s\\n' "$2" > "$1"; }
device() { read -r number < "/sys/class/block/$1/dev"; echo "$number"; }
: > /said
attempt cgroup mount -t cgroup2 none /sys/fs/cgroup
@steps@
sync
echo 3 > /proc/sys/vm/drop_caches
sh /lab/record > /dev/vda 2>> /said || end record "the script of record ended with $?"
end done ''
"""


@dataclass(frozen=True)
class Booted:
    """What a guest left.

    stage      how far it came: "done", or the step that failed; None = it never told
    why        of the step
    recording  the archive of the script of record
    said       what prepare, record and the workload printed
    console    what the kernel printed
    """

    stage: str | None
    why: str
    recording: Path
    said: str
    console: str


def require(setup: Setup, image: Image) -> None:
    """What boot() would miss, said before the first run.

    Raises: SetupError for a program of this machine, InputError for a module of the kernel.
    """
    emulator(machine_of())
    static_busybox()
    find("cpio", "cpio")
    for name in setup.programs:
        find(name, name)
    for kind in _kinds(setup):
        program, _, package = _MAKERS[kind]
        find(program, package)
    for name in (*_MODULES, *_kinds(setup), *setup.modules):
        if not image.has_module(name):
            raise InputError(
                "no-module", str(setup.kernel), f"has no module {name}, built in neither",
                fix="kernel.package = \"linux-image-amd64\"    # in the matrix; cloud has fewer",
            )  # fmt: skip


def boot(
    setup: Setup, image: Image, script: str, work: Path, beside: Path, limit_s: float
) -> Booted:
    """Run it once; `work` takes large files, `beside` what the guest put into $OUT.

    Raises: SetupError where a program is missing, or a disk cannot be made here; OSError for a
    full disk.
    """
    names = [f"vd{chr(ord('c') + number)}" for number in range(len(setup.disks))]
    swap = f"vd{chr(ord('c') + len(names))}" if setup.swap_kib else None
    recording, archive = work / "recording", work / "beside"
    for path, size in ((recording, _RECORDING_BYTES), (archive, _BESIDE_BYTES)):
        sparse(path, size)
    drives = [drive(recording), drive(archive)]
    for disk, name in zip(setup.disks, names, strict=True):
        path = work / name
        sparse(path, disk.size_kib << 10)
        _format(disk, path)
        drives.append(drive(path, disk))
    if swap is not None:
        sparse(work / swap, setup.swap_kib << 10)
        drives.append(drive(work / swap))
    files = {Path(name).name: Path(name).read_bytes() for name in setup.files}
    files |= {
        "main": _MAIN.replace("@steps@", "\n".join(_steps(setup, names, swap))).encode(),
        "record": os.fsencode(script),
        "prepare": _shell(setup.prepare),
        "workload": _shell(setup.workload),
    }
    initrd = work / "initrd"
    make_initrd(
        initrd,
        image,
        modules=(*_MODULES, *_kinds(setup), *setup.modules),
        programs=setup.programs,
        files=files,
        last_disk=swap or (names[-1] if names else "vdb"),
    )
    console = work / "console"
    ended = emulate(
        machine_of(), image.vmlinuz, initrd, drives, memory_kib=setup.memory_kib, cpus=setup.cpus,
        append=setup.append, console=console, limit_s=limit_s,
    )  # fmt: skip
    said = _unpack(archive, work / "left", beside)
    told = console.read_text(errors="replace")
    stage, _, why = said[0].partition(" ")
    if not stage:
        why = ended or _last_words(told)
    return Booted(stage or None, why.strip(), recording, said[1], told)


def _last_words(console: str) -> str:
    """Why the kernel stopped; behind that line come registers and addresses."""
    if "Initramfs unpacking failed" in console:
        return "its memory is too small for the programs and files of the matrix; give it more"
    panics = [line for line in console.splitlines() if "Kernel panic" in line]
    line = panics[0].strip() if panics else last_line(console)
    return f"the guest stopped; its last line: {line}"


def _kinds(setup: Setup) -> list[str]:
    """File systems of its disks."""
    return sorted({disk.filesystem for disk in setup.disks} - {"none"})


def _steps(setup: Setup, names: Sequence[str], swap: str | None) -> Iterable[str]:
    """Shell lines; a failure names its step."""
    quote = shlex.quote
    for disk, name in zip(setup.disks, names, strict=True):
        if not disk.at:
            continue
        options = quote(disk.options or "defaults")
        yield f"mkdir -p /{disk.at}"
        yield f"attempt mount mount -t {disk.filesystem} -o {options} /dev/{name} /{disk.at}"
    if setup.disks and setup.disks[0].at:
        yield f"export DATA=/{setup.disks[0].at}"
    if swap is not None:
        yield f"attempt swap mkswap /dev/{swap}"
        yield f"attempt swap swapon /dev/{swap}"
    for key, value in setup.sysctls.items():
        yield f"attempt sysctl write /proc/sys/{key.replace('.', '/')} {quote(value)}"
    used = {file.partition(".")[0] for limits in setup.cgroups.values() for file in limits}
    controllers = sorted((used | {"memory", "io"}) - {"cgroup"}) if setup.cgroups else ()
    for controller in controllers:
        yield f"attempt cgroup write /sys/fs/cgroup/cgroup.subtree_control +{controller}"
    places = {disk.at: name for disk, name in zip(setup.disks, names, strict=True)}
    for group, limits in setup.cgroups.items():
        yield f"mkdir /sys/fs/cgroup/{group}"
        for file, value in limits.items():
            word, _, rest = value.partition(" ")
            text = f'"$(device {places[word]}) "{quote(rest)}' if word in places else quote(value)
            yield f"attempt cgroup write /sys/fs/cgroup/{group}/{file} {text}"
    yield "attempt prepare sh /lab/prepare"


def _shell(text: str) -> bytes:
    return os.fsencode(f"{_WORKLOAD.read_text(encoding='utf-8')}{text}\n")


def _format(disk: Disk, path: Path) -> None:
    """Here, where it is fast."""
    if disk.filesystem == "none":
        return
    program, flags, package = _MAKERS[disk.filesystem]
    done = call([program, flags, *disk.mkfs, str(path)], package)
    if done.returncode:
        raise SetupError(
            "cannot-format",
            f"disk {disk.at}",
            f"{program}: {last_line(done.stderr or done.stdout)}",
            fix="see mkfs and size of this disk in the matrix",
        )


def _unpack(archive: Path, left: Path, beside: Path) -> tuple[str, str]:
    """Files of $OUT go beside the trace; returns the stage, and what was said."""
    left.mkdir()
    with contextlib.suppress(InputError), archive.open("rb") as file:
        extract_files(file, left)
    texts = []
    for name in ("stage", "said"):
        path = left / name
        texts.append(path.read_text(errors="replace") if path.is_file() else "")
    if (left / "out").is_dir():
        for path in (left / "out").iterdir():
            shutil.move(path, beside / path.name)
    return texts[0].strip(), texts[1]


_OUT_BYTES = 512 << 20
_SCENARIO_MODULES = ("virtio_pci", "virtio_ccw", "virtio_mmio", "virtio_blk")
_SCENARIO_MAIN = """\
ln -s /lab /files
ln -s /bin/busybox /busybox
mkdir -p /out
mount -t tmpfs -o size=400m out /out
uname -a > /out/uname
cd /out
sh /lab/scenario > /out/log 2>&1
echo "scenario rc=$?" >> /out/log
tail -n 5 /out/log
cd /
tar -cf /dev/vda out
sync
poweroff -f
"""


def run_scenario(
    image: Image,
    text: str,
    out: Path,
    *,
    start: Path | None = None,
    machine: Machine | None = None,
    drives: Sequence[str] = (),
    modules: Iterable[str] = (),
    files: Mapping[str, bytes] | None = None,
    memory_kib: int = 768 << 10,
    cpus: int | str = 2,
    cpu: str | None = None,
    append: str = "",
    limit_s: float = 280.0,
) -> str | None:
    """What the text leaves in the guest's /out is in `out` afterwards, with `log` and `console`.

    `drives` are /dev/vdb and so on; `files` lie in the guest's /files; `start` is as make_initrd
    has it; `cpus` may be all that QEMU's -smp takes. Returns what went wrong with QEMU; a guest
    that did not come to its end left no `log`.

    Raises: SetupError where a program is missing.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="wbscope-guest.") as private:
        work = Path(private)
        sparse(work / "out", _OUT_BYTES)
        last = f"vd{chr(ord('a') + len(drives))}"
        make_initrd(
            work / "initrd",
            image,
            modules=(*_SCENARIO_MODULES, *modules),
            programs=(),
            files={**(files or {}), "main": _SCENARIO_MAIN.encode(), "scenario": text.encode()},
            last_disk=last,
            start=start,
        )
        why = emulate(
            machine or machine_of(), image.vmlinuz, work / "initrd",
            [drive(work / "out"), *drives], memory_kib=memory_kib, cpus=cpus, cpu=cpu,
            append=append, console=out / "console", limit_s=limit_s,
        )  # fmt: skip
        left = work / "left"
        left.mkdir()
        with contextlib.suppress(InputError), (work / "out").open("rb") as archive:
            extract_files(archive, left)
        if (left / "out").is_dir():
            shutil.copytree(left / "out", out, dirs_exist_ok=True)
    return why
