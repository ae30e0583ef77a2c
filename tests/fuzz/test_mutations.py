# SPDX-License-Identifier: Apache-2.0
"""Damaged traces: an answer with a warning, or one clear error; never a crash, never a silent loss.

WBSCOPE_MUTANTS=20000 .venv/bin/pytest tests/fuzz/test_mutations.py    a longer run

Each test line names its base, its number and what was done, which the seed makes again.
"""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.cut import cut_trace
from support.mutate import Mutant, mutants, small_traces
from support.pfread import read_trace
from support.report import count_events, report_lines
from support.runs import REPOSITORY
from support.tools import ingester_path
from support.waits import GUARD_SECONDS

_SEED = 47
_MUTANTS = int(os.environ.get("WBSCOPE_MUTANTS", "2400"))
_EACH_CONVERTED = 5
_MEBIBYTES = 512
_EXAMPLES = sorted((REPOSITORY / "examples").glob("*/trace.dat"))
_BASES = [*(path.parent.name for path in _EXAMPLES), *small_traces()]
_ZLIB = ("v7-zlib", "v7-64k-pages")
# What says that something was lost or not understood (docs/schema.md, ingest_stats).
_TELLING = "SELECT name, value FROM ingest_stats WHERE severity <> 'info'"
_COUNTS = "SELECT event, count FROM event_counts ORDER BY event"


@dataclass
class Answer:
    """How one ingest ended, and what it found."""

    code: int
    said: list[dict[str, str]]
    mebibytes: float
    counts: list[tuple[str, int]] = field(default_factory=list)
    telling: dict[str, int] = field(default_factory=dict)


def _base(name: str) -> bytes:
    if name in small_traces():
        return small_traces()[name]
    return cut_trace(REPOSITORY / "examples" / name / "trace.dat")


def _ingest(data: bytes, folder: Path, what: str) -> Answer:
    """Ingest the bytes and check everything that must hold for any bytes."""
    folder.mkdir()
    source, database = folder / "trace.dat", folder / "run.db"
    source.write_bytes(data)
    with (folder / "said").open("w+b") as messages:
        process = subprocess.Popen(
            [ingester_path(), "sqlite", source, "-o", database, "--all", "--json-lines"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=messages,
            preexec_fn=_limit_time,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        messages.seek(0)
        lines = messages.read().decode().splitlines()
    said = [json.loads(line) for line in lines]
    said = [line for line in said if line["type"] != "progress"]
    answer = Answer(process.returncode, said, usage.ru_maxrss / 1024)
    assert answer.code in (0, 3), f"{what}: exit {answer.code}: {said}"
    assert answer.mebibytes < _MEBIBYTES, f"{what}: {answer.mebibytes} MiB"
    left = sorted(path.name for path in folder.iterdir())
    whole = ["run.db"] if answer.code == 0 else []
    assert left == [*whole, "said", "trace.dat"], f"{what}: {left}"
    if answer.code == 3:
        assert [line["type"] for line in said] == ["error"], f"{what}: {said}"
        assert all(said[0].get(part) for part in ("slug", "object", "message", "fix")), said
        return answer
    assert [line["type"] for line in said[:-1]] == ["warning"] * (len(said) - 1), f"{what}: {said}"
    assert said[-1]["type"] == "done", f"{what}: {said}"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)], what
        answer.counts = opened.execute(_COUNTS).fetchall()
        answer.telling = dict(opened.execute(_TELLING).fetchall())
    return answer


def _convert(folder: Path, code: int, counts: list[tuple[str, int]], what: str) -> None:
    """The same bytes for Perfetto: it ends as the ingest did, with as many events."""
    trace = folder / "x.pftrace"
    done = subprocess.run(
        [ingester_path(), "convert", folder / "trace.dat", "-o", trace, "--json-lines"],
        capture_output=True,
        preexec_fn=_limit_time,
        check=False,
    )
    lines = [json.loads(line) for line in done.stderr.decode().splitlines()]
    said = [line for line in lines if line["type"] != "progress"]
    assert done.returncode == code, f"{what}: exit {done.returncode}: {said}"
    assert trace.exists() == (code == 0), what
    if code == 3:
        assert [line["type"] for line in said] == ["error"], f"{what}: {said}"
        return
    assert said[-1]["type"] == "done", f"{what}: {said}"
    assert said[-1]["events_count"] == sum(count for _, count in counts), what
    written = Counter(record.name for record in read_trace(trace).records)
    slugs = {line.get("slug") for line in said}
    if not slugs & {"times-before-zero", "too-many-cpus"}:
        names: Counter[str] = Counter()
        for event, count in counts:
            names[event.partition(":")[2]] += count
        assert written == names, what


def _limit_time() -> None:
    """Of a processor: ends one that hangs; others take a fraction of a second."""
    most = round(GUARD_SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def _is_explained(mutant: Mutant, answer: Answer, whole: Answer) -> bool:
    """Nothing is missing; or it is told; or only contents were changed, which are data."""
    told = any(line["type"] == "warning" for line in answer.said)
    counted = any(value > whole.telling.get(name, 0) for name, value in answer.telling.items())
    return told or counted or mutant.only_contents or answer.counts == whole.counts


def _answers(name: str, count: int, folder: Path) -> Iterator[tuple[Mutant, Answer]]:
    def one(numbered: tuple[int, Mutant]) -> tuple[Mutant, Answer]:
        number, mutant = numbered
        place = folder / str(number)
        what = f"{name} {number}: {mutant.what}"
        answer = _ingest(mutant.data, place, what)
        if number % _EACH_CONVERTED == 0:
            _convert(place, answer.code, answer.counts, what)
        for path in place.iterdir():
            path.unlink()
        return mutant, answer

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(one, enumerate(mutants(_base(name), count, _SEED)))


@pytest.mark.parametrize("name", _BASES)
def test_mutants(name: str, tmp_path: Path) -> None:
    whole = _ingest(_base(name), tmp_path / "whole", name)
    assert (whole.code, len(whole.said)) == (0, 1), whole.said
    silent: list[str] = []
    codes = {0: 0, 3: 0}
    for mutant, answer in _answers(name, -(-_MUTANTS // len(_BASES)), tmp_path):
        codes[answer.code] += 1
        if answer.code == 0 and not _is_explained(mutant, answer, whole):
            silent.append(mutant.what)
    assert not silent, f"{len(silent)} mutants lost events without a word: {silent[:40]}"
    assert min(codes.values()) > 0, codes  # else the damage is not of all kinds


@pytest.mark.parametrize("name", [name for name in _BASES if name not in _ZLIB])
def test_bases_hold_what_trace_cmd_reads(name: str, tmp_path: Path) -> None:
    """Debian's trace-cmd reads no zlib; two of the small traces are compressed with it.

    It prints no line for an id without a format, of which cut files have many.
    """
    whole = _ingest(_base(name), tmp_path / "whole", name)
    lines = count_events(report_lines(tmp_path / "whole" / "trace.dat"))
    known = [(event, count) for event, count in whole.counts if event != "unknown:unknown"]
    assert {event.partition(":")[2]: count for event, count in known} == lines


def test_there_are_enough() -> None:
    assert _MUTANTS >= 2000
    assert len(_BASES) >= 10
