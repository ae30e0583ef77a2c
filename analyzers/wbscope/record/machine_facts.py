# SPDX-License-Identifier: Apache-2.0
"""The files beside the trace: /proc and /sys before and after the run, and what the machine is."""

from __future__ import annotations

import gzip
import os
import platform
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from wbscope.base.procfiles import entries_of, plain_path, text_of
from wbscope.record.bdis import bdis_text
from wbscope.record.choose import memory_kib
from wbscope.record.devices import devices_text, stacks_text
from wbscope.record.past_cache import save
from wbscope.record.settings import read_sysctls

__all__ = [
    "PSI",
    "bdi_stats",
    "block_stats",
    "boot_id",
    "cgroup_paths",
    "kernel_hz",
    "machine_facts",
    "memory_hierarchy",
    "save_after",
    "save_before",
    "uname_text",
    "write_cgroups",
]

PSI = ("cpu", "io", "memory")

_PROC = Path("/proc")
_BDI = Path("/sys/kernel/debug/bdi")
_BLOCK = Path("/sys/block")
_MOST_CGROUPS = 20_000
_HZ_SECONDS = 0.25
_HZ_TOLERANCE = 0.08
_NS_PER_S = 10**9
_USUAL_HZ = (100, 128, 200, 250, 300, 500, 512, 1000, 1 << 10)


def save_before(folder: Path) -> None:
    """What does not change during a run, and the first half of what does."""
    _save(folder, "uname", uname_text() + "\n")
    _save(folder, "mounts", text_of(_PROC / "self/mountinfo"))
    _save(folder, "bdis", bdis_text())
    _save(folder, "sysctls", read_sysctls())
    _save(folder, "swaps", text_of(_PROC / "swaps"))
    _save(folder, "devices", devices_text())
    _save(folder, "stacks", stacks_text())
    _save(folder, "kernel-command-line", text_of(_PROC / "cmdline"))
    _save(folder, "zoneinfo", text_of(_PROC / "zoneinfo"))
    _save(folder, "meminfo", text_of(_PROC / "meminfo"))
    _save(folder, "vmstat.before", text_of(_PROC / "vmstat"))
    _save_both(folder, "before")


def save_after(folder: Path) -> None:
    """The counters first: what is read later has to do with this program only."""
    _save(folder, "vmstat.after", text_of(_PROC / "vmstat"))
    _save(folder, "zoneinfo.after", text_of(_PROC / "zoneinfo"))
    _save(folder, "meminfo.after", text_of(_PROC / "meminfo"))
    _save_both(folder, "after")


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


def bdi_stats() -> Iterator[tuple[str, str]]:
    """Name and text of each bdi. Each read fires a global_dirty_state event."""
    for path in entries_of(_BDI):
        if text := text_of(path / "stats"):
            yield path.name, text


def block_stats() -> Iterator[tuple[str, str]]:
    """Name and counters of each disk that was ever used."""
    for path in entries_of(_BLOCK):
        text = text_of(path / "stat")
        if text.strip(" 0\n"):
            yield path.name, text


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


def _save_both(folder: Path, when: str) -> None:
    numbered = ((name, _device_number(name) + text) for name, text in block_stats())
    _save(folder, f"block.{when}", _joined(numbered))
    _save(folder, f"bdi.{when}", _joined(bdi_stats()))
    _save(
        folder, f"psi.{when}", _joined((name, text_of(_PROC / "pressure" / name)) for name in PSI)
    )


def _joined(parts: Iterable[tuple[str, str]]) -> str:
    return "".join(f"== {name}\n{text}" for name, text in parts if text)


def _save(folder: Path, name: str, text: str) -> None:
    """What this kernel does not have leaves no file."""
    if text:
        save(folder / name, text)


def _cpu_model() -> str | None:
    found = re.search(r"^(?:model name|Model|cpu)\s*:\s*(.+)$", text_of(_PROC / "cpuinfo"), re.M)
    return found[1] if found else None
