# SPDX-License-Identifier: Apache-2.0
"""The trace.dat that record writes: read back by the ingester and by trace-cmd."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from support.formats import Endian, build_format
from support.live import report_counts
from support.loaded import Ingested
from support.ringbuffer import PageLayout, Record, encode_pages
from support.tracedat import Trace
from wbscope.record.choose import Instance
from wbscope.record.pages import Machine, Tail, head_of, write_trace

_TEXT = "test: value=7 text=%s"


def _tracefs(root: Path, trace: Trace) -> Instance:
    """The files of tracefs that the head is made of."""
    data = trace.header_info_bytes()
    size = struct.unpack_from(">Q" if trace.endian == "big" else "<Q", data, 12)[0]
    events = root / "events"
    events.mkdir()
    (events / "header_page").write_bytes(data[20 : 20 + size])
    (events / "header_event").write_bytes(data[20 + size + 13 + 8 :])
    for fmt in trace.formats:
        folder = events / fmt.system / fmt.name
        folder.mkdir(parents=True)
        (folder / "format").write_text(fmt.text)
    (root / "printk_formats").write_text('0x10 : "hello"\n')
    return Instance(root, "own")


def _written(
    folder: Path, endian: Endian, long_bytes: int, page_bytes: int, cpus: tuple[int, ...]
) -> Path:
    """13 events on each of the CPUs."""
    fmt = build_format(
        "test", "value", 301, ("unsigned long value",), '"value=%lu", REC->value',
        long_bytes=long_bytes,
    )  # fmt: skip
    trace = Trace([fmt], 6, endian=endian, long_bytes=long_bytes, page_bytes=page_bytes)
    (folder / "tracefs").mkdir()
    instance = _tracefs(folder / "tracefs", trace)
    layout = PageLayout(page_bytes, long_bytes, endian)
    pages = {}
    for cpu in cpus:
        items = [
            Record(5000 + 10 * n + cpu, fmt.encode({"value": n}, 40 + cpu, endian))
            for n in range(13)
        ]
        pages[cpu] = folder / f"cpu{cpu}"
        # What a killed copier leaves: a page that is not whole.
        pages[cpu].write_bytes(encode_pages(items, layout) + b"cut")
    machine = Machine(">" if endian == "big" else "<", long_bytes, folder / "kallsyms")
    tail = Tail(
        "boot", "Linux host 6.1.0 aarch64", 77, {40: "first", 41: "a b"}, {0: "entries: 3\n"}
    )
    output = folder / "trace.dat"
    count = write_trace(output, head_of(instance, ["test:value"], machine), tail, pages)
    assert count == len(cpus) * page_bytes
    return output


@pytest.mark.parametrize("page_bytes", [1 << 12, 1 << 16])
@pytest.mark.parametrize("long_bytes", [4, 8])
@pytest.mark.parametrize("endian", ["little", "big"])
def test_every_machine(tmp_path: Path, endian: Endian, long_bytes: int, page_bytes: int) -> None:
    trace = _written(tmp_path, endian, long_bytes, page_bytes, (0, 1))
    run = Ingested(trace, tmp_path)
    assert run.rows("SELECT cpu, tid, COUNT(*), SUM(value) FROM ev_value GROUP BY 1, 2") == [
        (0, 40, 13, 78),
        (1, 41, 13, 78),
    ]
    assert run.meta("clock") == "boot"
    assert run.meta("damaged") == 0
    assert run.meta("page_bytes") == page_bytes
    assert run.meta("uname") == "Linux host 6.1.0 aarch64"
    assert run.rows("SELECT tid, comm FROM task ORDER BY tid") == [(40, "first"), (41, "a b")]
    if shutil.which("trace-cmd"):
        assert report_counts(trace) == {"value": 26}


def test_cpus_without_data(tmp_path: Path) -> None:
    """CPU 1 was offline."""
    run = Ingested(_written(tmp_path, "little", 8, 1 << 12, (0, 2)), tmp_path)
    assert run.column("SELECT DISTINCT cpu FROM ev_value ORDER BY cpu") == [0, 2]
    assert run.meta("damaged") == 0


def test_symbols_only_where_a_format_prints_them(tmp_path: Path) -> None:
    kallsyms = tmp_path / "kallsyms"
    kallsyms.write_text("ffffffff81000000 T _stext\n")
    for number, text in enumerate(("%lu", "%pS")):
        fmt = build_format("test", "value", 301, ("unsigned long v",), f'"v={text}", REC->v')
        root = tmp_path / str(number)
        root.mkdir()
        instance = _tracefs(root, Trace([fmt], 6))
        head = head_of(instance, ["test:value"], Machine(kallsyms=kallsyms))
        assert (b"_stext" in head) == (text == "%pS")
