# SPDX-License-Identifier: Apache-2.0
"""What the user calls a run: which file in it is the trace, and who reads it."""

from __future__ import annotations

import errno
import gzip
import os
import re
import shlex
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from wbscope.base.errors import InputError, SetupError, UsageError, WbscopeError
from wbscope.base.held_folder import PACKED_NAMES, PERFETTO_NAMES, TEXT_NAME, TRACE_NAME
from wbscope.base.result import Notice
from wbscope.base.system import file_word
from wbscope.source.plain_files import (
    START_BYTES,
    check_folder,
    foreign,
    is_packets,
    no_such_file,
    open_plain,
    packing,
    report_of,
    runs_among,
)

STDIN = "-"
DATABASE_NAME = "run.db"

# What other programs measured: two such folders can be compared without a trace.
_MEASURED = (
    "fio.json",
    "perf-stat.txt",
    "perf-stat.json",
    "time.txt",
    "ops.txt",
    "vmstat.txt",
    "vmstat.samples",
    "vmstat.before",
    "vmstat.after",
)
# What may lie in a run folder but is no part of what was recorded.
_OUTPUT_SUFFIXES = (".csv", ".db", ".md", ".parquet", ".pftrace")

_KNOWN_NAMES = frozenset((TRACE_NAME, TEXT_NAME, *PERFETTO_NAMES, *PACKED_NAMES))
_PACKED_ENDS = (".gz", ".xz", ".zst", ".bz2", ".zip", ".tar", ".tgz")

_READABLE = "name a trace or a run folder that you can read"
_OF_A_SHELL = re.compile(r"/(?:dev|proc/[^/]+)/fd/\d+")
_SQLITE_MAGIC = b"SQLite format 3\0"
_TRACE_MAGIC = b"\x17\x08\x44tracing"


class Kind(Enum):
    """Who reads it."""

    DATABASE = "a run database"
    PERFETTO = "a Perfetto trace"
    TRACE = "a trace.dat or ftrace text: the ingester tells which"
    PACKED = "an archive, or compressed: it is unpacked while it is read"


@dataclass(frozen=True)
class Source:
    """A run that is there; its content has been looked at, not read.

    `digest` is of what was read but once, such as stdin; `hidden` has the places that only this
    command knows, each with what the user calls it.
    """

    path: Path  # as the user named it
    trace: Path  # the file that is read
    kind: Kind
    folder: Path | None = None  # the run folder, None for a lone file
    digest: str = ""
    hidden: tuple[tuple[str, str], ...] = ()

    @property
    def given(self) -> Path:
        """What the ingester reads: the folder, for the files beside the trace, or the trace."""
        return self.folder or self.trace

    @property
    def name(self) -> str:
        """A short name for what is made of it: without the ends that tell what a file is."""
        if str(self.path) == STDIN:
            return "stdin"
        path = self.path.resolve()
        if path.is_dir():
            return path.name
        while path.suffix in _PACKED_ENDS:
            path = path.with_suffix("")
        return path.stem

    def has_formats(self) -> bool:
        """A trace.dat holds the event formats of its kernel, text does not."""
        with open(self.trace, "rb", opener=open_plain) as file:
            return file.read(len(_TRACE_MAGIC)) == _TRACE_MAGIC

    def inputs(self) -> list[Path]:
        """Every file that the database is made from."""
        if self.folder is None:
            return [self.trace]
        others = (
            path
            for path in self.folder.iterdir()
            if path.is_file() and path != self.trace and path.suffix not in _OUTPUT_SUFFIXES
        )
        return [self.trace, *sorted(others)]

    def marks(self) -> tuple[list[Path], list[str]]:
        """Files and words that change when anything does that the database is made from."""
        return ([], [self.digest]) if self.digest else (self.inputs(), [])

    @contextmanager
    def at_hand(self, *, limited: bool = True) -> Iterator[Source]:
        """The same run in plain files, as long as it is needed; errors name it as the user does.

        `limited` refuses what grows beyond any trace when it is unpacked.

        Raises: InputError for an archive that holds no run, or more than one.
        """
        try:
            if self.kind is Kind.PACKED:
                with _unpacked(self, limited) as plain, plain.at_hand() as at_hand:
                    yield at_hand
            else:
                yield self
        except WbscopeError as error:
            for private, shown in self.hidden:
                error = error.with_path(private, shown)
            raise error from None

    def shown(self, notices: Iterable[Notice]) -> list[Notice]:
        """The same notices, naming files as the user does."""
        return [replace(notice, message=self._shown(notice.message)) for notice in notices]

    def _shown(self, text: str) -> str:
        for private, shown in self.hidden:
            text = text.replace(private, shown) if private in text else text
        return text


def find_source(text: str) -> Source:
    """The run that the user named; `-` is stdin, which is read to its end.

    Raises: UsageError, InputError, SetupError when there is none, or when what is read in a
    folder is no regular file of it.
    """
    if text == STDIN:
        # Only here: it is seldom asked for.
        from wbscope.source.stdin import read_stdin

        piped = read_stdin()
        kind = _kind(piped.path, STDIN)
        hidden = ((str(piped.path), STDIN),)
        return Source(Path(STDIN), piped.path, kind, digest=piped.digest, hidden=hidden)
    path = Path(text)
    mode = _mode(path, text)
    if stat.S_ISDIR(mode):
        trace = _trace_in_folder(path, text)
        if os.path.isdir(trace):
            raise _no_file(str(trace), stat.S_IFDIR)
        kind = Kind.TRACE if trace.name == TRACE_NAME else _kind(trace, str(trace))
        return Source(path, trace, kind, path)
    if not stat.S_ISREG(mode):
        raise _no_file(text, mode)
    if path.stat().st_size == 0:  # which files of tracefs and /proc say, whatever they hold
        from wbscope.source.stdin import read_unsized

        try:
            piped = read_unsized(path)
        except OSError as error:
            raise _unreadable(text, error) from error
        hidden = ((str(piped.path), text),)
        return Source(path, piped.path, _kind(piped.path, text), digest=piped.digest, hidden=hidden)
    return Source(path, path, _kind(path, text))


def _mode(path: Path, text: str) -> int:
    if not text:
        raise UsageError("no-run", "RUN", "is empty, wanted a file or folder name")
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise no_such_file(text, _may_be_run) from error
    except (OSError, ValueError) as error:
        raise _unreadable(text, error) from error


def _no_file(text: str, mode: int) -> InputError:
    """For a pipe with the command that reads it: whatever it has, it is read as stdin is."""
    if stat.S_ISDIR(mode):
        told = "is a folder, wanted a trace of that name in the run folder"
        return InputError("not-a-run", text, told, fix=_READABLE)
    told = "is no regular file and no folder; what ends by itself, save it to a file first"
    fix = None
    if stat.S_ISFIFO(mode):
        fix = f"wbscope report - < {shlex.quote(text)}    # if it ends by itself"
        if _OF_A_SHELL.match(text):  # as of <(COMMAND): it is gone when the shell has gone on
            told = "is a pipe of the shell, which is read as stdin only"
            fix = "COMMAND | wbscope report -"
    return InputError("not-a-run", text, told, fix=fix)


def _trace_in_folder(path: Path, text: str) -> Path:
    """trace.dat, else the only Perfetto trace, else trace.txt."""
    try:
        check_folder(path)
        names = sorted(entry.name for entry in path.iterdir())
    except OSError as error:
        raise _unreadable(text, error) from error
    if TRACE_NAME in names:
        return path / TRACE_NAME
    perfetto = [name for name in PERFETTO_NAMES if name in names]
    if len(perfetto) > 1:
        raise InputError(
            "two-traces",
            text,
            f"has {len(perfetto)} traces, wanted one",
            have=", ".join(perfetto),
            fix=report_of(path / perfetto[0]),
        )
    if perfetto or TEXT_NAME in names:
        return path / (perfetto[0] if perfetto else TEXT_NAME)
    if packed := [name for name in PACKED_NAMES if name in names]:
        return path / packed[0]
    told = f"is a folder without {TRACE_NAME}, {PERFETTO_NAMES[0]} or {TEXT_NAME}"
    if DATABASE_NAME in names:
        fix = report_of(path / DATABASE_NAME)
    elif any(name.startswith(f"{TRACE_NAME}.cpu") for name in names):
        # A recorder that was killed; only the kernel that it ran on can tell the formats.
        formats, trace = (shlex.quote(str(path / name)) for name in ("formats.dat", TRACE_NAME))
        fix = (
            f"on that machine, before it boots again: trace-cmd restore -c -o {formats}"
            f" && trace-cmd restore -i {formats} -o {trace} {trace}.cpu*"
        )
    elif runs := runs_among(path, names, _may_be_run):
        told += "; a run is in it" if len(runs) == 1 else f"; {len(runs)} runs are in it"
        names, fix = runs, report_of(path / runs[0])
    elif not set(names).isdisjoint(_MEASURED):
        told += ", with counters only, which compare and gate read"
        fix = f"wbscope compare {shlex.quote(file_word(path))} --against RUN..."
    else:
        fix = f"trace-cmd record -e writeback -o {shlex.quote(str(path / TRACE_NAME))} COMMAND"
    raise InputError(
        "no-trace", text, told, have=", ".join(names[:8]) or "an empty folder", fix=fix
    )


def _may_be_run(path: Path) -> bool:
    """A folder with a trace or a database, or such a file: a look at names and first bytes."""
    try:
        if path.is_dir():
            return any(entry.name in (*_KNOWN_NAMES, DATABASE_NAME) for entry in path.iterdir())
        # To look at a file of tracefs may take out of it what there is.
        if not path.is_file() or path.stat().st_size == 0:
            return False
        with open(path, "rb", opener=open_plain) as file:
            start = file.read(START_BYTES) or b""
        if start.startswith(_SQLITE_MAGIC):
            from wbscope.library.database import check_database

            check_database(path, str(path))
            return True
    except (OSError, WbscopeError):
        return False
    return start.startswith(_TRACE_MAGIC) or (bool(start) and is_packets(start))


def _kind(path: Path, text: str) -> Kind:
    """By content: suffixes lie."""
    try:
        # It may have become another file since it was looked at.
        with open(path, "rb", opener=open_plain) as file:
            start = file.read(START_BYTES) or b""
    except OSError as error:
        raise _unreadable(text, error) from error
    if not start:
        raise InputError(
            "not-a-run",
            text,
            "is an empty file",
            fix="trace-cmd record -e writeback -o trace.dat COMMAND",
        )
    if start.startswith(_SQLITE_MAGIC):
        return Kind.DATABASE
    if (found := foreign(start, shlex.quote(text))) is not None:
        raise InputError("not-a-run", text, found[0], fix=found[1])
    packed = packing(start)
    if packed is None:
        return Kind.PERFETTO if is_packets(start) else Kind.TRACE
    return Kind.PERFETTO if _is_packed_perfetto(path, packed) else Kind.PACKED


def _is_packed_perfetto(path: Path, packed: str) -> bool:
    """Trace processor unpacks these itself."""
    if packed == "zip":
        from wbscope.source.archives import has_perfetto

        return has_perfetto(path)
    if packed != "gzip":
        return False
    try:
        with gzip.open(path) as file:
            return is_packets(file.read(START_BYTES))
    except (OSError, EOFError, zlib.error):
        return False


@contextmanager
def _unpacked(source: Source, limited: bool) -> Iterator[Source]:
    """A packed run, unpacked; one in a folder has the files of the folder beside it."""
    # Only here: most runs are not packed.
    from wbscope.source.archives import unpacked

    text = str(source.path)
    subject = str(source.trace) if source.folder else text
    with unpacked(source.trace, subject, limited=limited) as folder:
        hidden = [(f"{folder}/", f"{text}/" if source.folder else f"{text}:"), (str(folder), text)]
        try:
            inside = _run_inside(folder, subject)
        except WbscopeError as error:
            for private, shown in hidden:
                error = error.with_path(private, shown)
            raise error from None
        if inside.kind is Kind.PACKED:
            raise InputError(
                "nested-archive",
                f"{text}:{inside.trace.relative_to(folder)}",
                "is packed once more, wanted a trace or a run folder",
                effect="nothing of it was used",
                fix=f"unpack {shlex.quote(text)} yourself, and name what is in it",
            )
        if len(list(folder.iterdir())) == 1:
            hidden.insert(0, (str(inside.trace), subject))  # there is nothing else it could be
        if source.folder is not None:
            check_folder(source.folder)
            for path in source.inputs()[1:]:
                shutil.copyfile(path, folder / path.name)
            inside = replace(inside, folder=folder)
        yield replace(inside, path=source.path, hidden=(*hidden, *source.hidden))


def _run_inside(folder: Path, text: str) -> Source:
    """What was unpacked as a run: a run folder, or a lone file.

    Raises: InputError.
    """
    entries = sorted(folder.iterdir())
    if len(entries) == 1 and entries[0].is_file() and entries[0].name not in _KNOWN_NAMES:
        return find_source(str(entries[0]))
    try:
        return find_source(str(folder))
    except InputError as error:
        if error.slug != "no-trace":
            raise
        if (folder / DATABASE_NAME).is_file():
            return find_source(str(folder / DATABASE_NAME))
        runs = [path.name for path in entries if _is_run(path)]
        if not runs:
            raise
        raise InputError(
            "several-runs",
            text,
            f"holds {len(runs)} runs, wanted one" if len(runs) > 1 else "holds a run and more",
            have=", ".join(runs[:8]),
            fix="unpack it, and name one of them; compare and gate take all in it as one side",
        ) from error


def _is_run(path: Path) -> bool:
    try:
        source = find_source(str(path))
    except WbscopeError:
        return False
    # Any file may be a text: of those only what is called so, in a folder of its own, is a run.
    return source.folder is not None or source.kind is not Kind.TRACE or source.has_formats()


def _unreadable(text: str, error: Exception) -> WbscopeError:
    """As the ingester has it."""
    reason = getattr(error, "strerror", None) or str(error)
    if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        return SetupError(
            "cannot-open",
            text,
            f"cannot be opened: {reason}",
            fix="close other programs or raise the limit (ulimit -n)",
        )
    return InputError(
        "cannot-read",
        text,
        f"cannot be read: {reason}",
        fix=_READABLE,
    )
