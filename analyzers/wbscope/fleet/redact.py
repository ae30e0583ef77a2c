# SPDX-License-Identifier: Apache-2.0
"""Names of tasks and paths as keyed hashes, in a run's database, before anything is asked of it.

All that a query or a finding can say is made of what the database holds, so nothing has to be
looked for in texts later. A name has one hash under one key, so runs can still be put together.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import shlex
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wbscope.base.errors import Argument, InputError, Phrase
from wbscope.base.outputs import free_name
from wbscope.library.database import translate

_LEAST_KEY_BYTES = 16
_KEY_BYTES = 32
_KEY_NAME = "names.key"
_DIGITS = 12  # with the mark, a name of 14 characters: a task's has at most 15
# Threads of the kernel, and those who record: views tell them apart by name.
_KEPT_NAMES = re.compile(
    r"<\.\.\.>|<idle>|swapper(/\d+)?|trace-cmd|wbscope|k(compactd|swapd)\d+"
    r"|(ksoftirqd|migration|cpuhp|idle_inject|rcuo[bps])/\d+"
    r"|kworker/(R|u?\d+:\d+H?)([-+][\w:.-]*)?|jbd2/[a-z0-9-]+|(flush|btrfs)-[a-z0-9:-]+"
    r"|xfs[a-z_-]*/[a-z0-9-]+|loop\d+|(ext4lazyinit|khugepaged|kthreadd|kauditd|kdevtmpfs|oom_reaper)"
)
_KEPT_PATHS = re.compile(r"/dev/[a-z]{1,8}\d*(n\d+)?(p\d+)?|/(proc|sys|sys/fs/cgroup)?")
_PATH = re.compile(r"(?<![\w./])/[^\s\"',;)]*")
_BDI = re.compile(r"\d{1,7}:\d{1,7}(-\w+)?|\(?unknown\)?")
_NUMBER = re.compile(r"[-+]?[\d.]+([eE][-+]?\d+)?[kmgtKMGT%]?[iI]?[bBsS]?")
_FIO_VERSION = re.compile(r"fio-[0-9.]{1,12}(-[0-9]{1,6}-g[0-9a-f]{5,40})?(-dirty)?")
# Texts of events that name nobody; flags of a request, why writeback ran.
_KEPT_COLUMNS = ("rwbs", "bdi")
_OF_TEXTS = {
    ("bdi", "mount"): "hashed_path",
    ("cgroup", "path"): "hashed_path",
    ("sidecar_ls_files", "name"): "hashed_path",
    ("sidecar_bdis", "device"): "hashed_place",
    ("sidecar_bdis", "mount"): "hashed_place",
    ("sidecar_mounts", "mount"): "hashed_place",
    ("sidecar_mounts", "source"): "hashed_place",
    ("sidecar_swaps", "path"): "hashed_place",
    ("sidecar_mounts", "options"): "hashed_paths_in",
    ("sidecar_sysctls", "value"): "hashed_paths_in",
    ("sidecar_fio", "value"): "hashed_result",
}
# What is known of these files is of the machine; others may say anything.
_KEPT_FILES = ("bdis", "devices", "mounts", "recorder_tasks", "stacks", "sysctls", "uname")
_PRIVATE = ("kernel.hostname", "kernel.domainname", "kernel.core_pattern")
_PRIVATE_SETTINGS = re.compile(rf"^({'|'.join(map(re.escape, _PRIVATE))})\b.*\n?", re.MULTILINE)
_KEPT_META = (
    "schema", "wbscope_version", "ended", "profile", "backend", "clock", "probe", "missing",
    "started_ts_ns", "written_unix_s",
)  # fmt: skip
_KEPT_MACHINE = (
    "hostname", "machine", "kernel_release", "cpus_count", "memory_bytes", "swap_bytes",
    "page_bytes", "hz", "boot_id",
)  # fmt: skip


@dataclass(frozen=True)
class Redaction:
    """A key. `id` tells two keys apart and says nothing of either."""

    key: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """What a dataset remembers of it."""
        return self._hash("key", "wbscope")

    def name(self, text: str) -> str:
        """A task's name; threads of the kernel keep theirs."""
        return text if _KEPT_NAMES.fullmatch(text) else f"t-{self._hash('name', text)}"

    def path(self, text: str) -> str:
        """Each folder of a path by itself, so that one below another stays below it."""
        if _KEPT_PATHS.fullmatch(text):
            return text
        parts = (part and f"p-{self._hash('path', part)}" for part in text.split("/"))
        return "/".join(parts)

    def text(self, text: str) -> str:
        """What may be anything: as a whole."""
        known = _BDI.fullmatch(text) or _NUMBER.fullmatch(text) or not text
        return text if known else f"x-{self._hash('text', text)}"

    def result(self, text: str) -> str:
        """Of fio.json: its version stays, without which nobody knows the units of the numbers."""
        return text if _FIO_VERSION.fullmatch(text) else self.text(text)

    def place(self, text: str) -> str:
        """A path, a device, or an export of a server."""
        head, slash, path = text.partition("/")
        return head + self.path(slash + path)

    def paths_in(self, text: str) -> str:
        """A text of a known form, with its paths hashed."""
        return _PATH.sub(lambda match: self.path(match[0]), text)

    def _hash(self, kind: str, text: str) -> str:
        told = f"{kind}:{text}".encode("utf-8", "surrogateescape")
        return hmac.new(self.key, told, hashlib.sha256).hexdigest()[:_DIGITS]


def read_key(path: Path) -> Redaction:
    """The key in a file, which stays with whoever may know the names.

    Raises: InputError.
    """
    try:
        with path.open("rb") as file:
            key = file.read(1 << 16)
    except OSError as error:
        told = f"cannot be read: {error.strerror or error}"
        raise InputError("cannot-read", str(path), told, fix=_new_key(path)) from error
    if len(key) < _LEAST_KEY_BYTES:
        told = (
            f"has {len(key)} bytes, wanted a key of {_LEAST_KEY_BYTES} or more: names are guessed"
        )
        raise InputError("short-key", str(path), told, fix=_new_key(path))
    return Redaction(key)


def _new_key(path: Path) -> str:
    """How to make one: under this name if nothing has it, else beside what the user has."""
    is_free = not os.path.lexists(path) and os.access(path.parent, os.W_OK)
    new = path if is_free else free_name(Path(_KEY_NAME))
    shown = shlex.quote(str(new))
    return Phrase(
        f"head -c {_KEY_BYTES} /dev/urandom > {shown} && chmod 600 {shown}    # then ",
        Argument("redact", str(new)),
    )


def redact_database(database: Path, redaction: Redaction) -> None:
    """Rewrite a database of ours, or a copy of somebody's, with no name of a task or path in it.

    Raises: InputError, SetupError.
    """
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        with contextlib.closing(connection):
            connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            for pragma in ("trusted_schema = OFF", "journal_mode = MEMORY", "synchronous = OFF"):
                connection.execute(f"PRAGMA {pragma}")
            _Redacting(connection, redaction).run()
    except sqlite3.Error as error:
        raise translate(error, "RUN") from error


@dataclass
class _Redacting:
    connection: sqlite3.Connection
    redaction: Redaction

    def run(self) -> None:
        """All of it or nothing."""
        run = self.connection.execute
        rule = self.redaction
        self._function("hashed_name", rule.name)
        self._function("hashed_path", rule.path)
        self._function("hashed_text", rule.text)
        self._function("hashed_result", rule.result)
        self._function("hashed_place", rule.place)
        self._function("hashed_paths_in", rule.paths_in)
        run("BEGIN")
        self._drop_what_runs()
        for table, columns in self._tables():
            for column in columns:
                if made := _function_of(table, column):
                    run(f'UPDATE "{table}" SET "{column}" = {made}("{column}")'
                        f" WHERE typeof(\"{column}\") IN ('text', 'blob')")  # fmt: skip
        if self._has("sidecar_text"):
            self._texts()
        if self._has("sidecar_sysctls"):
            for name in _PRIVATE:
                run("DELETE FROM sidecar_sysctls WHERE name = ?", (name,))
        if self._has("meta"):  # the name of a file
            run("UPDATE meta SET value = 'TRACE' WHERE key = 'source_name'")
        run("COMMIT")

    def _drop_what_runs(self) -> None:
        """Views show what is rewritten below them; triggers of a stranger never run."""
        find = "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view')"
        for kind, name in self.connection.execute(find).fetchall():
            quoted = name.replace('"', '""')
            self.connection.execute(f'DROP {kind} "{quoted}"')

    def _tables(self) -> Iterator[tuple[str, list[str]]]:
        """Tables that hold rows, each with the names of its columns."""
        find = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
        for (name,) in self.connection.execute(find).fetchall():
            if re.fullmatch(r"\w+", name):
                listed = self.connection.execute("SELECT name FROM pragma_table_info(?)", (name,))
                yield name, [column for (column,) in listed if re.fullmatch(r"\w+", column)]

    def _texts(self) -> None:
        run = self.connection.execute
        for name, text in run("SELECT name, text FROM sidecar_text").fetchall():
            made = self._text_of(name, text or "")
            if made is None:
                run("DELETE FROM sidecar_text WHERE name = ?", (name,))
            else:
                run("UPDATE sidecar_text SET text = ? WHERE name = ?", (made, name))

    def _text_of(self, name: str, text: str) -> str | None:
        if name == "meta.json":
            return _meta(text)
        if name == "session":
            return self.redaction.text(text.strip())
        if name in _KEPT_FILES:
            return self.redaction.paths_in(_PRIVATE_SETTINGS.sub("", text))
        return None

    def _has(self, table: str) -> bool:
        find = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
        return self.connection.execute(find, (table,)).fetchone() is not None

    def _function(self, name: str, change: Callable[[str], str]) -> None:
        known: dict[Any, str] = {}

        def changed(value: str | bytes) -> str:
            if value not in known:
                text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
                known[value] = change(text)
            return known[value]

        self.connection.create_function(name, 1, changed, deterministic=True)


def _function_of(table: str, column: str) -> str | None:
    """What rewrites a column; None for one that names nobody."""
    if column == "comm" or column.endswith("_comm"):
        return "hashed_name"
    if made := _OF_TEXTS.get((table, column)):
        return made
    if table == "guest":
        return "hashed_text"
    if table.startswith("ev_") and column not in _KEPT_COLUMNS:
        return "hashed_text"  # bdis and numbers stay
    return None


def _meta(text: str) -> str:
    """Of meta.json what is told of machine and recording; the command is somebody's."""
    try:
        meta = json.loads(text)
    except (ValueError, RecursionError):
        return "{}"
    if not isinstance(meta, dict):
        return "{}"
    kept = {key: meta[key] for key in _KEPT_META if key in meta}
    if isinstance(machine := meta.get("machine"), dict):
        kept["machine"] = {key: machine[key] for key in _KEPT_MACHINE if key in machine}
    if isinstance(lab := meta.get("lab"), dict) and isinstance(lab.get("session"), str):
        kept["lab"] = {"session": lab["session"]}
    return json.dumps(kept)
