# SPDX-License-Identifier: Apache-2.0
"""Damaged files: whatever is cut or overwritten, the end is an answer or one clear error."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from support.kernel_events import formats
from support.tools import ingester_path, run
from support.tracedat import Trace

_KINDS: dict[str, dict[str, Any]] = {
    "v6": {"version": 6},
    "v7": {},
    "v7-zlib": {"compression": "zlib"},
    "v7-zstd": {"compression": "zstd"},
}
_SEED = 23
_CUTS = 97
_SPOILED = 97
_GOOD_ENDS = (0, 3)


def _file(kind: str) -> bytes:
    trace = Trace(formats("sys_exit_write"), cpus=2, cmdlines={11: "dd"}, **_KINDS[kind])
    for number in range(8):
        cpu = number % 2
        trace.event(cpu, (10_000 + number) * 1_000_000, 11, "sys_exit_write", {"ret": number})
        if number in (2, 3):
            trace.page_break(cpu)
    return trace.encode()


def _ingest(data: bytes, folder: Path, what: str) -> int:
    """Ingest the bytes; check that the end is one of the two that are allowed."""
    source, database = folder / "trace.dat", folder / "run.db"
    source.write_bytes(data)
    database.unlink(missing_ok=True)
    result = run([ingester_path(), "sqlite", source, "-o", database, "--all", "--json-lines"])
    assert result.returncode in _GOOD_ENDS, f"{what}: exit {result.returncode}: {result.stderr}"
    assert result.stdout == "", what
    others = sorted(path.name for path in folder.iterdir() if path != source)
    assert others == (["run.db"] if result.returncode == 0 else []), what
    last = json.loads(result.stderr.splitlines()[-1])
    assert last["type"] == ("done" if result.returncode == 0 else "error"), what
    if last["type"] == "error":
        assert last["slug"], what
        assert last["message"], what
        assert last["object"].endswith("trace.dat"), what
    return result.returncode


@pytest.mark.parametrize("kind", _KINDS)
def test_a_whole_file_is_good(kind: str, tmp_path: Path) -> None:
    assert _ingest(_file(kind), tmp_path, "whole") == 0


@pytest.mark.quick("v7-zstd")
@pytest.mark.parametrize("kind", _KINDS)
def test_a_file_cut_anywhere(kind: str, tmp_path: Path) -> None:
    data = _file(kind)
    places = {0, 1, 9, 12, 17, len(data) - 1}
    places |= set(random.Random(_SEED).sample(range(len(data)), _CUTS))
    for place in sorted(places):
        _ingest(data[:place], tmp_path, f"cut at {place} of {len(data)}")


@pytest.mark.quick("v7-zstd")
@pytest.mark.parametrize("kind", _KINDS)
def test_bytes_changed_anywhere(kind: str, tmp_path: Path) -> None:
    data = _file(kind)
    chance = random.Random(_SEED)
    filled = [place for place in range(len(data) - 4) if any(data[place : place + 4])]
    for place in chance.sample(filled, _SPOILED):
        changed = chance.choice((b"\xff" * 4, bytes(4), chance.randbytes(4)))
        spoiled = data[:place] + changed + data[place + 4 :]
        _ingest(spoiled, tmp_path, f"{changed.hex()} at {place} of {len(data)}")


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 100, b"# tracer: nop\n", b"\x17\x08\x44tracing9\0\0\x08"],
    ids=["empty", "zeros", "text", "version 9"],
)
def test_other_files_are_refused(data: bytes, tmp_path: Path) -> None:
    assert _ingest(data, tmp_path, repr(data)) == 3
