# SPDX-License-Identifier: Apache-2.0
"""Where the files of measurements are: in a run folder, or in the database made from it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wbscope.base.errors import InputError, QueryError
from wbscope.measure.bad import MOST_BYTES, shown
from wbscope.measure.fio import FIO_FIX
from wbscope.run.run import Run

__all__ = ["NAMES", "Files", "files_of_folder", "files_of_run", "read_text"]

_FIO = "fio.json"
_SAMPLES = "vmstat.samples"
_TEXTS = (
    "perf-stat.txt",
    "perf-stat.json",
    "time.txt",
    "ops.txt",
    "vmstat.txt",
    _SAMPLES,
)
_PAIR = ("vmstat.before", "vmstat.after")
NAMES = (_FIO, *_TEXTS, *_PAIR)
# Beside a trace only: alone it could be anybody's.
_META = "meta.json"

_ANY = object
# Documents of fio have 7 levels.
_DEEPEST = 100

# As json_tree() of SQLite writes the way to a value: .name, ."any name", [index].
_STEP = re.compile(r'\.(?:"((?:[^"\\]|\\.)*)"|([^.\["]+))|\[([0-9]+)\]')


@dataclass(frozen=True)
class Files:
    """What was found; a text has its file's name, `fio` is fio's document when it is parsed.

    `counters` has the readings of /proc/vmstat by file name, `shown` is the run.
    """

    shown: str
    texts: Mapping[str, str] = field(default_factory=dict)
    fio: Any = None
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def subject(self, name: str) -> str:
        """The file as errors name it."""
        return f"{self.shown}/{name}"


def files_of_folder(folder: Path) -> Files:
    """The files themselves.

    Raises: InputError when one cannot be read, is not text or is too large.
    """
    texts = {name: read_text(folder / name) for name in (*NAMES, _META) if (folder / name).exists()}
    return Files(str(folder), texts)


def files_of_run(run: Run) -> Files:
    """What wbscope-ingest kept of them in the run's database.

    Raises: InputError when it could not read one of them.
    """
    quoted = ", ".join(f"'{name}'" for name in (*NAMES, _META))
    find = f"SELECT name, status, message FROM sidecar_file WHERE name IN ({quoted}) ORDER BY name"
    for name, status, message in _rows(run, find, str, str, _ANY):
        if status != "loaded":
            raise InputError(
                "bad-measurement",
                f"{run.name}/{name}",
                f"was not read whole: {message}",
                effect="nothing of this file was used",
                fix=FIO_FIX if name == _FIO else "record the run again, or take the file out",
            )
    find = f"SELECT name, text FROM sidecar_text WHERE name IN ({quoted}) ORDER BY name"
    texts: dict[str, str] = dict(_rows(run, find, str, str))
    # A database keeps texts of up to 1 MiB only.
    folder = Path(run.name)
    more = (name for name in _TEXTS if name not in texts and (folder / name).is_file())
    texts |= {name: read_text(folder / name) for name in more}
    counters: dict[str, dict[str, int]] = {}
    find = "SELECT sample, name, value FROM sidecar_vmstat WHERE sample <> 'sampled' ORDER BY 1, 2"
    for sample, name, value in _rows(run, find, str, str, int):
        counters.setdefault(f"vmstat.{sample}", {})[name] = value
    # With nothing between the first and the last sample there is no series.
    find = """
        SELECT ts, name, max(value) FROM sidecar_vmstat
        WHERE ts IS NOT NULL AND EXISTS (SELECT 1 FROM sidecar_vmstat WHERE sample = 'sampled')
        GROUP BY ts, name ORDER BY ts, min(rowid)
    """
    sampled = _rows(run, find, int, str, int)
    if sampled and _SAMPLES not in texts:
        texts[_SAMPLES] = _samples(sampled)
    find = "SELECT path, value FROM sidecar_fio ORDER BY rowid"
    rows = _rows(run, find, str, _ANY)
    return Files(run.name, texts, _document(rows, run.name) if rows else None, counters)


def _rows(run: Run, statement: str, *kinds: type) -> list[tuple[Any, ...]]:
    """What our own statement finds, of the types that wbscope-ingest writes."""
    try:
        rows = run.sql(statement).rows
    except QueryError as error:
        if error.slug == "time-limit":
            raise
        raise _damaged(run.name, error.message) from error
    for row in rows:
        for cell, kind in zip(row, kinds, strict=True):
            if not isinstance(cell, kind):
                raise _damaged(run.name, f"found {shown(str(cell))}, wanted {kind.__name__}")
    return rows


def _damaged(subject: str, message: str) -> InputError:
    return InputError(
        "damaged-database",
        subject,
        f"its tables of the files beside the trace cannot be read: {message}",
        fix="wbscope ingest TRACE.dat -o RUN.db --force",
    )


def _samples(rows: list[tuple[int, str, int]]) -> str:
    """The rows of a database as the lines of the file."""
    lines = []
    last = None
    for ts, name, value in rows:
        if ts != last:
            lines.append(f"# ts={ts}")
            last = ts
        lines.append(f"{name} {value}")
    return "\n".join(lines) + "\n"


def read_text(path: Path) -> str:
    """The text of a file of measurements.

    Raises: InputError when it cannot be read, is not text or is too large.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise InputError(
                "too-large",
                str(path),
                f"has more than {MOST_BYTES} bytes, wanted a file of one run",
                fix=f"head -c 300 {shlex.quote(str(path))}",
            )
        return data.decode("utf-8")
    except OSError as error:
        raise InputError(
            "cannot-read",
            str(path),
            f"cannot be read: {error.strerror}",
            fix=f"ls -l {shlex.quote(str(path))}",
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            "bad-measurement",
            str(path),
            f"is not UTF-8 text: found byte 0x{data[error.start]:02x}",
            at=f"file offset {error.start}",
            effect="nothing of this file was used",
            fix=f"file {shlex.quote(str(path))}",
        ) from error


def _document(rows: list[tuple[Any, ...]], subject: str) -> Any:
    """The JSON document again, from the ways to its values."""
    root: dict[str | int, Any] = {}
    for path, value in rows:
        steps = [_step(match) for match in _STEP.finditer(path)]
        inside = root
        for step in steps[:-1]:
            inside = inside.setdefault(step, {})
            if not isinstance(inside, dict):
                raise _damaged(subject, f"{shown(path)} is below a value")
        if len(steps) > _DEEPEST:
            raise _damaged(subject, f"{shown(path)} has {len(steps)} steps")
        if steps:
            inside[steps[-1]] = value
    return _lists(root)


def _step(match: re.Match[str]) -> str | int:
    quoted, plain, index = match.groups()
    if index is not None:
        return int(index)
    return re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else plain


def _lists(value: Any) -> Any:
    """Objects whose keys are indexes were lists."""
    if not isinstance(value, dict):
        return value
    if value and all(isinstance(key, int) for key in value):
        return [_lists(value[key]) for key in sorted(value)]
    return {str(key): _lists(inside) for key, inside in value.items()}
