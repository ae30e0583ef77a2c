# SPDX-License-Identifier: Apache-2.0
"""Files with many CPUs, formats and pages: memory stays bounded, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compression import Compression
from support.formats import EventFormat, build_format
from support.ingested import Ingested
from support.kernel_events import formats
from support.memory import peak_kib
from support.progress import hang_guard
from support.tracedat import Trace

_MAX_KIB = 256 * 1024


def _many_cpus(cpus: int, events: int, **settings: object) -> Trace:
    trace = Trace(formats("sys_exit_write"), cpus=cpus, **settings)  # type: ignore[arg-type]
    for cpu in range(cpus):
        for number in range(events):
            trace.event(cpu, 1_000 + number * cpus + cpu, cpu, "sys_exit_write", {"ret": number})
    return trace


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_thousand_cpus(compression: Compression, tmp_path: Path) -> None:
    cpus, events = 1100, 80
    source = _many_cpus(cpus, events, compression=compression).write(tmp_path / "trace.dat")
    assert peak_kib(source, tmp_path / "peak.db", "--all") < _MAX_KIB
    run = Ingested(source, tmp_path)
    # ts and seq have the same order, and every event of every CPU is there once
    assert run.rows(
        "SELECT count(*), count(DISTINCT ts), sum(ts - 1000 = seq - 1), sum(cpu = tid)"
        " FROM ev_sys_exit_write"
    ) == [(cpus * events,) * 4]


def test_pieces_larger_than_a_block_are_read_in_parts(tmp_path: Path) -> None:
    """One chunk has all pages of a CPU: more than a block of half a MiB may take at once."""
    cpus, events = 2, 40_000
    trace = _many_cpus(cpus, events, compression="zlib", pages_per_chunk=1000)
    source = trace.write(tmp_path / "trace.dat")
    run = Ingested(source, tmp_path)
    assert run.column("SELECT count(DISTINCT ts) FROM ev_sys_exit_write") == [cpus * events]
    assert run.column("SELECT max(abs(ts - 1000 - seq + 1)) FROM ev_sys_exit_write") == [0]
    assert run.meta("damaged") == 0


def test_many_cpus_and_many_formats(tmp_path: Path) -> None:
    """A count for each format of each CPU would take gigabytes."""
    many = [
        build_format("many", f"e{i}", 1000 + i, ("int x",), '"%d", REC->x') for i in range(8000)
    ]
    trace = Trace(many, cpus=4000, page_bytes=512)
    for cpu in range(trace.cpus):
        trace.event(cpu, 1 + cpu, 1, f"e{cpu}", {"x": cpu})
    source = trace.write(tmp_path / "trace.dat")
    assert peak_kib(source, tmp_path / "run.db", "--events", "many:e7") < _MAX_KIB


def test_formats_that_hang_the_parser_take_bounded_time(tmp_path: Path) -> None:
    """Each format is hard on libtraceevent; the program gives all of them together some seconds."""
    nested = '"%d", ' + "(" * 200_000
    bad = [EventFormat("bad", f"b{i}", 500 + i, _deep(i, nested), ()) for i in range(40)]
    trace = Trace([*formats("sys_exit_write"), *bad])
    trace.event(0, 1, 1, "sys_exit_write", {"ret": 5})
    with hang_guard():
        run = Ingested(trace, tmp_path)
    assert run.column("SELECT count(*) FROM ev_sys_exit_write") == [1]


def _deep(number: int, print_fmt: str) -> str:
    return build_format("bad", f"b{number}", 500 + number, ("int x",), print_fmt).text
