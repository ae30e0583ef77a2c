# SPDX-License-Identifier: Apache-2.0
"""Fields and time stamps, as trace-cmd report shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.formats import EventFormat, parse_format
from support.ftrace_entries import entry_formats, entry_record
from support.kernel_events import formats
from support.loaded import Ingested
from support.report import parse_report
from support.tools import require_program, run
from support.tracedat import Buffer, Trace

# Fields whose bytes need more than an integer or a string to be read.

_KINDS: list[dict[str, Any]] = [{}, {"endian": "big"}, {"version": 6, "endian": "big"}]
_COMMON = (
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
)
_CODE, _HEAP = 0xFFFFFFFF81000000, 0xFFFFFFFF82000000
_KALLSYMS = (
    f"0000000000000000 A fixed_percpu_data\n{_CODE:016x} T _stext\n{_CODE + 0x100:016x} t first\n"
    f"{_CODE + 0x100:016x} t alias_of_first\n{_CODE + 0x200:016x} T second\n"
    f"{_CODE + 0x90000:016x} t module_code\t[ext4]\n"
)
_PRINTK = (
    f'0x{_HEAP:x} : "plain"\n'
    f'0x{_HEAP + 16:x} : "n=%d l=%lu s=%s c=%c h=%hd w=%5d|%-4u| x=%#x p=%p %%\\n"\n'
    f'0x{_HEAP + 32:x} : "by %*d at %pS tab\\tend \\"quoted\\""\n'
)


def _dynamic(relative: bool, decls: list[str], text: str) -> EventFormat:
    """An event of location fields of 4 bytes each."""
    word = "__rel_loc" if relative else "__data_loc"
    lines = ""
    for index, decl in enumerate(decls):
        place = f"offset:{8 + 4 * index};\tsize:4;\tsigned:{int(not decl.startswith('u'))}"
        lines += f"\tfield:{word} {decl};\t{place};\n"
    name = "relative" if relative else "dynamic"
    ident = 700 + relative
    return parse_format(
        "test", f"name: {name}\nID: {ident}\nformat:\n{_COMMON}{lines}\nprint fmt: {text}\n"
    )


def _encode(trace: Trace, fmt: EventFormat, values: list[bytes]) -> bytes:
    """A record of the event; each value lies behind the locations, on a border of 8 bytes."""
    relative = "__rel_loc" in fmt.text
    body = b""
    start = 8 + 4 * len(values)
    locations = b""
    for index, value in enumerate(values):
        body += bytes(-(start + len(body)) % 8)
        at = start + len(body) - (12 + 4 * index if relative else 0)
        locations += trace.pack("I", len(value) << 16 | at)
        body += value
    return trace.pack("HBBi", fmt.id, 0, 0, 1) + locations + body


_DECLS = ["int[] i", "unsigned long[] l", "u64[] u", "s16[] h", "u8[] b", "char[] s"]
_DECLS += ["unsigned long[] mask", "cpumask_t[] cpus", "u8[] addr", "struct odd[] o"]


@pytest.mark.parametrize("settings", _KINDS, ids=str)
@pytest.mark.parametrize("relative", [False, True])
def test_dynamic_fields(settings: dict[str, Any], relative: bool, tmp_path: Path) -> None:
    rel = "rel_" if relative else ""
    text = f'"%s %s %pISpc", __get_{rel}bitmask(mask), __get_{rel}cpumask(cpus), '
    text += f"__get_{rel}sockaddr(addr)"
    fmt = _dynamic(relative, _DECLS, text)
    trace = Trace([fmt], **settings)
    family = trace.pack("H", 2) + b"\x08\x01" + bytes([127, 0, 0, 1]) + bytes(8)
    values = [
        trace.pack("ii", -1, 7),
        trace.pack("QQ", 1 << 63, 2),
        trace.pack("Q", 2**64 - 1),
        trace.pack("hh", -2, 300),
        b"\x01\x02",
        b"text\0",
        trace.pack("Q", 0x8000000100000003),
        trace.pack("QQ", 0x10F, 1),
        family,
        b"odd",
    ]
    trace.raw(0, 1, _encode(trace, fmt, values))
    run_ = Ingested(trace, tmp_path)
    (row,) = run_.rows(f"SELECT i, l, u, h, b, s, mask, cpus, addr, o FROM ev_{fmt.name}")
    assert [json.loads(value) for value in row[:4]] == [
        [-1, 7],
        [1 << 63, 2],
        [2**64 - 1],
        [-2, 300],
    ]
    assert row[4:] == (
        b"\x01\x02",
        "text",
        "80000001,00000003",
        "0-3,8,64",
        "127.0.0.1:2049",
        b"odd",
    )
    assert run_.counter("bad_dynamic_fields") == 0
    kinds = dict(run_.rows("SELECT field, kind FROM event_field WHERE event LIKE 'test:%'"))
    assert [kinds[name] for name in "ilub"] == ["array", "array", "array", "bytes"]
    assert kinds["mask"] == kinds["cpus"] == kinds["addr"] == "text"


def test_longs_of_a_32_bit_kernel(tmp_path: Path) -> None:
    fmt = _dynamic(False, ["unsigned long[] l", "long[] m"], '"%d", 1')
    trace = Trace([fmt], long_bytes=4)
    trace.raw(0, 1, _encode(trace, fmt, [trace.pack("II", 5, 2**32 - 1), trace.pack("i", -3)]))
    assert Ingested(trace, tmp_path).rows("SELECT l, m FROM ev_dynamic") == [
        ("[5,4294967295]", "[-3]")
    ]


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (b"\x0a\0" + b"\x08\x01" + bytes(4) + bytes(15) + b"\x01" + bytes(4), "[::1]:2049"),
        (b"\x02\0" + b"\0\x50" + bytes([10, 0, 0, 9]), b"\x02\0\0\x50\x0a\0\0\x09"),  # too short
        (b"\x01\0/tmp/socket", b"\x01\0/tmp/socket"),
    ],
)
def test_socket_addresses(address: bytes, text: str | bytes, tmp_path: Path) -> None:
    fmt = _dynamic(False, ["u8[] addr"], '"%pISpc", __get_sockaddr(addr)')
    trace = Trace([fmt])
    trace.raw(0, 1, _encode(trace, fmt, [address]))
    assert Ingested(trace, tmp_path).column("SELECT addr FROM ev_dynamic") == [text]


def test_bit_masks_are_those_of_the_report(tmp_path: Path) -> None:
    text = '"%s|%s|%pISpc", __get_bitmask(mask), __get_cpumask(cpus), __get_sockaddr(addr)'
    fmt = _dynamic(False, ["unsigned long[] mask", "cpumask_t[] cpus", "u8[] addr"], text)
    trace = Trace([fmt])
    address = b"\x02\0\x08\x01\x7f\0\0\x01" + bytes(8)
    masks = [trace.pack("Q", 0xF0000000A), trace.pack("QQ", 0x31E, 6)]
    trace.raw(0, 1_000, _encode(trace, fmt, [*masks, address]))
    (row,) = Ingested(trace, tmp_path).rows("SELECT mask, cpus, addr FROM ev_dynamic")
    report = run([require_program("trace-cmd"), "report", "-t", tmp_path / "trace.dat"]).stdout
    assert "|".join(row) in report


def _entries(**settings: Any) -> Trace:
    return Trace(entry_formats(), kallsyms=_KALLSYMS, printk=_PRINTK, **settings)


def _add(trace: Trace, ts: int, name: str, body: bytes) -> None:
    trace.raw(0, ts, entry_record(name, 7, body, trace.endian))


@pytest.mark.parametrize("settings", _KINDS, ids=str)
def test_messages_of_binary_printk(settings: dict[str, Any], tmp_path: Path) -> None:
    trace = _entries(**settings)
    head = trace.pack("Q", _CODE + 0x104)
    number = trace.pack
    _add(trace, 1, "bputs", head + number("Q", _HEAP))
    args = number("i", -5) + number("Q", 1 << 40) + b"abc\0" + b"z" + b"\0" + number("h", -7)
    args += number("iII", 42, 9, 255) + number("Q", 0xDEAD)
    _add(trace, 2, "bprint", head + number("Q", _HEAP + 16) + args)
    _add(trace, 3, "bprint", head + number("QiiQ", _HEAP + 32, 6, 77, _CODE))
    _add(trace, 4, "bprint", head + number("Qi", _HEAP + 16, 1))  # its arguments are cut off
    _add(trace, 5, "bprint", head + number("Q", 0x1234))  # of no known format
    run_ = Ingested(trace, tmp_path)
    assert run_.column("SELECT text FROM ev_bputs") == ["plain"]
    assert run_.column("SELECT text FROM ev_bprint ORDER BY ts") == [
        f"n=-5 l={1 << 40} s=abc c=z h=-7 w=   42|9   | x=0xff p=0xdead %",
        f'by     77 at {_CODE:#x} tab\tend "quoted"',
        None,
        None,
    ]
    assert run_.counter("bad_dynamic_fields") == 1
    assert run_.column("SELECT count(*) FROM printk_format") == [3]


def test_messages_are_those_of_the_report(tmp_path: Path) -> None:
    trace = Trace(entry_formats(), printk=f'0x{_HEAP:x} : "a=%d b=%llx s=%s u=%u\\n"\n')
    args = trace.pack("iQ", -9, 0xABCDEF0123) + b"word\0\0\0\0" + trace.pack("I", 3)
    _add(trace, 1_000, "bprint", trace.pack("QQ", _CODE, _HEAP) + args)
    (text,) = Ingested(trace, tmp_path).column("SELECT text FROM ev_bprint")
    report = run([require_program("trace-cmd"), "report", "-t", tmp_path / "trace.dat"]).stdout
    assert text == "a=-9 b=abcdef0123 s=word u=3"
    assert text in report


@pytest.mark.parametrize("settings", _KINDS, ids=str)
def test_entries_of_ftrace_itself(settings: dict[str, Any], tmp_path: Path) -> None:
    trace = _entries(**settings)
    _add(trace, 1, "function", trace.pack("QQ", _CODE + 0x104, _CODE + 0x200))
    _add(trace, 2, "print", trace.pack("Q", _CODE + 0x208) + b"hello\n\0\0")
    _add(trace, 3, "raw_data", trace.pack("I", 99) + b"\0\x01\xff\0")
    for ts, depth in ((4, 2), (5, 8), (6, 11)):
        callers = [_CODE + 0x110 + i for i in range(depth)]
        _add(
            trace,
            ts,
            "kernel_stack",
            trace.pack("ii", depth, 0) + trace.pack(f"{depth}Q", *callers),
        )
    run_ = Ingested(trace, tmp_path)
    assert run_.column("SELECT buf FROM ev_print") == ["hello\n"]
    assert run_.rows("SELECT id, buf FROM ev_raw_data") == [(99, b"\0\x01\xff\0")]
    stacks = [json.loads(text) for text in run_.column("SELECT caller FROM ev_kernel_stack")]
    assert [len(stack) for stack in stacks] == [2, 8, 11]
    assert stacks[2][10] == _CODE + 0x11A
    assert run_.counter("short_records") == 0
    names = run_.rows(
        "SELECT s.name, s.offset, p.name, p.offset FROM ev_function f"
        " JOIN symbol s ON s.address = f.ip JOIN symbol p ON p.address = f.parent_ip"
    )
    assert names == [("first", 4, "second", 0)]
    assert run_.column("SELECT count(*) FROM symbol") == [3 + 11]


def test_symbols_of_fields_that_are_printed_as_such(tmp_path: Path) -> None:
    """Only those: a number that happens to be an address gets no row."""
    lines = (
        "\tfield:void * shrink;\toffset:8;\tsize:8;\tsigned:0;\n"
        "\tfield:unsigned long other;\toffset:16;\tsize:8;\tsigned:0;\n"
    )
    text = '"100%% %-10s %pS %lx", "a, b", REC->shrink, REC->other'
    fmt = parse_format("test", f"name: slab\nID: 5\nformat:\n{_COMMON}{lines}\nprint fmt: {text}\n")
    trace = Trace([fmt], kallsyms=_KALLSYMS, compression="zstd")
    for ts, shrink in enumerate((_CODE + 0x90010, _CODE - 1, _CODE + 0x200000)):
        trace.event(0, 1 + ts, 1, "slab", {"shrink": shrink, "other": _CODE + 0x100})
    run_ = Ingested(trace, tmp_path)
    found = run_.rows("SELECT name, offset, module FROM symbol")
    assert found == [("module_code", 16, "ext4")]  # the others are too far from any symbol
    assert (
        Ingested(trace, tmp_path, "--events-file", "/dev/null").rows("SELECT * FROM symbol") == []
    )


_NESTED = (
    '"%s %s %s", REC->a ? __print_symbolic(REC->b, {1, "one"}, {2, "two"}) : "none", '
    '__print_flags((REC->c & 0xff) >> 1, "|", {1, "low"}, {0x8000000000000000, "top"}), '
    "__print_array(__get_dynamic_array(l), 1, 8), "
    '__print_hex(REC->a ? REC->b : __print_symbolic(REC->a, {7, "seven"}), 4)'
)


def test_labels_wherever_they_stand(tmp_path: Path) -> None:
    names = ("int a", "int b", "unsigned int c")
    lines = "".join(
        f"\tfield:{decl};\toffset:{8 + 4 * i};\tsize:4;\tsigned:1;\n"
        for i, decl in enumerate(names)
    )
    lines += "\tfield:__data_loc u64[] l;\toffset:20;\tsize:4;\tsigned:0;\n"
    fmt = parse_format(
        "test", f"name: nested\nID: 6\nformat:\n{_COMMON}{lines}\nprint fmt: {_NESTED}\n"
    )
    run_ = Ingested(Trace([fmt]), tmp_path)
    labels = run_.rows("SELECT field, value, label, kind FROM enum_label ORDER BY field, label")
    assert labels == [
        ("a", 7, "seven", "symbol"),
        ("b", 1, "one", "symbol"),
        ("b", 2, "two", "symbol"),
        ("c", 1, "low", "flag"),
        ("c", -(1 << 63), "top", "flag"),
    ]


def test_locations_and_arrays_of_dynamic_events(tmp_path: Path) -> None:
    """Synthetic events give a string 8 bytes; kprobe events an array no length."""
    lines = (
        "\tfield:__data_loc char[] text;\toffset:8;\tsize:8;\tsigned:1;\n"
        "\tfield:u32 words[];\toffset:16;\tsize:8;\tsigned:0;\n"
        "\tfield:struct pair p;\toffset:24;\tsize:8;\tsigned:0;\n"
        "\tfield:unsigned long args[];\toffset:32;\tsize:0;\tsigned:0;\n"
    )
    fmt = parse_format(
        "test", f'name: made\nID: 8\nformat:\n{_COMMON}{lines}\nprint fmt: "%d", 1\n'
    )
    trace = Trace([fmt])
    body = trace.pack("IIIIQQQ", 3 << 16 | 48, 0, 5, 6, 77, 1, 2) + b"ab\0"
    trace.raw(0, 1, trace.pack("HBBi", 8, 0, 0, 1) + body)
    (row,) = Ingested(trace, tmp_path).rows("SELECT text, words, p, args FROM ev_made")
    assert row == ("ab", "[5,6]", trace.pack("Q", 77), "[1,2]")


# Time stamps: clocks, corrections and guests, as trace-cmd report shows them.

_TIME_SHIFT, _GUEST, _TSC2NSEC, _DATE = 12, 13, 14, 1
_CLOCK_KINDS: list[dict[str, Any]] = [{}, {"version": 6}, {"endian": "big"}]
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


@pytest.mark.parametrize("settings", _CLOCK_KINDS, ids=str)
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


@pytest.mark.parametrize("settings", [*_CLOCK_KINDS, {"clock": "x86-tsc"}], ids=str)
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
    "settings", [*_CLOCK_KINDS, {"version": 6, "endian": "big", "long_bytes": 4}], ids=str
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
    [*_CLOCK_KINDS, {"long_bytes": 4}, {"version": 6, "endian": "big", "long_bytes": 4}],
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
