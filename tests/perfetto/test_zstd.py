# SPDX-License-Identifier: Apache-2.0
"""Packets packed with zstd, which recorders write and engines read from Perfetto v58 on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.cli import Wbscope, check_error
from support.pftrace import Event, TraceBuilder, bytes_field
from wbscope.perfetto.facts import read_facts

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.usefixtures("engine_is_there")

KNOWN = {
    "system_info": {"page_size": 16384, "num_cpus": 7},
    "failed": ("writeback/balance_dirty_pages",),
    "lost_before": {(0, 0)},
}


def test_facts_are_read(few_events: list[Event], tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    TraceBuilder(**KNOWN).write(plain, few_events[:600])
    TraceBuilder(zstd=True, **KNOWN).write(packed, few_events[:600])
    assert packed.stat().st_size < plain.stat().st_size / 2
    facts, wanted = read_facts(packed), read_facts(plain)
    assert facts.has_zstd_events
    assert not wanted.has_zstd_events
    assert (facts.page_bytes, facts.cpus_count, len(facts.gaps)) == (16384, 7, 1)
    wanted.has_zstd_events = True
    assert facts == wanted


def test_what_is_larger_than_a_read(tmp_path: Path) -> None:
    """Unpacked step by step: a part of a packet is no end."""
    trace = tmp_path / "run.pftrace"
    page_size = bytes_field(45, bytes([6 << 3, 64]))
    large = bytes_field(1, bytes_field(900, bytes(5 << 20))) + bytes_field(1, page_size)
    trace.write_bytes(bytes_field(1, bytes_field(133, zstd.compress(large))))
    facts = read_facts(trace)
    assert (facts.page_bytes, facts.damage) == (64, None)


@pytest.mark.parametrize("cut", [0, 3, 40])
def test_damage(few_events: list[Event], tmp_path: Path, cut: int) -> None:
    whole = tmp_path / "whole"
    TraceBuilder().write(whole, few_events[:600])
    data = zstd.compress(whole.read_bytes())
    trace = tmp_path / "run.pftrace"
    for broken in (data[: len(data) // 2], data[:cut] + b"\xff" * 9 + data[cut + 9 :]):
        trace.write_bytes(bytes_field(1, bytes_field(133, broken)))
        assert read_facts(trace).damage is not None


def test_one_within_another(tmp_path: Path) -> None:
    inner = bytes_field(1, bytes_field(133, zstd.compress(b"")))
    trace = tmp_path / "run.pftrace"
    trace.write_bytes(bytes_field(1, bytes_field(133, zstd.compress(inner))))
    assert read_facts(trace).damage == "a compressed packet is within another one"


def test_an_older_engine_is_told_of(
    wbscope: Wbscope, few_events: list[Event], tmp_path: Path
) -> None:
    trace = tmp_path / "run.pftrace"
    TraceBuilder(zstd=True).write(trace, few_events[:600])
    done = wbscope.run("query", "event_counts", trace)
    if done.returncode == 0:
        pytest.skip("this engine reads it")
    check_error(done.stderr, "packed-with-zstd", "v58", "WBSCOPE_TRACE_PROCESSOR")
