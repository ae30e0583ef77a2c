# SPDX-License-Identifier: Apache-2.0
"""The machine beside the trace: /proc and /sys, devices, bdis, and the disk of the run itself."""

from __future__ import annotations

import contextlib
import gzip
import os
import platform
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.system import entries_of, plain_path, text_of
from wbscope.record.choose import memory_kib
from wbscope.record.register import save
from wbscope.record.settings import read_sysctls
from wbscope.record.what import WHAT

_CLASS = Path("/sys/class/block")
_BTRFS = Path("/sys/fs/btrfs")
_PROC = Path("/proc")
_MOST_DEPTH = 8


def devices_text(proc: Path = _PROC, block: Path = _CLASS) -> str:
    """`== NAME` and a line for each fact, as sysfs prints it; size is in sectors of 512 bytes.

    Loop devices are what their name says, wherever their file lies: its path changes.
    """
    disks: set[str] = set()
    for source in _sources(proc):
        disks |= _disks(block, source, 0)
    return "".join(f"== {name}\n{_facts(block / name)}" for name in sorted(disks))


def stacks_text(block: Path = _CLASS, btrfs: Path = _BTRFS) -> str:
    """A line for each device that lies on another one: its number, that of the disk below.

    Of a partition below, its disk: requests are on that. A btrfs has the name of its bdi.
    """
    lines = [*_slaves(block), *_btrfs_devices(block, btrfs)]
    return "".join(f"{line}\n" for line in dict.fromkeys(lines))


def _slaves(block: Path) -> Iterator[str]:
    """Of device mapper and md."""
    for path in sorted(block.glob("*/slaves/*")):
        yield from _pair(text_of(path.parents[1] / "dev"), _disk(block / path.name))


def _btrfs_devices(block: Path, btrfs: Path) -> Iterator[str]:
    for path in sorted(btrfs.glob("*/devices/*")):
        with contextlib.suppress(OSError):
            bdi = (path.parents[1] / "bdi").resolve(strict=True).name
            yield from _pair(bdi, _disk(block / path.name))


def _pair(above: str, disk: Path | None) -> Iterator[str]:
    below = text_of(disk / "dev").strip() if disk else ""
    if above.strip() and below:
        yield f"{above.strip()} {below}"


def _disk(device: Path) -> Path | None:
    """The disk of a partition, else the device itself; None where it is not there."""
    with contextlib.suppress(OSError):
        real = device.resolve(strict=True)
        return real.parent if (real / "partition").exists() else real
    return None


def _sources(proc: Path) -> Iterator[str]:
    """Names of the devices of mounts and swap areas."""
    text = text_of(proc / "self/mountinfo")
    for source in re.findall(r" - \S+ (/dev/\S+) ", text) + re.findall(
        r"^(/dev/\S+)", text_of(proc / "swaps"), re.MULTILINE
    ):
        yield Path(plain_path(source)).resolve().name


def _disks(block: Path, name: str, depth: int) -> set[str]:
    real = _disk(block / name)
    if real is None:
        return set()
    slaves = [path.name for path in sorted(real.glob("slaves/*"))]
    below: set[str] = set()
    if depth < _MOST_DEPTH:  # device mapper, md
        for slave in slaves:
            below |= _disks(block, slave, depth + 1)
    return below | {real.name}


def _facts(disk: Path) -> str:
    found = ((name, " ".join(text_of(disk / name).split())) for name in WHAT["disk"]["facts"])
    return "".join(f"{name} {value}\n" for name, value in found if value)


_SYS = Path("/sys")
# man 5 proc: id, parent, major:minor, root, mount point, options, "-", kind, source
_MOUNT = re.compile(r"^\d+ \d+ (\d+:\d+) \S+ (\S+) .*? - (\S+) (\S+)", re.MULTILINE)


def bdis_text(proc: Path = _PROC, sys: Path = _SYS) -> str:
    """A line for each mount: bdi, device, mount point, kind; blanks are as in mountinfo (\\040).

    A partition has the bdi of its disk, btrfs one of its own, NFS and FUSE that of the mount.
    """
    text = ""
    with contextlib.suppress(OSError):
        text = (proc / "self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    return "".join(f"{line}\n" for line in dict.fromkeys(_lines(text, sys)))


def _lines(text: str, sys: Path) -> Iterator[str]:
    for number, place, kind, source in _MOUNT.findall(text):
        if not source.startswith("/dev/"):
            if (sys / "class/bdi" / number).exists():
                yield f"{number} {source} {place} {kind}"
            continue
        name = Path(source).resolve().name
        bdi = _btrfs(sys, name) if kind == "btrfs" else _bdis_disk(sys, name)
        if bdi is not None:
            yield f"{bdi} {name} {place} {kind}"


def _bdis_disk(sys: Path, name: str) -> str | None:
    with contextlib.suppress(OSError):
        real = (sys / "class/block" / name).resolve(strict=True)
        if (real / "partition").exists():
            real = real.parent
        return (real / "dev").read_text(encoding="ascii").strip()
    return None


def _btrfs(sys: Path, name: str) -> str | None:
    for device in (sys / "fs/btrfs").glob(f"*/devices/{name}"):
        with contextlib.suppress(OSError):
            return (device.parents[1] / "bdi").resolve(strict=True).name
    return None


_BLOCK = Path("/sys/block")
_MOST_CGROUPS = 20_000
_HZ_SECONDS = 0.25
_HZ_TOLERANCE = 0.08
_NS_PER_S = 10**9
_USUAL_HZ = (100, 128, 200, 250, 300, 500, 512, 1000, 1 << 10)


def save_before(folder: Path) -> None:
    """What does not change during a run, and the first half of what does."""
    _save(folder, "uname", uname_text() + "\n")
    _save(folder, "bdis", bdis_text())
    _save(folder, "sysctls", read_sysctls())
    _save(folder, "devices", devices_text())
    _save(folder, "stacks", stacks_text())
    _save_all(folder, "before")


def save_after(folder: Path) -> None:
    """The second half."""
    _save_all(folder, "after")


def _save_all(folder: Path, when: str) -> None:
    for name, path in WHAT[when].items():
        _save(folder, name, text_of(Path(path)))
    for kind in WHAT["parts"]:
        numbered = kind == "block"
        parts = ((name, _device_number(name) + text if numbered else text)
                 for name, text in parts_of(kind))  # fmt: skip
        _save(folder, f"{kind}.{when}", joined(parts))


def machine_facts() -> dict[str, object]:
    """For meta.json."""
    return {
        "hostname": platform.node(),
        "machine": platform.machine(),
        "kernel_release": platform.release(),
        "cpu_model": _cpu_model(),
        "cpus_count": os.cpu_count(),
        "memory_bytes": memory_kib("MemTotal") << 10,
        "swap_bytes": memory_kib("SwapTotal") << 10,
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
        "hz": kernel_hz(),
        "boot_id": boot_id(),
    }


def boot_id() -> str | None:
    """Another one after each start of this kernel."""
    return text_of(_PROC / "sys/kernel/random/boot_id").strip() or None


def kernel_hz() -> int | None:
    """CONFIG_HZ of the running kernel, measured where its configuration is not to be had."""
    release = platform.release()
    places = [_PROC / "config.gz", Path("/boot") / f"config-{release}",
              Path("/lib/modules") / release / "config"]  # fmt: skip
    for place in places:
        try:
            data = place.read_bytes()
            text = (gzip.decompress(data) if place.suffix == ".gz" else data).decode()
        except (OSError, EOFError, UnicodeDecodeError):
            continue
        if match := re.search(r"^CONFIG_HZ=(\d+)$", text, re.MULTILINE):
            return int(match[1])
    return _measured_hz()


def _measured_hz() -> int | None:
    """From two readings of the jiffies, which root can see."""
    readings = []
    for pause in (_HZ_SECONDS, 0.0):
        text = text_of(_PROC / "timer_list")
        jiffies = re.search(r"^jiffies: (\d+)$", text, re.MULTILINE)
        now = re.search(r"^now at (\d+) nsecs$", text, re.MULTILINE)
        if jiffies is None or now is None:
            return None
        readings.append((int(jiffies[1]), int(now[1])))
        time.sleep(pause)
    (first, began), (last, ended) = readings
    rate = (last - first) * _NS_PER_S / max(ended - began, 1)
    nearest = min(_USUAL_HZ, key=lambda hz: abs(hz - rate))
    return nearest if abs(nearest - rate) < nearest * _HZ_TOLERANCE else None


def uname_text() -> str:
    """As `uname -a` prints it."""
    name = os.uname()
    return f"{name.sysname} {name.nodename} {name.release} {name.version} {name.machine} GNU/Linux"


def parts_of(kind: str) -> Iterator[tuple[str, str]]:
    """Name and text of each file of this kind; of block, of each disk that was ever used."""
    folder, _, file = WHAT["parts"][kind].partition("/*")
    wanted = WHAT["only"].get(kind)
    for path in entries_of(Path(folder)):
        text = text_of(Path(f"{path}{file}"))
        is_used = kind != "block" or text.strip(" 0\n")
        if text and is_used and (wanted is None or path.name in wanted):
            yield path.name, text


def joined(parts: Iterable[tuple[str, str]]) -> str:
    """With the name of each before it."""
    return "".join(f"== {name}\n{text}" for name, text in parts)


def _device_number(disk: str) -> str:
    number = text_of(_BLOCK / disk / "dev")
    return f"dev {number}" if number else ""


def cgroup_paths(proc: Path = _PROC) -> dict[int, str]:
    """Inode and path of each cgroup that an event can name by its inode.

    Each hierarchy numbers its own.  Writeback's events have that of the memory controller:
    version 2, or of version 1 the one that has it.
    Source: include/trace/events/writeback.h, __trace_wb_assign_cgroup().
    """
    found: dict[int, str] = {}
    for folder, names, _ in os.walk(memory_hierarchy(proc)):
        try:
            found[os.stat(folder).st_ino] = folder
        except OSError:
            names.clear()  # removed meanwhile
        if len(found) >= _MOST_CGROUPS:
            break
    return found


def memory_hierarchy(proc: Path = _PROC) -> str:
    """Where it is mounted; empty where it is not."""
    second = ""
    for line in text_of(proc / "self/mounts").splitlines():
        _, place, kind, options, *_ = line.split(" ")
        if kind == "cgroup" and "memory" in options.split(","):
            return plain_path(place)
        if kind == "cgroup2":
            second = second or plain_path(place)
    return second


def write_cgroups(folder: Path, paths: dict[int, str]) -> None:
    """As `ls -id` prints them; those with white space cannot be told apart and are left out."""
    lines = (f"{inode:>7} {path}\n" for inode, path in sorted(paths.items())
             if not re.search(r"\s", path))  # fmt: skip
    if text := "".join(lines):
        save(folder / "cgroups", text)


def _save(folder: Path, name: str, text: str) -> None:
    """What this kernel does not have leaves no file."""
    if text:
        save(folder / name, text)


def _cpu_model() -> str | None:
    found = re.search(r"^(?:model name|Model|cpu)\s*:\s*(.+)$", text_of(_PROC / "cpuinfo"), re.M)
    return found[1] if found else None


_DEVICES = Path("/sys/dev/block")
_MOUNTS = Path("/proc/self/mountinfo")
# A path alone, or the value of an option: of=/mnt/x, --directory=/mnt.
_PATH = re.compile(r"^(?:[\w-]+=)?(\.{0,2}/.*|[\w.-]+/.*)$")
# dd of=x, fio --filename=x: in the folder where it runs.
_NAME = re.compile(r"^(?:of|-{1,2}(?:filename|directory|output))=[^/]+$")
_NO_DISKS = ("/dev/", "/proc/", "/sys/")
# Of anonymous devices, those whose files are in memory or on another machine.
_ELSEWHERE = re.compile(r"tmpfs|ramfs|devtmpfs|nfs\d?|cifs|smb3|9p|virtiofs|ceph|afs|fuse\.sshfs|"
                        r"proc|sysfs|cgroup2?|tracefs|debugfs|devpts|mqueue|hugetlbfs")  # fmt: skip
_DEEPEST = 8


@dataclass(frozen=True)
class Mount:
    """What is mounted where, of a line of mountinfo."""

    place: str
    kind: str
    source: str
    options: str


def shared_disks(
    output: Path, command: Sequence[str], cwd: Path, mounts: Path = _MOUNTS
) -> tuple[str, ...]:
    """Disks of the output folder that the command can write to too.

    It is taken to write to every path on its command line; where none says where else, to
    where it runs.  Without a command, anything may write anywhere.
    """
    own = _disk_disks(output, mounts, 0)
    if not command:
        return tuple(sorted(own))
    places = [place for word in command[1:] for place in _places(word)]
    if not any(place.is_absolute() for place in places) or _runs_in(command, cwd):
        places.append(cwd)
    return tuple(
        sorted(own & set().union(*(_disk_disks(cwd / place, mounts, 0) for place in places)))
    )


def _places(word: str) -> list[Path]:
    """Files that a word of the command line names."""
    found = []
    for part in re.split(r"[\s;|&<>'\"]+", word):
        match = _PATH.match(part)
        if match is None:
            continue
        # /dev/zero is no disk, /dev/sdb is one.
        if not match[1].startswith(_NO_DISKS) or Path(match[1]).is_block_device():
            found.append(Path(match[1]))
    return found


def _runs_in(command: Sequence[str], cwd: Path) -> bool:
    """It names a file that is where it runs."""
    parts = [part for word in command[1:] for part in re.split(r"[\s;|&<>'\"]+", word)]
    return any(_NAME.match(part) or (part and (cwd / part).is_file() and "/" not in part)
               for part in parts)  # fmt: skip


def _disk_disks(path: Path, mounts: Path, depth: int) -> set[str]:
    """The disks below the file system of a path; none for one without (tmpfs, NFS)."""
    while not path.exists() and path != path.parent:
        path = path.parent
    try:
        told = path.stat()
    except OSError:
        return set()
    number = told.st_rdev if stat.S_ISBLK(told.st_mode) else told.st_dev
    if os.major(number):
        return _below(_DEVICES / f"{os.major(number)}:{os.minor(number)}", mounts, depth)
    return _of_mount(mount_of(path, mounts), mounts, depth)


def _of_mount(mount: Mount | None, mounts: Path, depth: int) -> set[str]:
    """An anonymous device: btrfs names its disk, overlayfs the folder that takes the writes."""
    if mount is None or depth > _DEEPEST or _ELSEWHERE.fullmatch(mount.kind):
        return set()
    if mount.source.startswith("/"):
        return _device_of(mount.source, mounts, depth + 1)
    # The upper folder may be out of sight in a container; the mount is then all there is to tell.
    found = {f"{mount.kind} {mount.place}"}
    if (upper := re.search(r"\bupperdir=([^,]+)", mount.options)) and Path(upper[1]).exists():
        found |= _disk_disks(Path(upper[1]), mounts, depth + 1)
    return found


def _device_of(source: str, mounts: Path, depth: int) -> set[str]:
    try:
        number = os.stat(source).st_rdev
    except OSError:
        return {source}
    return _below(_DEVICES / f"{os.major(number)}:{os.minor(number)}", mounts, depth)


def mount_of(path: Path, mounts: Path = _MOUNTS) -> Mount | None:
    """The last one whose place the path is below."""
    real = os.path.realpath(path)
    best: Mount | None = None
    for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
        before, _, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if len(left) < 6 or len(right) < 3:
            continue
        place = plain_path(left[4])
        if not (real == place or real.startswith(place.rstrip("/") + "/")):
            continue
        if best is None or len(place) >= len(best.place):
            best = Mount(place, right[0], right[1], right[2])
    return best


def _below(device: Path, mounts: Path, depth: int) -> set[str]:
    try:
        real = device.resolve(strict=True)
    except OSError:
        return set()
    if depth > _DEEPEST:
        return {real.name}
    if (real / "partition").exists():
        real = real.parent
    if (backing := real / "loop/backing_file").exists():
        return _disk_disks(Path(backing.read_text().strip()), mounts, depth + 1) | {real.name}
    slaves = list((real / "slaves").glob("*"))
    if slaves:  # device mapper, md
        return set().union(*(_below(slave, mounts, depth + 1) for slave in slaves))
    return {real.name}
