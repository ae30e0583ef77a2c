# SPDX-License-Identifier: Apache-2.0
"""A trace that takes a moment to read, and a folder to write its result to."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cut import cut_trace
from support.faults import Place
from support.runs import example


@pytest.fixture(scope="session")
def recorded_bytes() -> bytes:
    """A few thousand events of a recorded trace."""
    return cut_trace(example("four-equal-writers").trace, chunks=12)


@pytest.fixture
def place(tmp_path: Path, recorded_bytes: bytes) -> Place:
    """A folder with an earlier result, and the trace elsewhere."""
    folder = tmp_path / "results"
    folder.mkdir()
    source = tmp_path / "trace.dat"
    source.write_bytes(recorded_bytes)
    made = Place(folder, source)
    made.reset()
    return made
