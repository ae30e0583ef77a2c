# SPDX-License-Identifier: Apache-2.0
"""What can be recorded here: events of a profile that this kernel has, clock, buffer size.

An instance has its own buffers, clock and events: nobody else's tracing is touched.
Source: Documentation/trace/ftrace.rst, kernel/trace/trace.c.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from wbscope.base.errors import Argument, EvidenceError, Phrase, SetupError, UsageError, nearest
from wbscope.base.system import plain_path, require_proc
from wbscope.library.catalog import Profile

CLOCKS = ("boot", "mono")
# Of the memory that is available, what all ring buffers together may take: dirty
# thresholds are a share of free memory, so the recorder must not eat into it.
_SHARE = {"deep": 12}
_DEFAULT_SHARE = 24
_LEAST_KIB, _MOST_KIB = 1 << 9, 1 << 16
_PROC = Path("/proc")


@dataclass(frozen=True)
class ChosenEvents:
    """Events to record, the older names among them, and what this kernel lacks."""

    events: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]  # newest name, name here
    missing: tuple[str, ...]


def available_events(tracefs: Path) -> frozenset[str]:
    """Every 'system:name' of this kernel that can be enabled."""
    text = (tracefs / "available_events").read_text(encoding="utf-8")
    return frozenset(text.split())


def choose_profile(name: str, profiles: Sequence[Profile]) -> Profile:
    for profile in profiles:
        if profile.name == name:
            return profile
    names = ", ".join([*(profile.name for profile in profiles), "custom"])
    raise UsageError(
        "unknown-profile",
        Phrase(Argument("profile", name)),
        "is no profile",
        have=names,
        fix=Phrase(Argument("profile", "writeback")),
    )


def choose_events(profile: Profile, available: frozenset[str]) -> ChosenEvents:
    """Of each group of names the first that is there.

    Raises: EvidenceError when none of all is.
    """
    events, renamed, missing = [], [], []
    for group in profile.events:
        name = next((name for name in group if name in available), None)
        if name is None:
            missing.append(group[0])
            continue
        events.append(name)
        if name != group[0]:
            renamed.append((group[0], name))
    if not events:
        raise EvidenceError(
            "no-events",
            Phrase(Argument("profile", profile.name)),
            f"this kernel has none of its {len(profile.events)} events",
            fix="wbscope doctor",
        )
    return ChosenEvents(tuple(events), tuple(renamed), tuple(missing))


def matching_events(patterns: Iterable[str], available: frozenset[str]) -> tuple[str, ...]:
    """Events by 'system:name', 'system', else 'name', or a pattern of these, in order of name."""
    found: set[str] = set()
    for pattern in patterns:
        tried = (pattern,) if ":" in pattern else (f"{pattern}:*", f"*:{pattern}")
        each = ({event for event in available if fnmatchcase(event, one)} for one in tried)
        matched = next(filter(None, each), set())
        if not matched:
            raise EvidenceError(
                "no-such-event",
                Phrase(Argument("event", pattern)),
                f"matches none of the {len(available)} events of this kernel",
                have=", ".join(near := _near(pattern, available)) or None,
                fix=Phrase(Argument("event", near[0])) if near else "wbscope doctor --events",
            )
        found |= matched
    return tuple(sorted(found))


def _near(pattern: str, available: Iterable[str]) -> list[str]:
    """Events like it, or systems where no event is named."""
    events = sorted(available)
    if ":" in pattern.strip(":*"):
        return nearest(pattern, events)
    shorts = {system: system for system in (event.partition(":")[0] for event in events)}
    for event in events:
        shorts.setdefault(event.partition(":")[2], event)
    return [shorts[short] for short in nearest(pattern.partition(":")[0], shorts)]


def choose_clock(wanted: str | None, tracefs: Path) -> str:
    """boot goes on in suspend, mono is older: both are what user space can read too.

    Raises: UsageError for another one, SetupError when the kernel has neither.
    """
    clocks = re.findall(r"[\w-]+", (tracefs / "trace_clock").read_text(encoding="utf-8"))
    if wanted is not None and wanted not in CLOCKS:
        raise UsageError(
            "unknown-clock", Phrase(Argument("clock", wanted)), "is not offered",
            have=", ".join(CLOCKS), fix=Phrase(Argument("clock", "boot")),
        )  # fmt: skip
    for clock in CLOCKS if wanted is None else (wanted,):
        if clock in clocks:
            return clock
    raise SetupError(
        "no-clock",
        str(tracefs / "trace_clock"),
        f"has no clock {wanted or 'boot or mono'}",
        have=" ".join(clocks),
        fix=Phrase(Argument("clock", "mono")) if "mono" in clocks else "a kernel of 3.17 or later",
    )


def memory_kib(name: str = "MemAvailable") -> int:
    """A value of /proc/meminfo; 0 when it is not there (MemAvailable: before 3.14)."""
    for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0])
    return memory_kib("MemFree") if name == "MemAvailable" else 0


def buffer_kib(profile: str, cpus: int, available_kib: int) -> int:
    """Ring buffer of each CPU, KiB: a share of the available memory, within bounds."""
    each = available_kib // _SHARE.get(profile, _DEFAULT_SHARE) // max(cpus, 1)
    return max(_LEAST_KIB, min(_MOST_KIB, each))


def trace_cmd_problem(proc: Path = _PROC) -> str | None:
    """Why trace-cmd cannot record here; None when it can."""
    program = shutil.which("trace-cmd")
    if program is None:
        return "trace-cmd is not installed"
    if not (proc / "kallsyms").exists():
        # trace-cmd 3.1 writes a broken file without it.
        return "the kernel has no /proc/kallsyms"
    try:
        enabled = proc / "sys/kernel/ftrace_enabled"
        value = enabled.read_bytes()
        with enabled.open("wb", buffering=0) as file:
            file.write(value)
    except FileNotFoundError:
        pass  # without the function tracer trace-cmd does not touch it
    except OSError as error:
        return f"kernel.ftrace_enabled cannot be written: {os.strerror(error.errno or 0)}"
    command = [program, "record", "-h"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        return f"{program} cannot be run: {error.strerror}"
    if "-B" not in done.stdout + done.stderr:
        return "trace-cmd has no instances (option -B)"
    return None


INSTANCE_PREFIX = "wbscope-"
_PAUSES = "pauses-"
# The pid of its maker, and what for.  Other names are of somebody else.
_OURS = re.compile(rf"(?:{_PAUSES})?{INSTANCE_PREFIX}(\d+)-(?:[0-9a-f]{{8}}|doctor|remote)")

_DEFAULT = Path("/sys/kernel/tracing")
_DEBUGFS = Path("/sys/kernel/debug")
_MOUNTS = Path("/proc/self/mounts")
# A reader that was killed lets go of its files a moment later.
_REMOVE_SECONDS = 10.0
_REMOVE_STEP_SECONDS = 0.02


def mounted_tracefs(mounts: Path = _MOUNTS) -> Path | None:
    """Where tracefs is, None when it is not mounted."""
    found = _mounted("tracefs", mounts)
    if _DEFAULT in found:
        return _DEFAULT
    return found[0] if found else None


def _mounted(wanted: str, mounts: Path = _MOUNTS) -> list[Path]:
    require_proc()
    found = []
    for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
        _, place, kind, *_ = line.split(" ")
        if kind == wanted:
            found.append(Path(plain_path(place)))
    return found


def mount_tracefs() -> Path:
    """Mount it where every tool looks for it; it stays, as after trace-cmd.

    Raises: SetupError with the kernel's reason.
    """
    done = subprocess.run(
        ["mount", "-t", "tracefs", "nodev", str(_DEFAULT)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return _DEFAULT
    said = " / ".join(line.strip() for line in done.stderr.splitlines() if line.strip())
    raise SetupError(
        "no-tracefs",
        str(_DEFAULT),
        f"tracefs is not mounted and cannot be: {said or done.returncode}",
        fix=f"as root: mount -t tracefs nodev {_DEFAULT}    # kernel built with CONFIG_TRACING",
    )


def mount_debugfs(mounts: Path = _MOUNTS) -> str | None:
    """For the statistics of backing devices; it stays, too.  Returns why it cannot be mounted."""
    if _DEBUGFS in _mounted("debugfs", mounts):
        return None
    done = subprocess.run(
        ["mount", "-t", "debugfs", "nodev", str(_DEBUGFS)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return None
    said = " / ".join(line.strip() for line in done.stderr.splitlines() if line.strip())
    return f"debugfs is not mounted and cannot be: {said or done.returncode}"


def the_tracefs() -> Path:
    """The mounted tracefs, mounted now if need be, that we may write to."""
    root = mounted_tracefs() or mount_tracefs()
    require_writable(root)
    return root


def require_writable(root: Path) -> None:
    """Raises: SetupError when this user cannot trace."""
    if os.access(root / "instances", os.W_OK | os.X_OK):
        return
    problem = f"cannot be written by user {os.geteuid()}"
    fix = "run it as root: sudo wbscope record ..."
    if os.statvfs(root).f_flag & os.ST_RDONLY:
        problem, fix = "is mounted read-only", f"mount -o remount,rw {root}    # as root"
    elif os.geteuid() == 0:
        fix = "wbscope doctor    # as root of the machine, not of a container"
    raise SetupError("tracefs-not-writable", str(root), problem, fix=fix)


def pauses_name(instance: str) -> str:
    """Of the instance beside it, which has the recorder's own pauses."""
    return f"{_PAUSES}{instance}"


def is_orphan(instance: str) -> bool:
    """wbscope has made it, and its maker does not live."""
    ours = _OURS.fullmatch(instance)
    return ours is not None and not Path(f"/proc/{ours[1]}").exists()


class Instance:
    """One instance by name; each method is one or more writes to its files."""

    def __init__(self, tracefs: Path, name: str) -> None:
        self.tracefs = tracefs
        self.name = name
        self.path = tracefs / "instances" / name

    def make(self) -> None:
        """Make it, with tracing off."""
        try:
            self.path.mkdir()
        except FileExistsError:
            pass
        except OSError as error:
            raise SetupError(
                "no-instance",
                str(self.path),
                f"cannot be made: {error.strerror}",
                fix="wbscope doctor",
            ) from error
        self.write("tracing_on", "0")

    def exists(self) -> bool:
        return self.path.is_dir()

    def write(self, file: str, text: str) -> None:
        """One write(2): the kernel takes a value whole.

        Raises: SetupError with the file, the value and the kernel's reason.
        """
        path = self.path / file
        try:
            # Not for truncation, which clears some of these files.
            number = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(number, text.encode())
            finally:
                os.close(number)
        except OSError as error:
            raise SetupError(
                "tracefs-refused",
                str(path),
                f"does not take {text!r}: {error.strerror}",
                fix="wbscope doctor",
            ) from error

    def read(self, file: str) -> str:
        return (self.path / file).read_text(encoding="utf-8", errors="replace")

    def event_file(self, event: str, file: str = "enable") -> str:
        """'system:name' -> events/system/name/FILE."""
        return f"events/{event.replace(':', '/')}/{file}"

    def cpus(self) -> Iterator[tuple[int, Path]]:
        """The CPUs that have a buffer, in order."""
        names = (path.name.removeprefix("cpu") for path in (self.path / "per_cpu").glob("cpu*"))
        for number in sorted(int(name) for name in names):
            yield number, self.path / "per_cpu" / f"cpu{number}"

    def stop(self) -> None:
        """Tracing off and no event enabled; safe at any time, also when half of it is made."""
        for file in ("tracing_on", "events/enable"):
            try:
                self.write(file, "0")
            except SetupError:
                continue

    def remove(self, seconds: float = _REMOVE_SECONDS) -> bool:
        """Remove it; False when somebody keeps it open for so long."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.path.rmdir()
                return True
            except FileNotFoundError:
                return True
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    return False
            time.sleep(_REMOVE_STEP_SECONDS)
