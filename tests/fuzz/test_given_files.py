# SPDX-License-Identifier: Apache-2.0
"""Damaged measurements, and files that once crashed: values, or one error with the place."""

from __future__ import annotations

import json
import math
import os
import re
import runpy
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.archives import unpacked
from support.cli import Wbscope
from support.commands import Commands, problems
from support.mutate import part_of_trace
from support.mutate_texts import measurement_mutant
from support.progress import Hang, hang_guard
from support.runs import REPOSITORY
from support.tools import require_program
from wbscope.base.errors import InputError, UsageError
from wbscope.compare.baseline import read_baseline
from wbscope.compare.policy import read_policy
from wbscope.measure import files_of_folder, measurements
from wbscope.measure.files import is_measurements, read_measurements
from wbscope.measure.metric import is_sane

# Damaged files that are given by themselves: runs, or one error that names the file.
#
# WBSCOPE_MEASUREMENT_MUTANTS=20000 .venv/bin/pytest -n 2 tests/fuzz/test_given_files.py

_MUTANTS = int(os.environ.get("WBSCOPE_MEASUREMENT_MUTANTS", "600"))
_DATA = unpacked("data") / "measure"
_BASES = sorted(path.name for path in _DATA.iterdir() if path.suffix != ".md")
# Long lines of what expressions look for, each in its own way: what goes through all of it for each
# part takes more than GUARD_SECONDS; to go through it once takes a second.
_LONG = {
    "digits": "1" * 3_000_000,
    "spaces": "1" + " " * 3_000_000 + "x",
    "fields": "1," * 500_000,
    "fields of words": "1,a," * 250_000 + "b",
    "dashes": "a-1" * 300_000,
    "per cent": "Ops a " + "1.00 (0.00%) " * 250_000 + "x",
    "quotes": " > " * 300_000 + "x",
    "a table": "a,b\n" + "1,2\n" * 250_000,
    "headings": "a b c d:\n" * 250_000,
    "times": "real 1.00\n" * 250_000,
    "zsh": "1.00s user " * 250_000,
    "braces": '{"fio version": ' + "[" * 500_000,
    "results": '{"results": [{"command": "a", "times": [' + "1," * 500_000,
    "commas of a number": "Ops a " + "1," * 500_000 + "(0.00%)",
}


def _wrong(path: Path) -> str:
    told = ""
    try:
        with hang_guard():
            found = read_measurements(path) if is_measurements(path) else None
        for part in found.parts.values() if found is not None else ():
            for run in part:
                for metric, value in run.scalars.values():
                    if value is not None and not (math.isfinite(value) and is_sane(value)):
                        told = f"{metric.name} is {value}"
                    elif not metric.name.isprintable():
                        told = f"a metric is named {metric.name!r}"
                for spread in run.scalars.spreads.values():
                    if not (math.isfinite(spread.sd) and spread.sd >= 0 and spread.n >= 2):
                        told = f"a spread is {spread}"
    except InputError as error:
        if error.subject != str(path) or not error.message or not error.fix:
            told = f"an error about {error.subject!r}: {error.message!r}, fix {error.fix!r}"
    except (Hang, Exception) as error:
        told = f"{type(error).__name__}: {str(error)[:200]}"
    return told


@pytest.mark.parametrize("base", _BASES)
def test_mutants(base: str, tmp_path: Path) -> None:
    data = (_DATA / base).read_bytes()
    wrong = []
    for number in range(-(-_MUTANTS // len(_BASES))):
        what, changed = measurement_mutant(base, data, number)
        path = tmp_path / base
        path.write_bytes(changed)
        if told := _wrong(path):
            wrong.append(f"{base} {number}: {told}  [{what[:200]}]")
    assert not wrong, f"{len(wrong)} failures:\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", _LONG)
def test_long_lines_are_read_once(name: str, tmp_path: Path) -> None:
    path = tmp_path / re.sub(r"\W", "-", name)
    for before in ("", "real 1.00\nuser 1.00\nsys 1.00\n", "1,,task-clock,1,1\n"):
        path.write_text(before + _LONG[name])
        assert _wrong(path) == ""


# Damaged files of other tools: values, or one error that names the file and the place in it.
#
#     WBSCOPE_MEASUREMENT_MUTANTS=20000 .venv/bin/pytest -n 2 tests/fuzz/test_given_files.py
#
# A line of a failure names the base, the number and what was done, which makes the file again.

_COMPARED = int(os.environ.get("WBSCOPE_COMPARED_MUTANTS", "32"))
_RUN = REPOSITORY / "examples/gate/runs/before-2"
_TRACE = REPOSITORY / "examples/four-equal-writers/trace.dat"
_OPS = b"""\
# memcachetest of mmtests
ops 12345.5 ops/s higher
ops 12001.25 ops/s higher
latency 3.25 ms
latency-p99 17 ms lower
io 4096 KiB
share 12.5 % neutral
"""
_META = {
    "schema": "wbscope.record/1",
    "command": ["dd", "if=/dev/zero"],
    "command_duration_ns": 1_500_000_000,
    "command_user_s": 0.25,
    "command_system_s": 1.125,
    "command_max_rss_bytes": 2 << 20,
    "command_major_faults_count": 3,
    "command_exit_code": 0,
    "sync_duration_ns": 7,
}
# What is wrong with a file as a whole has no place in it.
_WHOLE = re.compile(
    r"is empty|has no |holds |is cut off|is of |ended with|is no |has .* twice|is nested"
    r"|the command (?:ended|was ended)|\w+: found|\w+ is \d+ before and|job \""
    r"|has a sample of|has more than"
)


def _bases() -> dict[str, tuple[str, bytes]]:
    """Name of a base -> (name of the file in a run, its content)."""
    found = {}
    for path in sorted(_DATA.glob("*.*")):
        kind = path.name.partition("-")[0]
        name = {
            "fio": "fio.json",
            "perf": "perf-stat.json" if "json" in path.name else "perf-stat.txt",
            "procps": "vmstat.txt",
            "time": "time.txt",
        }.get(kind)
        if name is not None:
            found[path.name] = (name, path.read_bytes())
    for name in ("fio.json", "time.txt", "vmstat.before", "vmstat.after", "vmstat.samples"):
        found[f"run-{name}"] = (name, (_RUN / name).read_bytes())
    found["ops"] = ("ops.txt", _OPS)
    found["meta"] = ("meta.json", json.dumps(_META).encode())
    return found


_RUN_BASES = _bases()


def _wrong_in_run(folder: Path, name: str) -> str:
    """What is wrong with the answer about the file; "" when nothing is."""
    told = ""
    try:
        with hang_guard():
            found = measurements(files_of_folder(folder))
        for metric, value in found.scalars.values():
            if value is not None and not (math.isfinite(value) and is_sane(value)):
                told = f"{metric.name} is {value}"
            elif not metric.name.isprintable():
                told = f"a metric is named {metric.name!r}"
    except InputError as error:
        if error.subject not in (str(folder / name), str(folder / "vmstat.*")):
            told = f"an error about {error.subject!r}"
        elif not error.message or not error.fix:
            told = f"an error without a message or a fix: {error.message!r}"
        elif error.at is None and not _WHOLE.match(error.message):
            told = f"an error without a place: {error.message!r}"
    except (Hang, Exception) as error:
        told = f"{type(error).__name__}: {str(error)[:200]}"
    return told


@pytest.mark.parametrize("base", _RUN_BASES)
def test_mutants_in_run_folders(base: str, tmp_path: Path) -> None:
    name, data = _RUN_BASES[base]
    wrong = []
    for number in range(-(-_MUTANTS // len(_RUN_BASES))):
        what, changed = measurement_mutant(base, data, number)
        (tmp_path / name).write_bytes(changed)
        if told := _wrong_in_run(tmp_path, name):
            wrong.append(f"{base} {number}: {told}  [{what[:200]}]")
    assert not wrong, f"{len(wrong)} failures:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "read"), [("before.json", read_baseline), ("gate.toml", read_policy)]
)
def test_files_of_a_gate(name: str, read: Callable[[Path], object], tmp_path: Path) -> None:
    """Its baselines and policies: what was read, or one error that names the file."""
    data = (REPOSITORY / "examples/gate" / name).read_bytes()
    path = tmp_path / name
    wrong = []
    for number in range(_MUTANTS // 10):
        what, changed = measurement_mutant(name, data, number)
        path.write_bytes(changed)
        told = ""
        try:
            with hang_guard():
                read(path)
        except (InputError, UsageError) as error:
            if not str(error.subject).startswith(str(path)) or not error.fix:
                told = f"an error about {error.subject!r}, fix {error.fix!r}"
        except (Hang, Exception) as error:
            told = f"{type(error).__name__}: {str(error)[:200]}"
        if told:
            wrong.append(f"{name} {number}: {told}  [{what[:200]}]")
    assert not wrong, f"{len(wrong)} failures:\n" + "\n".join(wrong)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with files of measurements and a small trace."""
    run = tmp_path_factory.mktemp("good") / "run"
    shutil.copytree(_RUN, run, ignore=shutil.ignore_patterns("trace.dat"))
    (run / "trace.dat").write_bytes(part_of_trace(_TRACE, 6, 1))
    return run


def _verbs(run: str, good: str) -> list[tuple[list[str], tuple[int, ...]]]:
    """Words, and the exit codes that are right."""
    rules = ["--budget", "fio.write.clat_p99_ns <= 1s", "--budget", "time.elapsed_ns <= 1h"]
    return [
        (["compare", run, "--against", good], (0, 3, 4)),
        (["compare", run, "--against", good, "--json"], (0, 3, 4)),
        (["gate", run, *rules], (0, 1, 3, 4)),
        (["report", run], (0, 3, 4)),
    ]


@pytest.fixture(scope="module")
def commands(good: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """One process for all commands of this module, with everything imported."""
    with Commands(tmp_path_factory.mktemp("commands") / "work") as started:
        for words, codes in _verbs(str(good), str(good)):
            assert started.warm(*words) in codes, words
        yield started


_IN_A_RUN = [base for base in _RUN_BASES if base.startswith("run-")] + [
    "ops",
    "meta",
    "perf-text.txt",
]


@pytest.mark.parametrize("base", _IN_A_RUN)
def test_commands(base: str, good: Path, commands: Commands, tmp_path: Path) -> None:
    """In a run folder, as the program that reads traces keeps them, too."""
    name, data = _RUN_BASES[base]
    run = tmp_path / "run"
    wrong = []
    for number in range(-(-_COMPARED // len(_IN_A_RUN))):
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(good, run)
        what, changed = measurement_mutant(f"{base} in a run", data, number)
        (run / name).write_bytes(changed)
        for words, codes in _verbs(str(run), str(good)):
            found = problems(commands.run(*words), codes)
            wrong += [f"{base} {number} {words[0]}: {told}  [{what[:200]}]" for told in found]
    assert not wrong, f"{len(wrong)} failures:\n" + "\n".join(wrong)


def test_there_are_enough() -> None:
    assert _MUTANTS >= 500
    kinds = Counter(name for name, _ in _RUN_BASES.values())
    assert {"fio.json", "perf-stat.txt", "perf-stat.json", "ops.txt", "time.txt"} <= set(kinds)


# Files that once crashed the reader: each ends in an answer or in one clear error.

_FILES = sorted((Path(__file__).parent / "regressions" / "whole").iterdir())


def test_there_are_files() -> None:
    assert _FILES


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_no_crash_and_nothing_left(wbscope: Wbscope, file: Path, tmp_path: Path) -> None:
    output = tmp_path / "run.db"
    done = wbscope.run("ingest", str(file), "-o", str(output), "--all")
    assert done.returncode in (0, 3), done.stderr
    assert output.exists() == (done.returncode == 0)
    assert [path.name for path in tmp_path.iterdir() if path != output] == []


# The seeds of the fuzz targets are made by Debian's Python, which has no package of ours.

_MAKE_SEEDS = Path(__file__).with_name("make_seeds.py")


def test_seeds_need_nothing_but_python(tmp_path: Path) -> None:
    # -S: no site-packages, where this machine may have what another has not.
    python = require_program("/usr/bin/python3")
    done = subprocess.run(
        [python, "-I", "-S", _MAKE_SEEDS, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made = {folder.name for folder in tmp_path.iterdir() if any(folder.iterdir())}
    assert made == set(runpy.run_path(str(_MAKE_SEEDS.with_name("run.py")))["TARGETS"])
