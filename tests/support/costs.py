# SPDX-License-Identifier: Apache-2.0
"""What each test takes: a plugin of pytest that writes it down for tools/run_tests.py."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from .commandserver import descendants

__all__ = ["SLOW", "Costs", "cpu_seconds"]

SLOW = Path(__file__).parents[1] / "slow.txt"
"""Functions that make check leaves out: their few cases take more than 0.4 s of CPU."""
_SLOW_CPU_SECONDS = 0.4

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


class Costs:
    """Adds a line for each test to the file that $WBSCOPE_COSTS names.

    It is {"test", "seconds", "cpu_seconds", "outcome"}. With --update-slow it writes SLOW.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._is_worker = hasattr(config, "workerinput")
        self._file = os.environ.get("WBSCOPE_COSTS", "")
        self._began = 0.0
        self._seconds: dict[str, float] = defaultdict(float)
        self._outcomes: dict[str, str] = {}
        self._functions: dict[str, float] = defaultdict(float)
        self._writes_slow = config.getoption("--update-slow") and not self._is_worker

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
            self._functions[report.nodeid.removeprefix("tests/").partition("[")[0]] += cpu
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

    def pytest_sessionfinish(self) -> None:
        if self._writes_slow:
            slow = {name for name, cpu in self._functions.items() if cpu > _SLOW_CPU_SECONDS}
            SLOW.write_text("".join(f"{name}\n" for name in sorted(slow)), encoding="utf-8")
