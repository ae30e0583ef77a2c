# SPDX-License-Identifier: Apache-2.0
"""The first file system of a guest: busybox, programs of this machine, modules, an init."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from wbscope.base.errors import SetupError
from wbscope.lab.kernels import Image, unpacked
from wbscope.lab.programs import call, find, output_of

__all__ = ["make_initrd", "static_busybox"]

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
