# SPDX-License-Identifier: Apache-2.0
"""Time stamps: clocks, corrections and guests, as trace-cmd report shows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.ingested import Ingested
from support.kernel_events import formats
from support.report import parse_report
from support.tools import require_program, run
from support.tracedat import Buffer, Trace

_TIME_SHIFT, _GUEST, _TSC2NSEC, _DATE = 12, 13, 14, 1
_KINDS: list[dict[str, Any]] = [{}, {"version": 6}, {"endian": "big"}]
Sample = tuple[int, int, int, int]  # time, offset, scaling, fraction


def _shift(trace: Trace, cpus: Sequence[Sequence[Sample]], flags: int = 0) -> tuple[int, bytes]:
    """Option TIME_SHIFT: each CPU's times, offsets and scalings, then all fractions."""
    out = trace.pack("QII", 0xABC, flags, len(cpus))
    for samples in cpus:
        out += trace.pack("I", len(samples))
        for column in range(3):
            out += b"".join(trace.pack("q", sample[column]) for sample in samples)
    for samples in cpus:
        out += b"".join(trace.pack("q", sample[3]) for sample in samples)
    return _TIME_SHIFT, out


def _tsc(trace: Trace, multiplier: int, shift: int, offset: int) -> tuple[int, bytes]:
    return _TSC2NSEC, trace.pack("IIQ", multiplier, shift, offset)


def _trace(stamps: Sequence[int], cpus: int = 1, **settings: Any) -> Trace:
    trace = Trace(formats("sys_exit_write"), cpus=cpus, **settings)
    for number, ts in enumerate(stamps):
        trace.event(number % cpus, ts, 7, "sys_exit_write", {"ret": number})
    return trace


def _ts(run_: Ingested) -> list[int]:
    stamps: list[int] = run_.column("SELECT ts FROM ev_sys_exit_write ORDER BY ret")
    return stamps


def _report_ts(path: Path) -> list[int]:
    result = run([require_program("trace-cmd"), "report", "-t", path])
    assert result.returncode == 0, result.stderr
    events = parse_report(result.stdout.splitlines())
    return [event.ts for event in sorted(events, key=lambda event: int(event.text, 16))]


_STAMPS = [500, 1_000, 1_500, 2_000, 2_600, 3_000, 3_300, 4_000_000_000]
_SAMPLES: list[Sample] = [(1_000, 10, 1, 0), (2_000, 30, 3, 1), (3_000, 70, 5, 2)]


@pytest.mark.parametrize("settings", _KINDS, ids=str)
@pytest.mark.parametrize("interpolated", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_guests_clock_becomes_the_hosts(
    settings: dict[str, Any], interpolated: bool, count: int, tmp_path: Path
) -> None:
    trace = _trace(_STAMPS, **settings)
    samples = _SAMPLES[:count]
    trace.more_options = [_shift(trace, [list(reversed(samples))], int(interpolated))]
    run_ = Ingested(trace, tmp_path)
    assert _ts(run_) == _report_ts(tmp_path / "trace.dat")
    assert _ts(run_) != _STAMPS
    assert run_.rows("SELECT * FROM clock_shift ORDER BY ts") == [(0, *each) for each in samples]
    assert run_.meta("clock_shift") == ("interpolated" if interpolated else "stepwise")
    assert run_.meta("host_trace_id") == "0000000000000abc"


def test_the_correction_by_hand(tmp_path: Path) -> None:
    trace = _trace([1_000, 1_500, 2_500], 1)
    trace.more_options = [_shift(trace, [[(1_000, 10, 3, 1), (2_000, 31, 1, 0)]], 1)]
    # 3/2 of the time; 10, 10 + 21 / 2 rounded up, 10 + 1.5 * 21 rounded up
    assert _ts(Ingested(trace, tmp_path)) == [1_510, 2_250 + 21, 3_750 + 42]


def test_each_cpu_has_its_own_correction(tmp_path: Path) -> None:
    trace = _trace([100, 200, 300], 3)
    trace.more_options = [_shift(trace, [[(0, 5, 1, 0)], [(0, 7, 1, 0)]])]
    assert _ts(Ingested(trace, tmp_path)) == [105, 207, 300]
    assert _report_ts(tmp_path / "trace.dat") == [105, 207, 300]


def test_instances_of_a_guest_keep_its_clock(tmp_path: Path) -> None:
    trace = _trace([100], buffers=[Buffer(), Buffer("second")])
    trace.event(0, 100, 7, "sys_exit_write", {"ret": 1}, buffer=1)
    trace.more_options = [_shift(trace, [[(0, 5, 1, 0)]])]
    assert _ts(Ingested(trace, tmp_path)) == [105, 100]


@pytest.mark.parametrize("damage", ["count", "cpus", "short"])
def test_a_damaged_correction_is_one_error_or_a_warning(damage: str, tmp_path: Path) -> None:
    trace = _trace([100, 200])
    ident, data = _shift(trace, [_SAMPLES])
    if damage == "count":
        data = data[:16] + trace.pack("I", 0xFFFFFFFF) + data[20:]
    elif damage == "cpus":
        data = data[:12] + trace.pack("I", 0xFFFFFFF0) + data[16:]
    else:
        data = data[:40]
    trace.more_options = [(ident, data)]
    run_ = Ingested(trace, tmp_path)
    assert run_.meta("damaged") == 1
    assert run_.messages[0]["slug"] == "damaged-trace"
    assert _ts(run_) == [100, 200]


@pytest.mark.parametrize("settings", [*_KINDS, {"clock": "x86-tsc"}], ids=str)
def test_a_counter_becomes_ns(settings: dict[str, Any], tmp_path: Path) -> None:
    """The option's offset is not added; a date and an offset are."""
    trace = _trace([1_000, 1 << 40], ts_offset=-3, **settings)
    trace.more_options = [_tsc(trace, 0x2AAAAAAB, 31, 12345), (_DATE, b"0x5\0")]
    run_ = Ingested(trace, tmp_path)
    wanted = [(ts * 0x2AAAAAAB >> 31) - 3 + 5_000 for ts in (1_000, 1 << 40)]
    assert _ts(run_) == wanted == _report_ts(tmp_path / "trace.dat")
    assert (run_.meta("tsc_offset"), run_.meta("clock_unit")) == (12345, "ns")


@pytest.mark.parametrize(
    ("clock", "unit", "scope"),
    [
        ("local", "ns", "cpu"),
        ("global", "ns", "machine"),
        ("counter", "ticks", "machine"),
        ("uptime", "ticks", "machine"),
        ("perf", "ns", "cpu"),
        ("mono", "ns", "machine"),
        ("mono_raw", "ns", "machine"),
        ("boot", "ns", "machine"),
        ("tai", "ns", "machine"),
        ("x86-tsc", "ticks", "machine"),
        ("ppc-tb", "ticks", "machine"),
    ],
)
@pytest.mark.parametrize("version", [6, 7])
def test_clocks(version: int, clock: str, unit: str, scope: str, tmp_path: Path) -> None:
    run_ = Ingested(_trace([123_456], clock=clock, version=version), tmp_path)
    assert _ts(run_) == [123_456]
    found = [run_.meta(key) for key in ("clock", "clock_unit", "clock_scope")]
    assert found == [clock, unit, scope]
    assert run_.column("SELECT clock FROM buffer") == [clock]


def test_guests_of_a_host(tmp_path: Path) -> None:
    trace = _trace([1])
    vcpus = trace.pack("IIiIi", 2, 0, 4001, 1, 4002)
    trace.more_options = [
        (_GUEST, b"debian\0" + trace.pack("Q", 0xF00D) + vcpus),
        (_GUEST, b"other\0" + trace.pack("Q", 1) + trace.pack("I", 0)),
    ]
    run_ = Ingested(trace, tmp_path)
    assert run_.rows("SELECT * FROM guest") == [
        (0, "debian", "000000000000f00d"),
        (1, "other", "0000000000000001"),
    ]
    assert run_.rows("SELECT * FROM guest_vcpu") == [(0, 0, 4001), (0, 1, 4002)]
    assert run_.meta("trace_id") == f"{23:016x}"


@pytest.mark.parametrize(
    "settings", [*_KINDS, {"version": 6, "endian": "big", "long_bytes": 4}], ids=str
)
def test_absolute_stamps_over_bit_59(settings: dict[str, Any], tmp_path: Path) -> None:
    """A stamp record has 59 bits; the rest is that of the time before, or one more."""
    long_bytes = settings.get("long_bytes", 8)
    border = 2 << 59
    stamps = [border - 2, border - 1, border + 5, border + 6]
    trace = Trace(formats("sys_exit_write", long_bytes=long_bytes), **settings)
    for number, ts in enumerate(stamps):
        trace.event(0, ts, 7, "sys_exit_write", {"ret": number}, stamp="absolute")
    run_ = Ingested(trace, tmp_path)
    assert _ts(run_) == stamps
    assert _report_ts(tmp_path / "trace.dat")[:2] == stamps[:2]  # it does not carry
    assert run_.counter("time_backwards") == 0


@pytest.mark.parametrize(
    "settings",
    [*_KINDS, {"long_bytes": 4}, {"version": 6, "endian": "big", "long_bytes": 4}],
    ids=str,
)
def test_lost_events_with_and_without_a_count(settings: dict[str, Any], tmp_path: Path) -> None:
    long_bytes = settings.get("long_bytes", 8)
    trace = Trace(formats("sys_exit_write", long_bytes=long_bytes), **settings)
    trace.event(0, 10, 7, "sys_exit_write", {"ret": 0})
    trace.lost(0, 70_000)
    trace.event(0, 20, 7, "sys_exit_write", {"ret": 1})
    trace.lost(0)
    trace.event(0, 30, 7, "sys_exit_write", {"ret": 2})
    run_ = Ingested(trace, tmp_path)
    assert run_.rows("SELECT ts, cpu, count FROM lost_events") == [(20, 0, 70_000), (30, 0, None)]
    assert (run_.meta("lost_gaps_count"), run_.meta("lost_events_count")) == (2, 70_000)
