# SPDX-License-Identifier: Apache-2.0
"""What a recorder leaves that was killed, or whose disk was full."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from support.ingested import Ingested, refused
from support.kernel_events import formats
from support.tracedat import Buffer, Trace

_PER_CPU = 6
_NAMES = ("", "second")


def _trace(cpus: int = 3, buffers: int = 1, **settings: Any) -> Trace:
    """Six events on two pages of each CPU and instance, all in the same time."""
    trace = Trace(
        formats("sys_exit_write"),
        cpus=cpus,
        buffers=[Buffer(name) for name in _NAMES[:buffers]],
        **settings,
    )
    for buffer in range(buffers):
        for cpu in range(cpus):
            for number in range(_PER_CPU):
                if number == _PER_CPU // 2:
                    trace.page_break(cpu, buffer=buffer)
                ts = 1_000 + 10 * number + cpu
                values = {"ret": 100 * buffer + 10 * cpu + number}
                trace.event(cpu, ts, 7, "sys_exit_write", values, buffer=buffer)
    return trace


def _leftovers(trace: Trace, folder: Path) -> None:
    """The pages of each CPU in files of their own, as trace-cmd record keeps them."""
    for buffer in trace.buffers:
        name = f".{buffer.name}" if buffer.name else ""
        for cpu in range(trace.cpus):
            path = folder / f"trace.dat{name}.cpu{cpu}"
            path.write_bytes(trace.cpu_pages(buffer, cpu))


def _without_options(trace: Trace) -> bytes:
    """A version 7 file whose recorder never wrote its options: 0 where their offset belongs."""
    data = trace.encode()
    compression = f"{trace.compression}\0".encode()
    at = data.index(compression) + len(compression)
    at = data.index(b"\0", at) + 1
    return data[:at] + bytes(8) + data[at + 8 :]


@pytest.mark.parametrize("compression", ["none", "zstd", "zlib"])
@pytest.mark.parametrize("buffers", [1, 2])
def test_files_of_each_cpu_beside_the_trace(compression: Any, buffers: int, tmp_path: Path) -> None:
    trace = _trace(buffers=buffers, compression=compression)
    (tmp_path / "trace.dat").write_bytes(_without_options(trace))
    _leftovers(trace, tmp_path)
    run = Ingested(tmp_path / "trace.dat", tmp_path)
    assert run.meta("damaged") == 1
    assert "trace.dat*.cpu*" in run.meta("damage")
    found = run.rows(
        "SELECT name, cpu, count(*), min(ret) FROM ev_sys_exit_write e"
        " JOIN buffer b ON b.id = e.buffer GROUP BY 1, 2"
    )
    assert found == [
        (name, cpu, _PER_CPU, 100 * index + 10 * cpu)
        for index, name in enumerate(_NAMES[:buffers])
        for cpu in range(3)
    ]


@pytest.mark.parametrize("version", [6, 7])
def test_such_files_replace_records_that_were_cut_off(version: int, tmp_path: Path) -> None:
    trace = _trace(version=version)
    data = trace.encode()
    place = data.rindex(struct.pack("<Q", 1_000 + 2)) + 8  # in the last CPU's first page
    (tmp_path / "trace.dat").write_bytes(data[:place])
    _leftovers(trace, tmp_path)
    run = Ingested(tmp_path / "trace.dat", tmp_path)
    assert run.meta("loaded_count") == 3 * _PER_CPU
    assert run.meta("damaged") == 1


def test_such_files_are_left_alone_beside_a_whole_trace(tmp_path: Path) -> None:
    trace = _trace()
    _leftovers(_trace(cpus=9), tmp_path)
    run = Ingested(trace, tmp_path)
    assert run.meta("loaded_count") == 3 * _PER_CPU
    assert run.meta("damaged") == 0


def test_they_are_no_sidecars(tmp_path: Path) -> None:
    trace = _trace()
    folder = tmp_path / "run"
    folder.mkdir()
    trace.write(folder / "trace.dat")
    _leftovers(trace, folder)
    assert Ingested(folder, tmp_path).rows("SELECT name FROM sidecar_file") == []


def test_a_folder_with_nothing_else_says_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    _leftovers(_trace(), folder)
    error = refused(folder, tmp_path)
    assert error["slug"] == "killed-recorder"
    assert "trace-cmd restore -c" in error["fix"]


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_the_table_of_cpus_is_cut_off(compression: Any, tmp_path: Path) -> None:
    """CPUs of a version 7 file are told apart all the same."""
    trace = _trace(compression=compression)
    data = trace.encode()
    option_bytes = 8 + len("\0mono\0") + 4 + 4 + 3 * 20
    option = data.rindex(trace.pack("HI", 3, option_bytes))  # the BUFFER option
    (tmp_path / "trace.dat").write_bytes(data[: option - 16])
    run = Ingested(tmp_path / "trace.dat", tmp_path)
    found = run.rows("SELECT cpu, count(*), min(ret) FROM ev_sys_exit_write GROUP BY cpu")
    assert found == [(cpu, _PER_CPU, 10 * cpu) for cpu in range(3)]
    assert run.meta("damaged") == 1
    assert ("guesses" in run.meta("damage")) == (compression == "none")


def test_no_option_names_the_records(tmp_path: Path) -> None:
    """A full disk: the options are whole, and none is a BUFFER."""
    trace = _trace(buffers=1)
    trace.buffers = []
    (tmp_path / "trace.dat").write_bytes(trace.encode())
    error = refused(tmp_path / "trace.dat", tmp_path)
    assert error["slug"] == "unfinished-trace"


def test_a_cpu_without_a_place_was_not_written(tmp_path: Path) -> None:
    """Version 6: the table of CPUs is filled in as their data are written."""
    data = _trace(version=6).encode()
    table = data.index(b"flyrecord\0") + 10
    data = data[: table + 16] + bytes(32) + data[table + 48 :]
    (tmp_path / "trace.dat").write_bytes(data)
    run = Ingested(tmp_path / "trace.dat", tmp_path)
    assert run.meta("loaded_count") == _PER_CPU
    assert run.meta("damaged") == 1
    assert "cpu 2 were never written" in run.meta("damage")


@pytest.mark.parametrize("version", [6, 7])
def test_latency_traces_are_refused(version: int, tmp_path: Path) -> None:
    trace = _trace(version=version)
    if version == 6:
        data = trace.encode().replace(b"flyrecord\0", b"latency  \0", 1)
    else:
        trace.buffers = []
        trace.more_options = [(22, trace.pack("Q", 64) + b"\0local\0")]
        data = trace.encode()
    (tmp_path / "trace.dat").write_bytes(data)
    error = refused(tmp_path / "trace.dat", tmp_path)
    assert error["slug"] == "latency-trace"
    assert "trace-cmd report" in error["fix"]
