#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Apply kernel-tracepoints/series to Debian's kernel sources, check, compile and build them.

usage: kernel_build.py STEP [SERIES...]     STEP: fetch, apply, checkpatch, objects, image
Everything is in build/kernels/SERIES: linux/ (the patched tree), pristine/ (the files that
the series touches, as Debian has them), guest/ (what tools/record-samples/boot.py takes).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = [
    "SERIES",
    "apply",
    "build_image",
    "checkpatch",
    "compile_objects",
    "fetch",
    "made_for",
    "misplaced",
    "patches",
    "version",
]

ROOT = Path(__file__).parents[1]
SERIES = ("6.1", "6.12", "7.2")
_CONFIG = ROOT / "kernel-tracepoints/kconfig/guest.config"
# What checkpatch says of every TRACE_EVENT there is; allowed in trace headers only.
_OF_TRACE_EVENTS = ("OPEN_ENDED_LINE", "PARENTHESIS_ALIGNMENT")
_OBJECTS = ("mm/vmscan.o", "mm/page-writeback.o", "fs/fs-writeback.o")
_PROGRAMS = ("trace-cmd", "mkfs.ext4", "chrt")
# What `patch` says of a hunk that only stands on another line; with fuzz it says that, too.
_OFFSET = re.compile(r"Hunk #\d+ succeeded at \d+ \(offset -?\d+ lines?\)\.")


def patches(series: str) -> list[Path]:
    """The patches of one kernel, without the cover letter."""
    found = sorted((ROOT / "kernel-tracepoints/series" / series).glob("0*.patch"))
    return [path for path in found if not path.name.startswith("0000-")]


def made_for(series: str) -> str:
    """Debian's version of the source that the series was made for, from its cover letter."""
    cover = next((ROOT / "kernel-tracepoints/series" / series).glob("0000-*.patch"))
    found = re.search(rf"linux-source-{re.escape(series)} (\S+) of Debian", cover.read_text())
    if found is None:
        raise RuntimeError(f"{cover} does not name the source that it is for")
    return found[1]


def version(series: str) -> str:
    """Debian's version of the source that was fetched."""
    return (folder(series) / "version").read_text().strip()


def misplaced(said: list[str], made: str, fetched: str) -> list[str]:
    """The lines of `patch` that tell of hunks in a wrong place.

    In the very source that a series was made for, each line number holds. A newer stable
    release of it may have moved the lines, but not changed those around a hunk.
    """
    numbers, newer = ([int(n) for n in re.findall(r"\d+", name)] for name in (made, fetched))
    moved = numbers[:2] == newer[:2] and newer > numbers
    return [
        line
        for line in said
        if not line.startswith("patching file ") and not (moved and _OFFSET.fullmatch(line))
    ]


def folder(series: str) -> Path:
    return ROOT / "build/kernels" / series


def fetch(series: str) -> Path:
    """The source tree, fetched once."""
    subprocess.run([ROOT / "tools/kernel-source", series, folder(series)], check=True)
    return folder(series) / "linux"


def touched(series: str) -> list[str]:
    names = re.findall(
        r"^\+\+\+ b/(\S+)", "".join(p.read_text() for p in patches(series)), re.MULTILINE
    )
    return sorted(set(names))


def apply(series: str) -> list[str]:
    """Patch the tree; what `patch` said. Raises where a hunk needs fuzz."""
    tree, pristine = fetch(series), folder(series) / "pristine"
    for name in touched(series):
        if not (pristine / name).exists():
            (pristine / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, pristine / name)
    said = []
    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(pristine, work, dirs_exist_ok=True)
        for path in patches(series):
            done = subprocess.run(
                ["patch", "-p1", "-F0", "--no-backup-if-mismatch", "-d", work, "-i", path],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(f"{path.name} does not apply to {series}: {done.stdout}")
            said += done.stdout.splitlines()
        for name in touched(series):
            # An unchanged file keeps its time, so that make does not compile it again.
            new = Path(work, name).read_bytes()
            if (tree / name).read_bytes() != new:
                (tree / name).write_bytes(new)
    return said


def checkpatch(series: str) -> list[str]:
    """What the tree's own checkpatch --strict finds, but for the form of trace events."""
    tree, found = fetch(series), []
    for path in patches(series):
        done = subprocess.run(
            ["perl", tree / "scripts/checkpatch.pl", "--root", tree, "--strict", "--show-types",
             "--terse", path],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        # With --terse a line is FILE:LINE: LEVEL:TYPE: text, of the patch's lines.
        for line in done.stdout.splitlines():
            match = re.match(r".*?:(\d+): (ERROR|WARNING|CHECK):(\w+): ", line)
            if match is None:
                if not line.startswith("total: "):
                    found.append(line)
            elif not (match[3] in _OF_TRACE_EVENTS and _in_header(path, int(match[1]))):
                found.append(line)
        if "lines checked" not in done.stdout:
            found.append(f"checkpatch read nothing of {path.name}: {done.stdout}{done.stderr}")
    return found


def _in_header(path: Path, number: int) -> bool:
    names = [line for line in path.read_text().splitlines()[:number] if line.startswith("+++ b/")]
    return bool(names) and names[-1].startswith("+++ b/include/trace/events/")


def configure(series: str) -> Path:
    tree = fetch(series)
    stamp = tree / ".config.guest"
    if stamp.exists() and stamp.read_bytes() == _CONFIG.read_bytes():
        return tree
    _make(tree, "tinyconfig")
    merge = ["scripts/kconfig/merge_config.sh", "-m", ".config", str(_CONFIG)]
    subprocess.run(merge, cwd=tree, check=True, stdout=subprocess.DEVNULL)
    _make(tree, "olddefconfig")
    missing = set(re.findall(r"^CONFIG_\w+=y$", _CONFIG.read_text(), re.MULTILINE)) - set(
        (tree / ".config").read_text().splitlines()
    )
    # Each of these names had a meaning in 6.1; later kernels dropped a few.
    if missing and series == SERIES[0]:
        raise RuntimeError(f"{series} did not take {sorted(missing)}")
    shutil.copyfile(_CONFIG, stamp)
    return tree


def compile_objects(series: str) -> list[Path]:
    """The objects that the series changes, and what reads its headers; warnings are errors."""
    apply(series)
    tree = configure(series)
    _make(tree, "KCFLAGS=-Werror", *_OBJECTS)
    return [tree / name for name in _OBJECTS]


def build_image(series: str) -> Path:
    """A guest folder for tools/record-samples/boot.py: kernel and programs."""
    apply(series)
    tree, guest = configure(series), folder(series) / "guest"
    _make(tree, "bzImage")
    release = _make(tree, "kernelrelease").strip()
    shutil.rmtree(guest, ignore_errors=True)
    (guest / f"kernel/lib/modules/{release}").mkdir(parents=True)
    (guest / f"kernel/lib/modules/{release}/modules.dep").write_text("# all is built in\n")
    shutil.copy(tree / "arch/x86/boot/bzImage", guest / "kernel/vmlinuz")
    (guest / "root/usr/bin").mkdir(parents=True)
    shutil.copy(_program("busybox"), guest / "root/usr/bin/busybox")
    for name in _PROGRAMS:
        program = _program(name)
        shutil.copy(program, guest / "root/usr/bin" / name)
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
        for word in listed.stdout.split():
            target = guest / "root" / word.lstrip("/")
            if word.startswith("/") and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path(word).resolve(), target)
    hog = ROOT / "tests/kernel/hog.c"
    subprocess.run(["gcc", "-O2", "-static", "-o", guest / "hog", hog], check=True)
    return guest


def _program(name: str) -> Path:
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if found is None:
        raise RuntimeError(f"no {name}; run: make kernel-test, which installs it")
    return Path(found).resolve()


def _make(tree: Path, *goals: str) -> str:
    # The version is the tree's alone: no "+", and the same on every machine.
    jobs = os.environ.get("JOBS") or os.cpu_count()
    command = ["make", "-s", f"-j{jobs}", "LOCALVERSION=-wbscope",
               "KBUILD_BUILD_TIMESTAMP=2026-01-01", "KBUILD_BUILD_USER=wbscope",
               "KBUILD_BUILD_HOST=guest", *goals]  # fmt: skip
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"make {' '.join(goals)} in {tree}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> int:
    step, *chosen = sys.argv[1:] or [""]
    steps = {
        "fetch": fetch,
        "apply": apply,
        "checkpatch": checkpatch,
        "objects": compile_objects,
        "image": build_image,
    }
    if step not in steps or not set(chosen) <= set(SERIES):
        print(__doc__, file=sys.stderr)
        return 2
    failed = False
    for series in chosen or SERIES:
        result = steps[step](series)
        failed |= step == "checkpatch" and bool(result)
        for line in result if isinstance(result, list) else [result]:
            print(f"{series}: {line}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
