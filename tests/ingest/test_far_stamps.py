# SPDX-License-Identifier: Apache-2.0
"""Traces of times that no question can be asked of: refused, of every kind of trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.cli import Wbscope, check_error
from support.kernel_events import formats
from support.pftrace import Event, TraceBuilder
from support.tracedat import Trace

# Sums of two are 64-bit numbers up to here: 146 years.
_MOST_NS = 2**62
_SECOND = 10**9


def _trace_dat(folder: Path, ts: int) -> Path:
    trace = Trace(formats("sys_exit_write"))
    for number in range(3):
        trace.event(0, ts + number, 11, "sys_exit_write", {"ret": number})
    return trace.write(folder / "trace.dat")


def _text(folder: Path, ts: int) -> Path:
    path = folder / "trace.txt"
    path.write_text(
        "".join(
            f"  dd-1 [000] ..... {at // _SECOND}.{at % _SECOND:09}: mm_vmscan_kswapd_sleep: nid=0\n"
            for at in range(ts, ts + 3)
        )
    )
    return path


def _perfetto(folder: Path, ts: int) -> Path:
    path = folder / "trace.pftrace"
    event = ("vmscan", "mm_vmscan_kswapd_sleep", (), ())
    TraceBuilder().write(path, [Event(at, 0, 11, *event) for at in range(ts, ts + 3)])
    return path


_KINDS: dict[str, Callable[[Path, int], Path]] = {
    "trace.dat": _trace_dat,
    "text": _text,
    "perfetto": _perfetto,
}


@pytest.mark.parametrize("kind", _KINDS)
def test_one_that_is_too_far(wbscope: Wbscope, tmp_path: Path, kind: str) -> None:
    source = _KINDS[kind](tmp_path, _MOST_NS - 1)
    output = tmp_path / "run.db"
    for command in (["ingest", source, "-o", output, "--all"], ["query", "event_counts", source]):
        done = wbscope.run(*command)
        assert done.returncode == 3, done.stderr
        check_error(done.stderr, "bad-stamps", source, "4611686018 s")
    assert not output.exists()


@pytest.mark.parametrize("kind", _KINDS)
def test_the_farthest(wbscope: Wbscope, tmp_path: Path, kind: str) -> None:
    source = _KINDS[kind](tmp_path, _MOST_NS - 2)
    output = tmp_path / "run.db"
    done = wbscope.run("ingest", source, "-o", output, "--all")
    assert done.returncode == 0, done.stderr
    assert wbscope.sql(output, "SELECT value FROM meta WHERE key = 'last_ts'") == [
        {"value": _MOST_NS}
    ]
