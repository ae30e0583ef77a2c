# SPDX-License-Identifier: Apache-2.0
"""A file that is given by itself: whose it is, by its content, and the runs in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from wbscope.base.errors import UsageError
from wbscope.measure.csvruns import header_kind, parse_csv
from wbscope.measure.filerun import FileRun, FileRuns, repetitions
from wbscope.measure.files import read_text
from wbscope.measure.fio import fio_document, parse_fio
from wbscope.measure.gnutime import time_reports
from wbscope.measure.hyperfine import parse_hyperfine
from wbscope.measure.mmtests import is_mmtests, parse_mmtests
from wbscope.measure.ops import is_ops, ops_runs
from wbscope.measure.perfcsv import is_perf_csv
from wbscope.measure.perfstat import perf_results
from wbscope.measure.procps import parse_procps
from wbscope.measure.textreport import is_text_report, parse_text_report, unquoted
from wbscope.run.strange import first_bytes

__all__ = ["is_measurements", "parse_measurements", "read_measurements", "runs_of_part"]

# Enough to tell whose a file is; what a command printed itself may go before.
_START_BYTES = 1 << 20
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_TRACE = ("# tracer:", "\x17\x08Dtracing", "version = ")
_FIX = "give a file of one test: docs/measurements.md has an example of each"

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
        raise UsageError("not-measurements", subject, "is of no tool that is known", fix=_FIX)
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
    return _one(repetitions(perf_results(text, subject), subject, _FIX))


def _time_reports(text: str, subject: str) -> FileRuns:
    return _one(repetitions(time_reports(text, subject), subject, _FIX))


def _procps(text: str, subject: str) -> FileRuns:
    return _one((FileRun("1", parse_procps(text, subject)),))


def _ops(text: str, subject: str) -> FileRuns:
    return _one(ops_runs(text, subject))
