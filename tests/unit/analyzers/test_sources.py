# SPDX-License-Identifier: Apache-2.0
"""Which file of a run is its trace, and who reads it."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest
from support.cli import Wbscope
from wbscope.base.errors import InputError
from wbscope.source.source import Kind, find_source

PACKET = b"\x0a\x04\x08\x01\x10\x02"
_TEXT = Path(__file__).parents[2] / "data/text/perf-6.1-ns.txt"
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


# The head of a section of pcapng, which begins as a packet would.
_PCAPNG = bytes.fromhex("0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000")


@pytest.mark.parametrize(("content", "told"), [
    (_PCAPNG, "pcapng"), (b"PERFILE2" + bytes(96), "perf.data"), (b"2ELIFREP", "perf.data"),
])  # fmt: skip
def test_files_of_other_programs(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "trace.x").write_bytes(content)
    with pytest.raises(InputError, match=told) as caught:
        find_source(str(tmp_path / "trace.x"))
    assert caught.value.slug == "not-a-run"
    with pytest.raises(InputError) as caught:  # nor is it offered
        find_source(str(tmp_path))
    assert "trace.x" not in str(caught.value.fix)


def test_a_file_of_the_kernel_has_no_size(wbscope: Wbscope, tmp_path: Path) -> None:
    """A trace as the name of a process: /proc has it in a file whose size is 0."""
    text = _TEXT.read_text()
    with subprocess.Popen([text], executable="/bin/cat", stdin=subprocess.PIPE) as process:
        path = Path(f"/proc/{process.pid}/cmdline")
        assert path.stat().st_size == 0
        ran = wbscope.run("query", "event_counts", path, "--json")
        named = find_source(str(path))
        process.communicate()
    assert ran.returncode == 0, ran.stderr
    (tmp_path / "trace.txt").write_text(text)
    plain = wbscope.query("event_counts", tmp_path / "trace.txt")
    assert json.loads(ran.stdout)["rows"] == plain != []
    assert (named.path, named.name) == (path, "cmdline")


def test_a_file_that_is_empty(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(InputError, match="is an empty file"):
        find_source(str(tmp_path / "x"))


def test_a_device_is_not_to_be_saved() -> None:
    """It may never end."""
    with pytest.raises(InputError) as caught:
        find_source("/dev/zero")
    told = "is no regular file and no folder; what ends by itself, save it to a file first"
    assert str(caught.value) == f"/dev/zero: {told}"
    assert caught.value.fix is None


def test_two_traces_are_an_error(tmp_path: Path) -> None:
    for name in ("trace.pftrace", "trace.pftrace.gz"):
        (tmp_path / name).write_bytes(PACKET)
    with pytest.raises(InputError) as caught:
        find_source(str(tmp_path))
    assert caught.value.slug == "two-traces"
    assert caught.value.have == "trace.pftrace, trace.pftrace.gz"
