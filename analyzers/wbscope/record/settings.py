# SPDX-License-Identifier: Apache-2.0
"""Sysctls for the time of a recording, and small files that grow meanwhile.

Who has something to tell never waits for a disk: it stays in memory up to a limit until it is
written.  What could not be written is tried again with what comes next.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from wbscope.base.errors import Argument, Phrase, SetupError, UsageError, nearest
from wbscope.record.register import DirectFile
from wbscope.record.what import WHAT

PROC_SYS = Path("/proc/sys")
_PAIRS: dict[str, str] = WHAT["sysctls"]["pairs"]
_PARTNERS = _PAIRS | {ratio: size for size, ratio in _PAIRS.items()}
_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)+", re.ASCII)
_SUFFIXES = {"": 0, "K": 10, "M": 20, "G": 30}


def parse_settings(texts: Iterable[str], root: Path = PROC_SYS) -> dict[str, str]:
    """As split_settings(), of this kernel.

    Raises: UsageError for what is no sysctl of it, or no setting.
    """
    texts = list(texts)
    settings = split_settings(texts)
    typed = {text.partition("=")[0]: text for text in texts}
    for name, value in settings.items():
        if not _is_sysctl(name, root):
            raise _no_sysctl(typed[name], "is no NAME=VALUE of a sysctl that this kernel has")
        if not _can_be_put_back(_file(name, root)):
            raise _no_setting(name, value)
    return settings


def split_settings(texts: Iterable[str]) -> dict[str, str]:
    """'vm.dirty_bytes=16M' -> name, value; K, M and G are powers of 2.

    Raises: UsageError for what is no NAME=VALUE, or does something once.
    """
    settings = {}
    for text in texts:
        match = re.fullmatch(r"([^=]+)=(\S(?:.*\S)?)", text)
        if match is None or not is_sysctl_name(match[1]):
            raise _no_sysctl(text, "is no NAME=VALUE of a sysctl")
        if match[1] in WHAT["sysctls"]["actions"]:
            raise _no_setting(match[1], match[2])
        number = re.fullmatch(r"(\d+)([KMG])", match[2])
        settings[match[1]] = str(int(number[1]) << _SUFFIXES[number[2]]) if number else match[2]
    return settings


def is_sysctl_name(name: str) -> bool:
    """Whether it can be one: of parts that have dots between them, and no way out of /proc/sys."""
    return _NAME.fullmatch(name) is not None


def _is_sysctl(name: str, root: Path) -> bool:
    path = _file(name, root)
    return path.is_file() and path.resolve().is_relative_to(root.resolve())


def _no_sysctl(text: str, why: str) -> UsageError:
    """With the name that was meant, and the value as it was typed."""
    name, _, value = (part.strip() for part in text.partition("="))
    name = name.replace("/", ".")  # sysctl(8) takes both
    near = nearest(name, _names(), most=1)
    fix: str = f"ls {PROC_SYS}/vm"
    if near and value:
        fix = Phrase(Argument("sysctl", f"{near[0]}={value}"))
    elif near:
        fix = f"cat {_file(near[0])}    # the value that it has"
    return UsageError("no-such-sysctl", Phrase(Argument("sysctl", text)), why, fix=fix)


def _names() -> list[str]:
    """Of the sysctls of this kernel."""
    found = (path.relative_to(PROC_SYS) for path in sorted(PROC_SYS.rglob("*")) if path.is_file())
    return [".".join(path.parts) for path in found]


def _no_setting(name: str, value: str) -> UsageError:
    return UsageError(
        "not-a-setting",
        Phrase(Argument("sysctl", f"{name}={value}")),
        "does something once, or cannot be read: there is no value to put back",
        fix=f"set it in the command: sh -c 'echo {value} > {_file(name)}; ...'",
    )


def _can_be_put_back(path: Path) -> bool:
    try:
        path.read_text()
    except PermissionError:
        # Nobody may read what has no such bit; root is told so like anyone else.
        return bool(path.stat().st_mode & 0o444)
    except OSError:
        return False
    return True


def saved_values(names: Iterable[str], root: Path = PROC_SYS) -> dict[str, str]:
    """What to write to have everything back as it is now."""
    saved = {}
    for name in names:
        partner = _PARTNERS.get(name)
        value = _read(name, root)
        if partner is not None and value == "0":
            name, value = partner, _read(partner, root)
        saved[name] = value
    return saved


def change(settings: Mapping[str, str], root: Path = PROC_SYS) -> None:
    """Raises: SetupError when the kernel refuses one; those before it stay changed."""
    for name, value in settings.items():
        try:
            _file(name, root).write_text(value)
        except OSError as error:
            raise SetupError(
                "sysctl-refused",
                name,
                f"does not take {value}: {error.strerror}",
                have=_read(name, root) if _file(name, root).exists() else None,
                fix="run as root with a value that the kernel allows",
            ) from error


def read_back(settings: Mapping[str, str]) -> dict[str, str]:
    """What the kernel says of the values that it was given."""
    return {name: _read(name) for name in settings}


def still_ours(
    saved: Mapping[str, str], ours: Mapping[str, str], root: Path = PROC_SYS
) -> dict[str, str]:
    """Of what is to be written back, that of which nobody has set another value since."""
    kept = {}
    for name, value in ours.items():
        back = name if name in saved else _PARTNERS.get(name, name)
        try:
            if back in saved and _file(name, root).read_text().split() == value.split():
                kept[back] = saved[back]
        except OSError:
            continue
    return kept


def restore(saved: Mapping[str, str], root: Path = PROC_SYS) -> list[str]:
    """Write back; returns the names that are not as they were."""
    wrong = []
    for name, value in saved.items():
        try:
            if name in _PARTNERS:
                is_back = _restore_of_pair(name, value, root)
            else:
                is_back = True
                if _read(name, root) != value:
                    _file(name, root).write_text(value)
        except OSError:
            is_back = False
        if not is_back:
            wrong.append(name)
    return wrong


def _restore_of_pair(name: str, value: str, root: Path) -> bool:
    """Whether it has the value and its partner none: both may read 0, and then both are 0.

    The kernel clears the partner when it is given a value, of some only when that is another.
    """
    for each in () if _of_pair(name, root) == (value, "0") else (value, "1", value):
        _file(name, root).write_text(each)
        if _of_pair(name, root) == (value, "0"):
            break
    return _of_pair(name, root) == (value, "0")


def _of_pair(name: str, root: Path) -> tuple[str, str]:
    return _read(name, root), _read(_PARTNERS[name], root)


def read_sysctls() -> str:
    """'name = value' lines, as sysctl prints them, of what writeback and reclaim depend on."""
    lines = []
    for part in WHAT["sysctls"]["shown"]:
        top = PROC_SYS / part
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            try:
                value = path.read_text().strip() if path.is_file() else None
            except OSError:
                continue  # write-only, such as vm.compact_memory
            if value is not None:
                name = ".".join(path.relative_to(PROC_SYS).parts)
                lines.append(f"{name} = {' '.join(value.split())}\n")
    return "".join(lines)


def _read(name: str, root: Path = PROC_SYS) -> str:
    return _file(name, root).read_text().strip()


def _file(name: str, root: Path = PROC_SYS) -> Path:
    return root / name.replace(".", "/")


_MOST_BYTES = 32 << 20
# What comes soon after is written with it: a kill loses no more than this.
_GATHER_SECONDS = 0.25


class SmallFiles:
    """Files of one folder; written whole at finish().

    left_out  how often there was no room in memory
    """

    def __init__(self, folder: Path) -> None:
        self.left_out = 0
        self._folder = folder
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._ended = threading.Event()
        self._texts: dict[str, list[bytes]] = {}
        self._bytes = 0
        self._calls: dict[str, Callable[[], None]] = {}
        self._files: dict[str, DirectFile] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def create(self, name: str) -> None:
        """Before start(), to know whether it can be written.  Raises: OSError."""
        self._files[name] = DirectFile(self._folder / name, is_new=False)

    def append(self, name: str, text: str) -> bool:
        """From any thread.  False: there was no room in memory, and it is left out."""
        data = text.encode(errors="surrogateescape")
        with self._lock:
            if self._bytes + len(data) > _MOST_BYTES:
                self.left_out += 1
                return False
            self._bytes += len(data)
            self._texts.setdefault(name, []).append(data)
        self._woken.set()
        return True

    def put(self, name: str, write: Callable[[], None]) -> None:
        """To be called in the thread that writes; a later one of this name stands for it."""
        with self._lock:
            self._calls[name] = write
        self._woken.set()

    def finish(self) -> None:
        """Everything is written, or there is no room for it."""
        self._ended.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._write()
        for name, file in self._files.items():
            with contextlib.suppress(OSError):
                file.close()
                if file.size == 0:
                    (self._folder / name).unlink()
        self._files.clear()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._woken.wait()
            self._woken.clear()
            self._ended.wait(_GATHER_SECONDS)
            self._write()

    def _write(self) -> None:
        with self._lock:
            texts, self._texts = self._texts, {}
            calls, self._calls = self._calls, {}
        for name, parts in texts.items():
            data = b"".join(parts)
            try:
                if name not in self._files:
                    self._files[name] = DirectFile(self._folder / name, is_new=False)
                self._files[name].append(data)
            except OSError:  # a disk that is full: the trace matters more
                with self._lock:
                    self._texts[name] = [data, *self._texts.get(name, ())]
                continue
            with self._lock:
                self._bytes -= len(data)
        for name, write in calls.items():
            try:
                write()
            except OSError:
                with self._lock:
                    self._calls.setdefault(name, write)
