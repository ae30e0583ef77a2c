# SPDX-License-Identifier: Apache-2.0
"""tracefs: where it is mounted, and one trace instance of our own in it.

An instance has its own buffers, clock and events: nobody else's tracing is touched.
Source: Documentation/trace/ftrace.rst, kernel/trace/trace.c.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from wbscope.base.errors import SetupError
from wbscope.base.procfiles import plain_path, require_proc

__all__ = [
    "INSTANCE_PREFIX",
    "Instance",
    "is_orphan",
    "mount_debugfs",
    "mount_tracefs",
    "mounted_tracefs",
    "pauses_name",
    "require_writable",
    "the_tracefs",
]

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
