# SPDX-License-Identifier: Apache-2.0
"""What each test takes: a plugin of pytest that writes it down for tools/run_tests.py.

What functions took in make test-all is in tests/costs.txt, and decides what the others leave out.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from .commandserver import descendants

__all__ = ["Costs", "cpu_seconds", "of_functions"]

_FILE = Path(__file__).parents[1] / "costs.txt"

_PROPERTY = "cpu_seconds"
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Of a process and of all that descend from it, those that have ended among them."""
    ticks = 0
    for process in descendants(pid):
        with suppress(OSError):  # it has ended: whoever waited for it has its time
            stat = Path(f"/proc/{process}/stat").read_text()
            ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return ticks / _TICKS


def of_functions() -> dict[str, float]:
    """Seconds of CPU of all cases of a function; of those that are cheap or new there is none."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return {name: float(seconds) for seconds, name in map(str.split, lines)}


class Costs:
    """Adds a line for each test to the file that $WBSCOPE_COSTS names.

    It is {"test", "seconds", "cpu_seconds", "outcome"}.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._is_worker = hasattr(config, "workerinput")
        self._file = os.environ.get("WBSCOPE_COSTS", "")
        self._began = 0.0
        self._seconds: dict[str, float] = defaultdict(float)
        self._outcomes: dict[str, str] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        self._began = cpu_seconds(os.getpid())
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        if call.when == "teardown":
            # Less than none where a program of an earlier test has gone that nobody waited for.
            cpu = max(cpu_seconds(os.getpid()) - self._began, 0.0)
            item.user_properties.append((_PROPERTY, cpu))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._is_worker:
            return
        self._seconds[report.nodeid] += report.duration
        self._outcomes.setdefault(report.nodeid, "passed")
        if report.outcome != "passed":
            self._outcomes[report.nodeid] = report.outcome
        if report.when == "teardown":
            cpu = dict(report.user_properties).get(_PROPERTY, 0.0)
            assert isinstance(cpu, float)
            self._add_to_file(report.nodeid, cpu)

    def _add_to_file(self, test: str, cpu: float) -> None:
        if self._file:
            line = {
                "test": test,
                "seconds": round(self._seconds[test], 3),
                "cpu_seconds": round(cpu, 2),
                "outcome": self._outcomes[test],
            }
            with open(self._file, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
