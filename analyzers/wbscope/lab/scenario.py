# SPDX-License-Identifier: Apache-2.0
"""A shell text in a guest, without a recording of ours: what tests and tools boot that record by
themselves.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from wbscope.base.errors import InputError
from wbscope.lab.emulator import Machine, drive, emulate, machine_of, sparse
from wbscope.lab.initrd import make_initrd
from wbscope.lab.kernels import Image
from wbscope.record.remote import extract_files

__all__ = ["run_scenario"]

_OUT_BYTES = 512 << 20
_MODULES = ("virtio_pci", "virtio_ccw", "virtio_mmio", "virtio_blk")
_MAIN = """\
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
            modules=(*_MODULES, *modules),
            programs=(),
            files={**(files or {}), "main": _MAIN.encode(), "scenario": text.encode()},
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
