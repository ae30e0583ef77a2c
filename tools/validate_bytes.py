#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far each way to know what a task dirtied is from the truth, on runs in guests.

usage: validate_bytes.py [--runs FOLDER] [--markdown FILE] [KERNEL...]

Records runs that are not in FOLDER yet (build/bytes) on stock kernels (make guest-kernels), some
minutes for a kernel, and prints a row for each run: what each source says of each writer over what
it wrote, by the size of its file or by fio.  Needs Debian's qemu-system-x86, xfsprogs and
btrfs-progs.  --markdown writes the table into FILE, between the lines <!-- validation --> and
<!-- /validation -->.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import wbscope  # noqa: E402
from support import guest as guests  # noqa: E402
from support.tools import require_program  # noqa: E402

START, END = "<!-- validation -->", "<!-- /validation -->"
MIB = 1 << 20
# Emulation of 6.12 stops in its own code patching with two CPUs.
CPUS = {"6.12": "1"}
DEVICE = "/dev/vdc"
DISK = 8_000_000  # slower than the emulated machine can dirty
MAKERS = ("mkfs.xfs", "mkfs.btrfs")


@dataclass(frozen=True)
class Case:
    """Writers at the same time, on a new file system."""

    name: str
    kind: str
    mib: tuple[int, ...]  # of dd; the first one is in a memory cgroup where memcg is set
    fio: tuple[str, ...] = ()  # rate of each job, empty for none
    memcg: bool = False


CASES = {
    "6.1": (
        Case("ext4, 1 dd", "ext4", (64,)),
        Case("ext4, 4 dd", "ext4", (32, 32, 32, 32)),
        Case("xfs, 2 dd", "xfs", (40, 60)),
        Case("ext4, 4 fio", "ext4", (), ("", "1m", "2m", "4m")),
        Case("ext4, 3 dd, one in a memcg", "ext4", (24, 40, 56), memcg=True),
    ),
    "6.12": (
        Case("ext4, 2 dd", "ext4", (40, 60)),
        Case("ext4, 8 dd", "ext4", (12, 12, 16, 16, 20, 20, 24, 24)),
        Case("btrfs, 4 dd", "btrfs", (32, 32, 32, 32)),
        Case("ext4, 4 fio", "ext4", (), ("", "1m", "2m", "4m")),
        Case("ext4, 3 dd, one in a memcg", "ext4", (24, 40, 56), memcg=True),
    ),
    "7.2": (
        Case("ext4, 1 dd", "ext4", (64,)),
        Case("ext4, 4 dd", "ext4", (32, 32, 32, 32)),
        Case("xfs, 8 dd", "xfs", (12, 12, 16, 16, 20, 20, 24, 24)),
        Case("btrfs, 2 dd", "btrfs", (40, 60)),
        Case("ext4, 4 fio", "ext4", (), ("", "1m", "2m", "4m")),
        Case("ext4, 3 dd, one in a memcg", "ext4", (24, 40, 56), memcg=True),
    ),
}
_FIO = ("[global]", "directory=/data", "rw=write", "bs=64k", "size=1g", "runtime=12",
        "time_based=1", "ioengine=psync", "fallocate=none")  # fmt: skip
_MEMCG = (
    "echo +memory +io > /p/sys/fs/cgroup/cgroup.subtree_control",
    "mkdir -p /p/sys/fs/cgroup/small",
    "echo 48M > /p/sys/fs/cgroup/small/memory.max",
)


def slug(case: Case) -> str:
    return case.name.replace(", ", "-").replace(" ", "-")


def scenario(cases: tuple[Case, ...]) -> str:
    """What the guest runs: its first lines are those of support.guest."""
    lines = []
    for number, case in enumerate(cases):
        force = "-qF" if case.kind == "ext4" else "-qf"
        lines += [
            "umount /p/data",
            f"chroot /p mkfs.{case.kind} {force} {DEVICE} || echo 'no mkfs.{case.kind}'",
            f"mount -t {case.kind} {DEVICE} /p/data",
            *(_MEMCG if case.memcg else ()),
            f"cat > /out/w{number} <<'E'",
            *_workload(case),
            "E",
            "record record --sysctl vm.dirty_bytes=16M --sysctl vm.dirty_background_bytes=8M"
            f" --no-report -o /out/{slug(case)} -- {'fio' if case.fio else 'sh'} /out/w{number}",
            f"echo '{slug(case)}' rc=$?",
            f"ls -ln /p/data > /out/{slug(case)}/ls-files",
        ]
    return "\n".join(lines) + "\n"


def _workload(case: Case) -> list[str]:
    if case.fio:
        jobs = [
            line
            for number, rate in enumerate(case.fio)
            for line in (f"[job-{number}]", *([f"rate={rate}"] if rate else []))
        ]
        return [*_FIO, *jobs]
    lines = []
    for number, mib in enumerate(case.mib):
        dd = f"dd if=/dev/zero of=/data/file-{number} bs=64k count={mib * 16} 2>/dev/null"
        if case.memcg and number == 0:
            dd = f"sh -c 'echo $$ > /sys/fs/cgroup/small/cgroup.procs; exec {dd}'"
        lines.append(f"{dd} &")
    return [*lines, "wait"]


def record(kernel: str, runs: Path) -> None:
    """All runs of the kernel that are not there yet."""
    missing = tuple(c for c in CASES[kernel] if not (runs / f"{kernel}-{slug(c)}").is_dir())
    if not missing:
        return
    folder = guests.guest_folders().get(kernel)
    if folder is None:
        sys.exit(f"no kernel {kernel} in build/guests; run: make guest-kernels")
    os.environ.setdefault("WBSCOPE_GUEST_SECONDS", "900")
    os.environ["MODULES"] = "xfs btrfs"
    with tempfile.TemporaryDirectory(dir=runs) as private:
        disk = guests.make_disk(Path(private), [Path(require_program(name)) for name in MAKERS])
        out = Path(private) / "out"
        guests.boot(
            folder, disk, scenario(missing), out, smp=CPUS.get(kernel, "2"), bytes_per_s=DISK
        )
        print((out / "log").read_text() if (out / "log").exists() else "the guest did not end")
        for case in missing:
            if (out / slug(case) / "trace.dat").exists():
                shutil.move(out / slug(case), runs / f"{kernel}-{slug(case)}")


def told(run: Path, basis: str, private: Path) -> tuple[dict[int, int], float | None]:
    """What a source says of each task in a run that has no better one; coverage."""
    copy = private / basis
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("*.db"))
    if basis != "fio":
        for name in ("fio.json", "fio-output"):
            (copy / name).unlink(missing_ok=True)
    if basis != "proc_io":
        (copy / "task_io").unlink(missing_ok=True)
    database = private / f"{basis}.db"
    program = str(ROOT / ".venv/bin/wbscope")
    command = [program, "ingest", str(copy), "-o", str(database)]
    subprocess.run(command, check=True, capture_output=True)
    if basis != "probe":
        with contextlib.closing(sqlite3.connect(database)) as db, db:
            db.execute("DELETE FROM ev_balance_dirty_pages_entry")
            db.execute("DELETE FROM ev_balance_dirty_pages_return")
    with wbscope.open(database) as opened:
        rows = opened.query("throttle_by_task").records()
    found: dict[int, int] = {}
    for row in rows:
        if row["comm"] in ("dd", "fio"):
            bound = row["dirtied_bytes"] if basis == "bound" else None
            if bound is None and row["dirtied_basis"] == basis:
                bound = row["dirtied_estimate_bytes"]
            if bound is not None:
                found[row["tid"]] = found.get(row["tid"], 0) + bound
    return found, next((row["coverage_ratio"] for row in rows), None)


def truth(run: Path, case: Case) -> list[int]:
    """What each writer wrote, most first."""
    if case.fio:
        jobs = json.loads((run / "fio.json").read_text())["jobs"]
        return sorted((job["write"]["io_bytes"] for job in jobs), reverse=True)
    lines = (run / "ls-files").read_text().splitlines()
    return sorted((int(line.split()[4]) for line in lines if "file-" in line), reverse=True)


def row(kernel: str, case: Case, run: Path) -> str:
    """One run; writers and sources are matched by rank."""
    real = truth(run, case)
    cells, coverage = [], None
    with tempfile.TemporaryDirectory() as private:
        for basis in ("bound", "calibrated", "proc_io", "probe"):
            found, coverage = told(run, basis, Path(private))
            values = sorted(found.values(), reverse=True)[: len(real)]
            if len(values) < len(real):
                cells.append("-")
            else:
                shares = (f"{a / b:.3f}" for a, b in zip(values, real, strict=True))
                cells.append(" ".join(shares))
    shown = "-" if coverage is None else f"{100 * coverage:.0f} %"
    return f"| {kernel} | {case.name} | {shown} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=Path, default=ROOT / "build/bytes")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("kernels", nargs="*", default=list(CASES))
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    lines = [
        "| kernel | run | coverage | bound | calibrated | proc_io | probe |",
        "|---|---|---:|---|---|---|---|",
    ]
    for kernel in given.kernels:
        record(kernel, given.runs)
        for case in CASES[kernel]:
            run = given.runs / f"{kernel}-{slug(case)}"
            if run.is_dir():
                lines.append(row(kernel, case, run))
    text = "\n".join(lines) + "\n"
    print(text)
    if given.markdown:
        page = given.markdown.read_text(encoding="utf-8")
        before, _, rest = page.partition(START)
        after = rest.partition(END)[2]
        given.markdown.write_text(f"{before}{START}\n{text}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
