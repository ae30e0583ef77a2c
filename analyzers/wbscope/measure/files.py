# SPDX-License-Identifier: Apache-2.0
"""Files of measurements: recognised by their content, collected, read by who knows them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wbscope.base.errors import InputError, QueryError, UsageError
from wbscope.base.result import Notice
from wbscope.base.units import unit_of_text
from wbscope.measure.document import MOST_BYTES, bad, scaled, shown
from wbscope.measure.fio import FIO_FIX, fio_document, parse_fio
from wbscope.measure.metric import FileRun, FileRuns, Scalars, known, metric, repetitions
from wbscope.measure.perf import is_perf_csv, parse_perf_stat, perf_results
from wbscope.measure.reports import (
    is_mmtests,
    is_text_report,
    parse_hyperfine,
    parse_mmtests,
    parse_text_report,
    unquoted,
)
from wbscope.measure.tables import (
    header_kind,
    is_ops,
    most_repeated,
    ops_runs,
    parse_csv,
    parse_ops,
)
from wbscope.measure.time import parse_time, time_reports
from wbscope.measure.vmstat import (
    parse_procps,
    parse_samples,
    parse_vmstat,
    vmstat_gains,
    vmstat_levels,
)
from wbscope.run.run import Run
from wbscope.source.plain_files import first_bytes

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


_FIX = "record the run again: wbscope record -o RUN -- COMMAND"
_SCHEMA = "wbscope.record/"
_SECONDS = unit_of_text("s")[1]

# Key of meta.json -> name of the metric, and the unit of the key in the metric's.
_KEYS = {
    "command_duration_ns": ("duration", 1.0),
    "command_user_s": ("user", _SECONDS),
    "command_system_s": ("sys", _SECONDS),
    "command_max_rss_bytes": ("max_rss", 1.0),
    "command_major_faults_count": ("major_faults", 1.0),
    "command_minor_faults_count": ("minor_faults", 1.0),
    "sync_duration_ns": ("sync", 1.0),
}


def parse_command(text: str, subject: str = "meta.json") -> Scalars:
    """The metrics command.*; none for a run of no command and for anybody else's file.

    That a command failed is a warning of the run, which a gate refuses.
    Raises: InputError for what is no such file.
    """
    try:
        content: Any = json.loads(text)
    except RecursionError as error:
        raise bad(subject, "is nested too deeply to be read", _FIX) from error
    except ValueError as error:
        raise bad(subject, f"is no JSON: {error}", _FIX) from error
    scalars = Scalars()
    ours = isinstance(content, dict) and str(content.get("schema")).startswith(_SCHEMA)
    if not ours or not content.get("command"):
        return scalars
    for key, (name, scale) in _KEYS.items():
        value = content.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e30:
            raise bad(subject, f"{key}: found {value!r}, wanted a number of 0 or more", _FIX)
        entry = known("command", name)
        scalars.add(metric("command", name, entry, subject), scaled(value, scale))
    return scalars


_PARSERS = {
    "perf-stat.txt": parse_perf_stat,
    "perf-stat.json": parse_perf_stat,
    "time.txt": parse_time,
    "meta.json": parse_command,
    "ops.txt": parse_ops,
    "vmstat.txt": parse_procps,
}


@dataclass(frozen=True)
class Measured:
    """The numbers of a run's other files, and what to know about them."""

    scalars: Scalars
    warnings: tuple[Notice, ...] = ()


def measurements(files: Files) -> Measured:
    """Numbers of all files that are there; a run without any has none.

    Raises: InputError when a file is damaged, of another format, or says that the
    workload failed: a part of a run's numbers is no run.
    """
    scalars = Scalars()
    warnings: list[Notice] = []
    if "fio.json" in files.texts or files.fio is not None:
        subject = files.subject("fio.json")
        document = files.fio
        if document is None:
            document = fio_document(files.texts["fio.json"], subject)
        scalars.add_all(parse_fio(document, subject))
    for name, parse in _PARSERS.items():
        if name in files.texts:
            scalars.add_all(parse(files.texts[name], files.subject(name)))
    if "ops.txt" in files.texts:
        name, lines = most_repeated(files.texts["ops.txt"], files.subject("ops.txt"))
        if lines > 1:
            told = f"ops.txt has {lines} lines of {name}: the run counts once, with their mean;"
            own = f"to have each as a run, give the file itself: {files.subject('ops.txt')}"
            warnings.append(Notice("several-iterations", f"{told} {own}", files.shown))
    pair = _pair(files)
    if "vmstat.samples" in files.texts:
        subject = files.subject("vmstat.samples")
        samples = parse_samples(files.texts["vmstat.samples"], subject)
        scalars.add_all(vmstat_levels(samples, subject))
        if not pair and len(samples) > 1:
            pair = {"vmstat.before": samples[0][1], "vmstat.after": samples[-1][1]}
    if len(pair) == 2:
        scalars.add_all(vmstat_gains(pair[_PAIR[0]], pair[_PAIR[1]], files.subject("vmstat.*")))
    elif pair:
        (there,) = pair
        (missing,) = set(_PAIR) - set(pair)
        notice = f"has {there} without {missing}: what counters gained is not known"
        warnings.append(Notice("half-a-pair", notice, files.shown))
    return Measured(scalars, tuple(warnings))


def _pair(files: Files) -> dict[str, Mapping[str, int]]:
    """vmstat.before and vmstat.after, those that are there."""
    found: dict[str, Mapping[str, int]] = {}
    for name in _PAIR:
        if name in files.texts:
            found[name] = parse_vmstat(files.texts[name], files.subject(name))
        elif name in files.counters:
            found[name] = files.counters[name]
    return found


# Enough to tell whose a file is; what a command printed itself may go before.
_START_BYTES = 1 << 20
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_TRACE = ("# tracer:", "\x17\x08Dtracing", "version = ")
_CONTENT_FIX = "give a file of one test: docs/measurements.md has an example of each"

Parser = Callable[[str, str], FileRuns]


def is_measurements(path: Path) -> bool:
    """True for a file that parse_measurements() takes; what is not whole may still be refused."""
    data = first_bytes(path, _START_BYTES)
    if not data.strip() or _NOT_TEXT.search(data):
        return False
    return _parser(data.decode("utf-8", errors="ignore"), path.name) is not None


def read_measurements(path: Path) -> FileRuns:
    """The runs in a file.

    Raises: InputError when it cannot be read, or is not whole, or of another format.
    """
    return parse_measurements(read_text(path), str(path), path.name)


def parse_measurements(text: str, subject: str, name: str = "") -> FileRuns:
    """The runs in a text; the name of its file tells only what the text does not."""
    parser = _parser(text, name)
    if parser is None:
        raise UsageError(
            "not-measurements", subject, "is of no tool that is known", fix=_CONTENT_FIX
        )
    return parser(text, subject)


def runs_of_part(found: FileRuns, part: str | None, subject: str) -> tuple[FileRun, ...]:
    """The runs that are meant; a part may be named by what only its name has.

    Raises: UsageError when none or several are.
    """
    names = list(found.parts)
    if part is None:
        if found.whole is not None:
            return found.whole
        raise UsageError(
            "several-parts",
            subject,
            f"holds {len(names)} {found.part_is}, wanted one: name it behind #",
            have=", ".join(names[:12]),
            fix=f"'{subject}#{names[0]}'",
        )
    meant = [name for name in names if name == part] or [name for name in names if part in name]
    if len(meant) != 1:
        raise UsageError(
            "no-such-part",
            f"{subject}#{part}",
            f"means {len(meant)} of the {len(names)} {found.part_is}, wanted one",
            have=", ".join(names[:12]),
            fix=f"'{subject}#{(meant or names)[0]}'",
        )
    return found.parts[meant[0]]


def _parser(text: str, name: str) -> Parser | None:
    """By content; lines with more structure go before lines with less."""
    text = text.lstrip("\ufeff")
    if text.startswith(_TRACE):
        return None
    if '"fio version"' in text:
        return _fio
    start = text.lstrip()
    if start.startswith("{") and '"results"' in text and '"command"' in text:
        return parse_hyperfine
    lines = unquoted(text)
    first = next((line for line in lines if line.strip() and line[:1] != "#"), "")
    if is_perf_csv(text) or (first.startswith("{") and '"counter-value"' in first):
        return _perf
    if any(line.startswith("\tCommand being timed: ") for line in lines):
        return _time_reports
    if is_text_report(lines):
        return parse_text_report
    if re.search(r"^#\s+time\s+(?:\S+\s+)?counts unit", text, re.MULTILINE):
        return _perf  # -I, which it refuses
    if is_mmtests(lines):
        return parse_mmtests
    if re.match(r"(?:procs|-+procs-+) -+memory-+ ", first):
        return _procps
    if name == "ops.txt" or is_ops(text):
        return _ops
    return parse_csv if header_kind(first) is not None and _is_table(lines) else None


def _is_table(lines: list[str]) -> bool:
    """The line below the header has as many cells, and a number."""
    told = [line for line in lines if line.strip() and line[:1] != "#"]
    if len(told) < 2:
        return bool(told) and header_kind(told[0]) in ("long", "summary")
    delimiter = max(",;\t", key=told[0].count)
    alike = abs(told[1].count(delimiter) - told[0].count(delimiter)) <= 1
    return alike and (header_kind(told[0]) != "wide" or re.search("[0-9]", told[1]) is not None)


def _one(runs: tuple[FileRun, ...]) -> FileRuns:
    return FileRuns({"": runs}, runs)


def _fio(text: str, subject: str) -> FileRuns:
    return _one((FileRun("1", parse_fio(fio_document(text, subject), subject)),))


def _perf(text: str, subject: str) -> FileRuns:
    return _one(repetitions(perf_results(text, subject), subject, _CONTENT_FIX))


def _time_reports(text: str, subject: str) -> FileRuns:
    return _one(repetitions(time_reports(text, subject), subject, _CONTENT_FIX))


def _procps(text: str, subject: str) -> FileRuns:
    return _one((FileRun("1", parse_procps(text, subject)),))


def _ops(text: str, subject: str) -> FileRuns:
    return _one(ops_runs(text, subject))
