# SPDX-License-Identifier: Apache-2.0
"""What each folder of tests takes: a plugin of pytest that prints a table at the end."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["Costs", "cpu_seconds"]

_PROPERTY = "cpu_seconds"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class _Cost:
    tests: int = 0
    skipped: int = 0
    failed: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def cpu_seconds(pid: int) -> float:
    """Of a process and of all that descend from it, those that have ended among them."""
    ticks = 0
    found = [pid]
    for process in found:
        with suppress(OSError, IndexError):  # it has ended: whoever waited for it has its time
            stat = Path(f"/proc/{process}/stat").read_text()
            ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
            for task in os.listdir(f"/proc/{process}/task"):
                listed = Path(f"/proc/{process}/task/{task}/children").read_text().split()
                found += map(int, listed)
    return ticks / _TICKS


class Costs:
    """Counts tests, seconds and CPU seconds by folder; $WBSCOPE_COSTS names a file to add them to.

    In that file each line is one test: {"test", "seconds", "cpu_seconds", "outcome"}.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._is_worker = hasattr(config, "workerinput")
        self._file = os.environ.get("WBSCOPE_COSTS", "")
        self._began = 0.0
        self._folders: dict[str, _Cost] = defaultdict(_Cost)
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
            item.user_properties.append((_PROPERTY, cpu_seconds(os.getpid()) - self._began))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._is_worker:
            return
        cost = self._folders[report.nodeid.removeprefix("tests/").partition("/")[0]]
        cost.seconds += report.duration
        self._seconds[report.nodeid] += report.duration
        if report.outcome != "passed":
            cost.skipped += report.skipped
            cost.failed += report.failed
        self._outcomes.setdefault(report.nodeid, "passed")
        if report.outcome != "passed":
            self._outcomes[report.nodeid] = report.outcome
        if report.when == "teardown":
            cost.tests += 1
            cpu = dict(report.user_properties).get(_PROPERTY, 0.0)
            assert isinstance(cpu, float)
            cost.cpu_seconds += cpu
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
