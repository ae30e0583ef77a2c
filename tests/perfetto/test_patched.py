# SPDX-License-Identifier: Apache-2.0
"""Events of a patched kernel give the same answers in both engines.

The golden cases say what is right; here it is only that trace processor, with the trace that
`wbscope convert` makes, answers as SQLite does.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.parity import assert_same
from support.perfetto_engine import PerfettoEngine
from wbscope.perfetto.package import PACKAGE, modules
from wbscope.perfetto.perfetto_library import perfetto_library
from wbscope.run.run import open_run

LIBRARY = perfetto_library()
_THROTTLE = ("throttle_by_task", "throttle_summary", "throttle_windows", "stalls", "stalls_by_task")
_RECLAIM = ("reclaim_writes", "reclaim_efficiency", "reclaim_dirty_state")
# Files beside the trace, and words of the trace's own formats, are not in a Perfetto trace.
_NOT_THERE = ("zone", "cgroup_path")


@pytest.mark.parametrize(
    ("case", "queries", "rows"),
    [
        ("measured_wait", _THROTTLE, 7),
        ("reclaim_exact", _RECLAIM, 4),
        ("dirty_domains", ("dirty_domains", "throttle_by_task"), 2),
    ],
)
def test_a_case(
    case: str, queries: tuple[str, ...], rows: int, wbscope: Wbscope, tmp_path: Path
) -> None:
    importlib.import_module(f"golden.{case}.case").make(tmp_path)
    source, trace = tmp_path / "trace.dat", tmp_path / "trace.pftrace"
    done = wbscope.run("convert", source, "-o", trace)
    assert done.returncode == 0, done.stderr
    alone = tmp_path / "alone"
    alone.mkdir()
    source.rename(alone / "trace.dat")
    with open_run(alone / "trace.dat") as run, PerfettoEngine() as engine:
        engine.load(trace)
        engine.register(PACKAGE, modules(LIBRARY))
        engine.query(f"INCLUDE PERFETTO MODULE {PACKAGE}.library")
        for place, name in enumerate(queries):
            columns, ours = engine.table(f"SELECT * FROM wbscope_{name}")
            theirs = run.query(name)
            assert tuple(columns) == theirs.columns
            assert len(ours) >= (1 if place else rows)
            kept = [column not in _NOT_THERE for column in columns]
            known = [column for column in columns if column not in _NOT_THERE]
            assert_same(known, _sorted(ours, kept), _sorted(theirs.rows, kept))
        basis = {row[0] for row in engine.table("SELECT t.slept_basis FROM wb_throttle AS t")[1]}
        assert case != "measured_wait" or basis == {"measured", "intended"}


def _sorted(rows: list[tuple[Any, ...]], kept: list[bool]) -> list[tuple[Any, ...]]:
    """Without the columns that differ, which rows may be ordered by."""
    chosen = [tuple(cell for cell, keep in zip(row, kept, strict=True) if keep) for row in rows]
    return sorted(chosen, key=repr)
