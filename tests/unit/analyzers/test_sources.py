# SPDX-License-Identifier: Apache-2.0
"""Which file of a run is its trace, and who reads it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from wbscope.base.errors import InputError
from wbscope.run.source import Kind, find_source

PACKET = b"\x0a\x04\x08\x01\x10\x02"
DAT = b"\x17\x08\x44tracing6\0"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (DAT, Kind.TRACE),
        (PACKET, Kind.PERFETTO),
        (gzip.compress(PACKET, mtime=0), Kind.PERFETTO),
        (b"PK\x03\x04 and more", Kind.PACKED),
        (b"SQLite format 3\0", Kind.DATABASE),
        (b"# tracer: nop\n", Kind.TRACE),
        # A line break first, and one where a packet of that length would end.
        (b"\n#" + b"x" * 0x23 + b"\n#\n", Kind.TRACE),
        (gzip.compress(b"# tracer: nop\n", mtime=0), Kind.PACKED),
        (gzip.compress(PACKET * 9, mtime=0)[:15], Kind.PACKED),
    ],
)
def test_kind_is_told_by_content(tmp_path: Path, content: bytes, kind: Kind) -> None:
    path = tmp_path / "trace.pftrace"
    path.write_bytes(content)
    source = find_source(str(path))
    assert (source.kind, source.trace, source.folder) == (kind, path, None)


@pytest.mark.parametrize(
    ("names", "trace", "kind"),
    [
        (["trace.dat", "trace.pftrace", "trace.txt"], "trace.dat", Kind.TRACE),
        (["trace.pftrace", "trace.txt"], "trace.pftrace", Kind.PERFETTO),
        (["trace.perfetto-trace.gz", "vmstat.after"], "trace.perfetto-trace.gz", Kind.PERFETTO),
        (["trace.txt", "run.db"], "trace.txt", Kind.TRACE),
    ],
)
def test_the_trace_of_a_folder(tmp_path: Path, names: list[str], trace: str, kind: Kind) -> None:
    for name in names:
        (tmp_path / name).write_bytes({".dat": DAT, ".txt": b"text"}.get(name[-4:], PACKET))
    source = find_source(str(tmp_path))
    assert (source.trace, source.kind) == (tmp_path / trace, kind)
    assert source.folder == tmp_path
    assert source.inputs()[0] == tmp_path / trace


def test_two_traces_are_an_error(tmp_path: Path) -> None:
    for name in ("trace.pftrace", "trace.pftrace.gz"):
        (tmp_path / name).write_bytes(PACKET)
    with pytest.raises(InputError) as caught:
        find_source(str(tmp_path))
    assert caught.value.slug == "two-traces"
    assert caught.value.have == "trace.pftrace, trace.pftrace.gz"
