# SPDX-License-Identifier: Apache-2.0
"""A QEMU guest with a stock kernel and wbscope in it: a disk with Python and the programs.

The kernel and busybox come from tools/record-samples/fetch, the boot from the lab.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from wbscope.lab.emulator import drive, sparse
from wbscope.lab.guest import run_scenario
from wbscope.lab.kernels import Disk, image_in

from .runs import REPOSITORY
from .tools import ingester_path, require_program

__all__ = ["GUEST_SECONDS", "PROGRAMS", "boot", "guest_folders", "guest_kernel", "make_disk"]

PROGRAMS = ("trace-cmd", "fio", "dd", "sh", "sleep", "mkfs.ext4", "mount", "kill", "ls", "cat",
            "taskset")  # fmt: skip
_PACKAGES = ("typer", "rich")  # and what they need
_NOT_NEEDED = shutil.ignore_patterns(
    "test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3", "config-*", "site-packages",
    "__pycache__", "*.a", "turtledemo", "pydoc_data", "distutils",
)  # fmt: skip
_BOOTS = 3
# Ends a guest that hangs; emulated, one takes two minutes here.
GUEST_SECONDS = "4000"


def guest_folders() -> dict[str, Path]:
    """Fetched kernels by name: $WBSCOPE_GUESTS or build/guests."""
    top = Path(os.environ.get("WBSCOPE_GUESTS") or REPOSITORY / "build/guests")
    found = {path.name: path for path in sorted(top.glob("*")) if (path / "kernel").is_dir()}
    return {name: path for name, path in found.items() if (path / "root").is_dir()}


def guest_kernel(name: str) -> Path:
    """The folder of a fetched kernel; the test is skipped without it or QEMU."""
    kernel = guest_folders().get(name)
    if kernel is None:
        pytest.skip(f"no kernel {name} in build/guests; run: make guest-kernels")
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed")
    return kernel


def make_disk(folder: Path, programs: Iterable[Path] = ()) -> Path:
    """An ext4 image whose root holds Python, wbscope and the programs, under their own paths."""
    root = folder / "root"
    for name in ("proc", "sys", "dev", "out", "tmp", "run", "data", "etc", "bin"):
        (root / name).mkdir(parents=True, exist_ok=True)
    python = Path(sys.executable).resolve()
    _copy_program(root, python)
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, _in(root, library), ignore=_NOT_NEEDED, dirs_exist_ok=True)
    for extension in (library / "lib-dynload").glob("*.so"):
        _copy_libraries(root, extension)
    _copy_program(root, ingester_path().resolve())
    for name in PROGRAMS:
        _copy_program(root, Path(require_program(name)))
    for program in programs:
        _copy_program(root, program)
    (root / "bin/sh").unlink(missing_ok=True)
    shutil.copy(require_program("sh"), root / "bin/sh")
    (root / "wbscope").mkdir()
    for name in _closure(_PACKAGES):
        _copy_package(root, name)
    shutil.copytree(REPOSITORY / "analyzers/wbscope", root / "wbscope/wbscope",
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    shutil.copytree(REPOSITORY / "sql", root / "wbscope/wbscope/sql")
    (root / "record").write_text(
        "#!/bin/sh\nexport PYTHONPATH=/wbscope PATH=/usr/bin:/usr/sbin:/bin:/sbin NO_COLOR=1\n"
        f'exec {python} -m wbscope "$@"\n'
    )
    (root / "record").chmod(0o755)
    subprocess.run([python, "-m", "compileall", "-q", root / "wbscope"], check=False)
    subprocess.run(["chroot", root, "/record", "--version"], check=True, capture_output=True)
    image = folder / "disk.img"
    subprocess.run(["truncate", "-s", "400M", image], check=True)
    subprocess.run(["mkfs.ext4", "-qF", "-d", root, image], check=True)
    shutil.rmtree(root)
    return image


def boot(
    guest: Path,
    disk: Path,
    scenario: str,
    out: Path,
    *,
    smp: str = "2",
    bytes_per_s: int = 30_000_000,
    slow_bytes_per_s: int = 0,
) -> None:
    """Run the scenario (shell text) in the guest; its /out is in `out` afterwards.

    `bytes_per_s` is the most that /data takes; with `slow_bytes_per_s` there is one more disk,
    /dev/vdd, without a file system.
    """
    out.mkdir(parents=True, exist_ok=True)
    data, slow = out / "data.img", out / "slow.img"
    sparse(data, 2 << 30)
    drives = [drive(disk, read_only=True), drive(data, Disk("", bytes_per_s=bytes_per_s))]
    if slow_bytes_per_s:
        sparse(slow, 256 << 20)
        drives.append(drive(slow, Disk("", bytes_per_s=slow_bytes_per_s)))
    for _ in range(_BOOTS):
        why = run_scenario(
            image_in(guest / "kernel"),
            _PROLOGUE + scenario,
            out,
            start=guest / "root",
            drives=drives,
            memory_kib=1 << 20,
            cpus=smp,
            limit_s=float(os.environ.get("WBSCOPE_GUEST_SECONDS", GUEST_SECONDS)),
        )
        if (out / "log").exists():
            break
        # Emulation is not perfect: 6.12 panics in code that it patches itself, now and then.
        print(f"the guest did not end: {_last_lines(out / 'console')}", why)
    data.unlink()
    slow.unlink(missing_ok=True)


def _last_lines(console: Path) -> str:
    return "\n".join(console.read_text(errors="replace").splitlines()[-3:])


# The disk's paths become the guest's by chroot.
_PROLOGUE = """\
mkdir -p /p; mount -t ext4 -o ro /dev/vdb /p || mount -t ext4 -o ro,noload /dev/vdb /p
for d in proc sys dev out tmp run; do mount --rbind /$d /p/$d; done
mkdir -p /sys/fs/cgroup; mount -t cgroup2 none /p/sys/fs/cgroup 2>/dev/null
chroot /p mkfs.ext4 -qF /dev/vdc
mount -t ext4 /dev/vdc /p/data
record() { chroot /p /record "$@"; }
"""


def _closure(names: Iterable[str]) -> set[str]:
    """Distributions with all that they need."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            required = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # for another system
        found.add(name)
        waiting += [re.split(r"[^\w.-]", text)[0] for text in required if "extra ==" not in text]
    return found


def _copy_package(root: Path, name: str) -> None:
    target = root / "wbscope"
    for file in metadata.files(name) or ():
        if file.parts[0] not in ("..", "__pycache__") and not file.match("__pycache__/*"):
            (target / file.parent).mkdir(parents=True, exist_ok=True)
            shutil.copy(file.locate(), target / file)
            if file.suffix == ".so":
                _copy_libraries(root, Path(str(file.locate())))


def _in(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")


def _copy_program(root: Path, program: Path) -> None:
    target = _in(root, program)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(program.resolve(), target)
    _copy_libraries(root, program)


def _copy_libraries(root: Path, program: Path) -> None:
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    for word in listed.split():
        if word.startswith("/") and not _in(root, Path(word)).exists():
            target = _in(root, Path(word))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(word).resolve(), target)
