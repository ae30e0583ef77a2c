# SPDX-License-Identifier: Apache-2.0
"""What is to be recorded, and the register of recordings that go on.

A recording that changes the machine has an entry in the register, which its recorder
keeps locked (flock).  An entry without a lock is of a recorder that was killed: whoever
finds it puts everything back.  Entries do not outlive a boot, nor do traces and sysctls.
What they say is done, so the folder must be this user's own and closed to writers.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import SetupError
from wbscope.base.heldfolder import HeldFolder
from wbscope.record.past_cache import DirectFile

__all__ = [
    "COMPLETE",
    "DISCARD",
    "INTERRUPTED",
    "NOT_WHOLE",
    "RECORDER_KILLED",
    "Entry",
    "Plan",
    "dead_entries",
    "lock_sysctls",
    "open_entry",
    "register_folder",
    "registered",
]

# How a recording ended, for meta.json.
COMPLETE = "complete"
INTERRUPTED = "interrupted"
NOT_WHOLE = "pages not copied"
RECORDER_KILLED = "recorder killed"
# An end after which there is nothing to keep.
DISCARD = "no command"

_SUFFIX = ".json"
# mktemp makes a folder that is this user's own and closed to others; this one goes with the boot.
_FIX = "export WBSCOPE_RUN_DIR=$(mktemp -d -p /dev/shm)"


@dataclass(frozen=True)
class Plan:
    """Everything the recorder needs; it goes to it as JSON."""

    folder: str  # private, until the run is whole
    target: str  # its name then
    tracefs: str
    instance: str
    backend: str  # tracefs or trace-cmd
    profile: str
    events: tuple[str, ...]
    clock: str
    buffer_kib: int
    interval_s: float
    command: tuple[str, ...] = ()
    force: bool = False
    probes: bool = False  # where the kernel takes them
    settings: dict[str, str] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)  # goes into meta.json as it is

    def pages_of(self, cpu: int) -> Path:
        """Where the pages of a CPU are copied to: where trace-cmd has them."""
        return Path(self.folder) / f"{self._pages_prefix()}{cpu}"

    def copied_pages(self) -> dict[int, Path]:
        """What there is of them."""
        prefix = self._pages_prefix()
        numbers = (
            path.name.removeprefix(prefix)
            for path in Path(self.folder).iterdir()
            if path.name.startswith(prefix)
        )
        return {int(number): self.pages_of(int(number)) for number in numbers if number.isdigit()}

    def _pages_prefix(self) -> str:
        infix = f".{self.instance}" if self.backend == "trace-cmd" else ""
        return f"trace.dat{infix}.cpu"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        values = json.loads(text)
        values["events"] = tuple(values["events"])
        values["command"] = tuple(values["command"])
        return cls(**values)


class Entry:
    """An entry that we hold the lock of."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    def write(self, plan: Plan, saved: dict[str, str], ours: dict[str, str] | None = None) -> None:
        """Before anything is changed; with what the kernel made of our values, afterwards too."""
        ours = plan.settings if ours is None else ours
        content = json.dumps({"plan": plan.to_json(), "saved": saved, "ours": ours}).encode()
        with DirectFile(self.path, is_new=False, size=0) as file:  # the one that we have locked
            file.append(content)

    def read(self) -> tuple[Plan, dict[str, str], dict[str, str]] | None:
        """The plan, what to write back, and what was set.

        None when its recorder was killed before it changed anything.
        """
        try:
            # Up to the zeros of a write that was not the last.
            content = json.loads(self.path.read_bytes().partition(b"\0")[0])
            plan = Plan.from_json(content["plan"])
            return plan, content["saved"], content.get("ours", plan.settings)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def remove(self) -> None:
        """All is as it was."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        os.close(self._lock)


def register_folder() -> Path:
    """For each user one."""
    if chosen := os.environ.get("WBSCOPE_RUN_DIR"):
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/run/wbscope")
    return Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}") / "wbscope"


def _trusted() -> Path:
    """The folder, which may not be there.  Raises: SetupError where others can write to it."""
    folder = register_folder()
    try:
        with HeldFolder(Path(os.path.realpath(folder))) as held:
            held.check_closed()
    except PermissionError as error:
        if error.errno == errno.EPERM:
            raise SetupError(
                "foreign-register",
                str(folder),
                f"{error.strerror}, wanted a folder that nobody but uid {os.geteuid()} can write"
                " to: it says what is put back after a recorder that was killed",
                effect="nothing was read from it or written to it",
                fix=_FIX,
            ) from error
    except OSError:
        pass  # it is not there: whoever writes to it says so
    return folder


def registered() -> set[str]:
    """Instances that have an entry, dead or alive.  Raises: SetupError."""
    return {path.stem for path in _trusted().glob(f"*{_SUFFIX}")}


def open_entry(instance: str) -> Entry:
    """A new entry, locked.  Raises: SetupError where there can be none."""
    folder = register_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _locked(_trusted() / f"{instance}{_SUFFIX}")
    except OSError as error:
        raise SetupError(
            "cannot-write", str(folder), f"cannot be written: {error.strerror or error}",
            fix=_FIX,
        ) from error  # fmt: skip


def _locked(path: Path) -> Entry:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Before it was locked, somebody may have taken it for that of a dead recorder.
        if path.exists() and os.path.samestat(os.fstat(lock), os.stat(path)):
            return Entry(path, lock)
        os.close(lock)


def lock_sysctls() -> int:
    """A file that is locked until it is closed, or its process ends.

    Two recordings at a time must not change sysctls: the second would take what the first
    has set for what was there before.  Raises: SetupError when another one does.
    """
    path = _trusted() / "sysctls.lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise SetupError(
            "sysctls-in-use",
            Phrase(Argument("sysctl")),
            "another recording has changed sysctls for its time",
            fix=Phrase("wait until it has ended, or leave out ", Argument("sysctl")),
        ) from error
    return lock


def dead_entries(only: str | None = None) -> Iterator[Entry]:
    """Entries of recorders that were killed, now locked by us; `only` is an instance.

    Raises: SetupError where others can write to the register.
    """
    folder = _trusted()
    try:
        paths = sorted(folder.glob(f"{only or '*'}{_SUFFIX}"))
    except OSError:
        return
    for path in paths:
        try:
            lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = os.fstat(lock)
            if found.st_uid == os.geteuid() and os.path.samestat(found, os.lstat(path)):
                yield Entry(path, lock)
                continue
        except OSError:
            pass
        os.close(lock)
