# SPDX-License-Identifier: Apache-2.0
"""`wbscope lab bisect` with places that make no guest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wbscope.lab.kernels import Setup
from wbscope.lab.places import Failure, Places

from .labs import METRIC, write_run
from .verdicts import faults

__all__ = ["Made", "bisect", "made_runs"]


class Made:
    """Runs whose latency is the setting, or the kernel, and a little noise.

    fail  latencies whose runs fail; damage  latencies whose runs have a damaged trace;
    interrupt  the number of the run that Ctrl-C comes in;
    write  makes the run in its folder, of its latency
    """

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.fail: tuple[float, ...] = ()
        self.damage: tuple[float, ...] = ()
        self.interrupt: int | None = None
        self.write: Callable[[Path, float], Path] = self._noisy

    def make(self, _places: object, setup: Setup, work: Path, *_: object) -> Path:
        if len(self.latencies) + 1 == self.interrupt:
            raise KeyboardInterrupt
        if setup.kernel.image is not None:
            latency = float(Path(setup.kernel.image).read_text())
        else:
            latency = float(setup.sysctls["vm.dirty_bytes"])
        self.latencies.append(latency)
        if latency in self.fail:
            raise Failure("the guest died", {"console": "panic\n"})
        run = self.write(work / "run", latency)
        if latency in self.damage:
            (run / "trace.dat").write_bytes(b"\x17\x08\x44tracing")
        return run

    def _noisy(self, folder: Path, latency: float) -> Path:
        return write_run(folder, latency + 0.01 * len(self.latencies))


def made_runs(monkeypatch: pytest.MonkeyPatch) -> Made:
    """All runs of the test are made by it."""
    making = Made()
    monkeypatch.setattr(Places, "check", lambda *_: None)
    monkeypatch.setattr(
        Places, "make", lambda self, setup, work, *more: making.make(self, setup, work, *more)
    )
    return making


def bisect(
    cli: Callable[..., Any], matrix: Path, folder: Path, *words: object, metric: str = METRIC
) -> Any:
    """How the command ended."""
    ran = cli("lab", "bisect", matrix, "--metric", metric, "-o", folder, *words)
    if (kept := folder / "bisect.json").exists():
        assert faults(json.loads(kept.read_text())) == []
    return ran
