# SPDX-License-Identifier: Apache-2.0
"""Every verb that writes a file leaves the trace of a run folder, and what is beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "RUN", "-o", "FILE"),
        ("report", "RUN", "-o", "FILE"),
        ("query", "fairness", "RUN", "-o", "FILE"),
        ("query", "fairness", "RUN", "--parquet", "FILE"),
        ("sql", "RUN", "SELECT 1", "-o", "FILE"),
        ("sql", "RUN", "SELECT 1", "--parquet", "FILE"),
        ("check", "RUN", "-o", "FILE"),
        ("timeline", "RUN", "-o", "FILE"),
        ("timeline", "OTHER", "--against", "RUN", "-o", "FILE"),
        ("compare", "RUN", "--against", "OTHER", "-o", "FILE"),
        ("compare", "OTHER", "--against", "RUNS", "--html", "FILE"),
        ("gate", "RUN", "--budget", "throttle_summary.pauses_count <= 1", "-o", "FILE"),
        ("gate", "RUN", "--budget", "throttle_summary.pauses_count <= 1", "--junit", "FILE"),
        ("baseline", "save", "RUNS", "-o", "FILE"),
    ],
    ids=lambda words: f"{words[0]} {words[-2]}",
)
@pytest.mark.parametrize("name", ["trace.dat", "vmstat.before"])
def test_each_verb(cli: Cli, tmp_path: Path, words: tuple[str, ...], name: str) -> None:
    runs = tmp_path / "runs"
    for one in ("1", "2"):
        (runs / one).mkdir(parents=True)
        for file in ("trace.dat", "vmstat.before"):
            (runs / one / file).write_bytes(b"kept")
    places = {"RUN": runs / "1", "OTHER": runs / "2", "RUNS": runs, "FILE": runs / "1" / name}
    ran = cli(*(places.get(word, word) for word in words), "--force")
    assert ran.code == 2, ran.err
    assert "output-is-input" in ran.err + ran.out
    assert [path.read_bytes() for path in sorted(runs.glob("*/*"))] == [b"kept"] * 4
