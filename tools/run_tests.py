#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests, two lanes beside each other, and prints what each group took.

usage: tools/run_tests.py quick|commit|all    for `make check`, `make test` and `make test-all`
       tools/run_tests.py costs               writes tests/costs.txt, by the last make test-all

quick:  a few cases of each function
commit: of functions that take long the eighth of this commit, see tests/support/choice.py
all:    every case, and Spark, HDFS, S3, browsers, guests, a large database, a new Debian

Output is printed as a step ends, and kept in build/logs. Exit: 0, 1 if a step failed or could not
be started, 130 when it was interrupted.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

_REPOSITORY = Path(__file__).parents[1]
_LOGS = _REPOSITORY / "build" / "logs"
_COSTS = _LOGS / "costs.jsonl"
_COSTS_OF_ALL = _LOGS / "costs-all.jsonl"  # of the last make test-all that passed
# What functions take, so that the others know what to leave out; those below are not worth a line.
_KEPT_COSTS = _REPOSITORY / "tests" / "costs.txt"
_LEAST_CPU_SECONDS = 0.5
_WORKERS = str(os.cpu_count() or 1)
# A child's peak of memory begins with that of the process that started it: apart, in fresh ones.
_MEASURED = ["tests/fuzz"]
# They wait, for what is recorded and for browsers and clusters, beside the others. One after the
# other: those that record have a lock, and a cluster of Spark has processes enough.
_WAITING = {"live": ["tests/live"], "pages": ["tests/ui", "tests/viewer"], "fleet": ["tests/fleet"]}
# By targets of their own: they fetch, compile and boot kernels.
_OTHERS = ["tests/kernel", "tests/lab"]
# Many short shards: one test takes a quarter of the time of all.
_SHARDS = (
    f"seq 0 31 | xargs -P {_WORKERS} -I {{}} env GTEST_TOTAL_SHARDS=32 GTEST_SHARD_INDEX={{}}"
    " build/tests/tests/unit/ingest/wbscope_unit_tests --gtest_brief=1"
)
_LARGE = "tests/ingest/test_writers.py::test_rows_on_both_sides_of_four_gibibytes"
_NOTHING_TO_RUN = 5  # of pytest: the commit's part of a group can be empty


@dataclass(frozen=True)
class Step:
    """A command; env is added to the environment."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    good: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Ended:
    """What became of a step."""

    step: Step
    code: int
    seconds: float
    cpu_seconds: float

    @property
    def is_good(self) -> bool:
        return self.code in self.step.good


Lane = Sequence[Step]


def stages(which: str) -> list[list[Lane]]:
    """Stages one after the other, of lanes that are run beside each other."""
    # mypy has one thread: the compiler takes the other processor.
    built = [[_make("lint")], [_make("tests-built")]]
    choice = {"quick": ["--quick"], "commit": ["--part", "commit"], "all": []}[which]
    pytest = [".venv/bin/pytest", "-q", *choice]
    spread = ["-n", _WORKERS, "--dist", "worksteal"]
    apart = [*_MEASURED, *_OTHERS, *(path for paths in _WAITING.values() for path in paths)]
    # One more than there are processors: some tests wait, for a disk or for another worker's file.
    more = ["-n", str(int(_WORKERS) + 1), "--dist", "worksteal"]
    main = [
        Step("C++", ["sh", "-c", _SHARDS]),
        Step("most", [*pytest, *more, *(f"--ignore={path}" for path in apart)]),
    ]
    if which == "quick":
        return [built, [main]]
    good = (0, _NOTHING_TO_RUN) if which == "commit" else (0,)
    main.insert(1, Step("fuzz", [*pytest, *spread, *_MEASURED]))
    beside = [Step(name, [*pytest, *paths], good=good) for name, paths in _WAITING.items()]
    if which == "all":
        large = [*pytest, "-rs", _LARGE]
        main.append(Step("large", large, {"WBSCOPE_LARGE": "1"}))
        patches = "tools/kernel_stamp.py --check || { [ $? -eq 1 ] && make kernel-test; }"
        # A machine may refuse what a new root wants; why stands in the log.
        fresh = "make fresh QUICK=1 || { [ -s build/fresh/refused ] && cat build/fresh/refused; }"
        beside += [
            Step(name, ["sh", "-c", text])
            for name, text in (("fresh", fresh), ("patches", patches))
        ]
    return [built, [main, beside]]


def _make(target: str, *words: str) -> Step:
    return Step(target, ["make", "--no-print-directory", target, *words])


class Interrupted(Exception):
    """No further step is to be run."""


def run_lane(
    steps: Lane, ended: list[Ended], printing: threading.Lock, stop: threading.Event
) -> None:
    """Run all, also those behind one that fails: each says what is wrong.

    Raises: OSError where one cannot be started; Interrupted once `stop` is set.
    """
    for step in steps:
        if stop.is_set():
            raise Interrupted
        log = _LOGS / f"{step.name}.log"
        began = time.monotonic()
        with log.open("wb") as output:
            process = subprocess.Popen(
                step.command,
                cwd=_REPOSITORY,
                env={**os.environ, "WBSCOPE_COSTS": str(_COSTS), **step.env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        done = Ended(step, process.returncode, seconds, usage.ru_utime + usage.ru_stime)
        with printing:
            ended.append(done)
            print(f"\n== {step.name}: {'passed' if done.is_good else 'FAILED'}, {seconds:.0f} s")
            sys.stdout.flush()
            sys.stdout.buffer.write(log.read_bytes())
            sys.stdout.flush()


def _tests(costs: Path) -> list[dict[str, object]]:
    """What tests/support/costs.py wrote."""
    if not costs.exists():
        return []
    return [json.loads(line) for line in costs.read_text(encoding="utf-8").splitlines()]


def folders() -> dict[str, list[dict[str, object]]]:
    """What was written of each test, by folder."""
    found: dict[str, list[dict[str, object]]] = {}
    for test in _tests(_COSTS):
        folder = str(test["test"]).removeprefix("tests/").partition("/")[0]
        found.setdefault(folder, []).append(test)
    return found


def write_costs() -> int:
    """Write CPU seconds of each function, all cases together, into tests/costs.txt."""
    functions: dict[str, float] = {}
    for test in _tests(_COSTS_OF_ALL):
        name = str(test["test"]).removeprefix("tests/").partition("[")[0]
        functions[name] = functions.get(name, 0.0) + float(str(test["cpu_seconds"]))
    if not functions:
        print(f"no {_COSTS_OF_ALL}: run make test-all", file=sys.stderr)
        return 1
    dear = {name: cost for name, cost in functions.items() if cost > _LEAST_CPU_SECONDS}
    lines = [f"{dear[name]:.1f} {name}\n" for name in sorted(dear)]
    _KEPT_COSTS.write_text("".join(lines), encoding="utf-8")
    return 0


def table(ended: Sequence[Ended], seconds: float) -> str:
    """A line for each step that is no pytest, and for each folder of tests."""
    rows = [("group", "tests", "skipped", "failed", "seconds", "CPU seconds")]
    groups = folders()
    total_tests = 0
    for name, tests in sorted(groups.items()):
        outcomes = [test["outcome"] for test in tests]
        sums = [sum(float(str(test[key])) for test in tests) for key in ("seconds", "cpu_seconds")]
        counts = [len(tests), outcomes.count("skipped"), outcomes.count("failed")]
        rows.append((f"tests/{name}", *map(str, counts), *(f"{value:.0f}" for value in sums)))
        total_tests += len(tests)
    for one in ended:
        if not (one.step.command[0].endswith("pytest")):
            failed = "0" if one.is_good else "1"
            rows.append(
                (one.step.name, "", "", failed, f"{one.seconds:.0f}", f"{one.cpu_seconds:.0f}")
            )
    cpu = sum(one.cpu_seconds for one in ended)
    failures = sum(not one.is_good for one in ended)
    rows.append(("all", str(total_tests), "", str(failures), f"{seconds:.0f}", f"{cpu:.0f}"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if not number else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    note = "seconds: summed over the tests of a folder; of all, from the first to the last"
    return "\n".join([*lines, note])


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in ("quick", "commit", "all", "costs"):
        print(__doc__, file=sys.stderr)
        return 2
    if sys.argv[1] == "costs":
        return write_costs()
    _LOGS.mkdir(parents=True, exist_ok=True)
    _COSTS.unlink(missing_ok=True)
    began = time.monotonic()
    ended: list[Ended] = []
    printing, stop = threading.Lock(), threading.Event()
    for lanes in stages(sys.argv[1]):
        with ThreadPoolExecutor(len(lanes)) as pool:
            running = [pool.submit(run_lane, steps, ended, printing, stop) for steps in lanes]
            try:
                for lane in running:
                    lane.result()
            except KeyboardInterrupt:  # the steps have heard it, too
                stop.set()
                return 130
            except OSError as error:
                stop.set()
                print(f"cannot be run: {error}", file=sys.stderr)
                return 1
        if not all(one.is_good for one in ended):
            break
    if sys.argv[1] == "all" and all(one.is_good for one in ended):
        shutil.copy(_COSTS, _COSTS_OF_ALL)
    print(f"\n{table(ended, time.monotonic() - began)}")
    failed = [
        f"{one.step.name} (build/logs/{one.step.name}.log)" for one in ended if not one.is_good
    ]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
