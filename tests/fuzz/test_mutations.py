# SPDX-License-Identifier: Apache-2.0
"""Damaged traces, and texts and databases made to do harm: an answer or one clear error."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.commands import Commands, Ended, problems
from support.cut import cut_trace
from support.hostile_databases import DATABASES, MARK
from support.mutate import Mutant, mutants, part_of_trace, small_traces
from support.pfread import read_trace
from support.properties import some
from support.report import count_events, report_lines
from support.runs import REPOSITORY
from support.tools import ingester_path, wbscope_path
from support.waits import GUARD_SECONDS
from wbscope.ingest.program import reference_formats

# Damaged traces: an answer with a warning, or one clear error; never a crash, never a silent loss.
#
# WBSCOPE_MUTANTS=20000 .venv/bin/pytest tests/fuzz/test_mutations.py    a longer run
#
# Each test line names its base, its number and what was done, which the seed makes again.

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


# Databases from strangers as RUN: an answer or one clear error, nothing of theirs run or changed.
#
# Each is made in tests/support/hostile_databases.py; `-k 'endless'` chooses by name. With --part a
# third of the verbs is tried, others for each commit.

_EXAMPLE = REPOSITORY / "examples/four-equal-writers"
_PART = (6, 1)
_SELECT = "SELECT * FROM event_counts"
_JOIN = "SELECT comm, count(*) FROM wb_throttle GROUP BY comm"


def _verbs(run: str, output: str) -> list[tuple[list[str], tuple[int, ...]]]:
    """Words, and the exit codes that are right; 2: of the user's SQL, which names a table."""
    return [
        (["report", run], (0, 3, 4)),
        (["timeline", run, "-o", output, "--force"], (0, 3, 4)),
        (["query", "throttle_by_task", run, "--json"], (0, 3, 4)),
        (["query", "fairness", run, "--window", "2s", "--json"], (0, 2, 3, 4)),
        (["query", "event_counts", run, "--json"], (0, 3, 4)),
        (["sql", run, _SELECT, "--timeout", "5s", "--json"], (0, 2, 3, 4)),
        (["sql", run, _JOIN, "--timeout", "5s", "--json"], (0, 2, 3, 4)),
        (["gate", run, "--budget", "throttle_summary.pause_p99_ns <= 100ms"], (0, 1, 3, 4)),
    ]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small database of a real run."""
    folder = tmp_path_factory.mktemp("good")
    run = folder / "run"
    shutil.copytree(_EXAMPLE, run, ignore=shutil.ignore_patterns("trace.dat", "README.md"))
    (run / "trace.dat").write_bytes(part_of_trace(_EXAMPLE / "trace.dat", *_PART))
    database = folder / "run.db"
    subprocess.run([wbscope_path(), "ingest", run, "-o", database, "-q"], check=True)
    return database


@pytest.fixture(scope="module")
def commands(good: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """One process for all commands of this module, with everything imported."""
    folder = tmp_path_factory.mktemp("commands")
    with Commands(folder / "work") as started:
        for words, codes in _verbs(str(good), str(folder / "x.pftrace")):
            assert started.warm(*words) in codes, words
        started.forget()
        yield started


@pytest.mark.parametrize("name", DATABASES)
def test_hostile(name: str, good: Path, commands: Commands, tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    run = folder / "run.db"
    shutil.copy(good, run)
    DATABASES[name](run)
    before = _contents(folder)
    output = tmp_path / "x.pftrace"
    wrong: list[str] = []
    for words, codes in some(_verbs(str(run), str(output)), name):
        ended = commands.run(*words)
        found = [*problems(ended, codes), *_marks(ended, output)]
        if (after := _contents(folder)) != before:
            found.append(f"files were changed: {sorted(before)} to {sorted(after)}")
        shutil.rmtree(folder)
        folder.mkdir()
        for path, data in before.items():
            (folder / path).write_bytes(data)
        wrong += [f"{name}: {_verb(words)}: {told}" for told in found]
    commands.forget()
    assert not wrong, f"{len(wrong)} failures:\n" + "\n".join(wrong)


def _contents(folder: Path) -> dict[str, bytes]:
    """Without what SQLite itself puts beside a file in WAL mode: an index, an empty log."""
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    return {name: data for name, data in found.items() if data and not name.endswith("-shm")}


def _verb(words: list[str]) -> str:
    return f"query {words[1]}" if words[0] == "query" else words[0]


def _marks(ended: Ended, output: Path) -> Iterator[str]:
    """Traces of a view of the file that was run."""
    if MARK in ended.err or MARK.encode() in ended.out:
        yield "a view of the file was run, or a column worked out"
    if output.exists() and MARK.encode() in output.read_bytes():
        yield "a view of the file is in the timeline"


def test_there_are_enough_databases() -> None:
    assert len(DATABASES) >= 50


# Texts made to cost much more time or memory than their size.

# Ends a hang: these texts cost 3 s, and minutes of processor time without a bound.
_CPU_SECONDS = 60
_TEXT_MEBIBYTES = 256
_HEAD = "dd-12 [001] ..... 1.000001: "
_TWO_TEXTS = """\
# kernel 1.0
# system hostile
name: two_texts
ID: 1
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char a[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:char b[16];\toffset:24;\tsize:16;\tsigned:0;

print fmt: "%s: %s end", REC->a, REC->b
"""


def _empty_lines() -> Iterator[str]:
    for _ in range(50_000):
        yield "\n" * 999


def _cpus_that_lost() -> Iterator[str]:
    yield _HEAD + "event: a=1"
    for cpu in range(4_000_000):
        yield f"CPU:{cpu} [LOST 1 EVENTS]"


def _late_columns() -> Iterator[str]:
    for number in [0] * 32 + [*range(1, 9)]:
        for event in range(2000):
            yield f"{_HEAD}event{event}: field{number}=1"


def _long_names() -> Iterator[str]:
    for number in range(6000):
        yield f"{_HEAD}event{number}: field{number}{'y' * 60_000}=1"
        yield f"{_HEAD}event{number}{'y' * 30_000}: a=1"


def _many_places() -> Iterator[str]:
    for _ in range(50):
        yield f"{_HEAD}two_texts: {': ' * 32_000}"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (_empty_lines, 3),
        (_cpus_that_lost, 0),
        (_late_columns, 0),
        (_long_names, 0),
        (_many_places, 0),
    ],
)
def test_time_and_memory_have_a_bound(
    make: Callable[[], Iterator[str]], code: int, tmp_path: Path
) -> None:
    source, formats = tmp_path / "trace.txt", tmp_path / "formats"
    with source.open("w") as out:
        out.writelines(line + "\n" for line in make())
    formats.write_text("".join(reference_formats()) + _TWO_TEXTS, encoding="utf-8")
    process = subprocess.Popen(
        [
            ingester_path(),
            "sqlite",
            source,
            "-o",
            tmp_path / "run.db",
            "--all",
            "--formats",
            formats,
        ],
        stderr=subprocess.DEVNULL,
        preexec_fn=_limit_text_time,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == code  # -SIGXCPU or -SIGKILL: it hung
    assert usage.ru_maxrss < _TEXT_MEBIBYTES * 1024


def _limit_text_time() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
