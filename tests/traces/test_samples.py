# SPDX-License-Identifier: Apache-2.0
"""Every kind of field, guests' clocks and killed recorders, against their emitters' numbers."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import pytest
from support.archives import unpacked
from support.cli import Wbscope, check_error
from support.loaded import LoadedRun, Value, address_text, mask_text
from support.report import RawReport
from support.tools import ingester_path, run

# Every kind of field, against what the module that emitted it computes.
#
# trace-cmd is no judge of some of them: it prints the bytes behind an empty array, reads on behind
# a text that fills its array, and stops at a type it does not know. So each value is worked out
# here as tools/record-samples/module/wbscope_samples.c does.

TRACES = unpacked("data") / "traces"
ROUNDS = range(9)
TEXTS = ["", "plain", "two words", "café", "bad \ufffd byte"]
TEXTS += ["a longer text, of more than thirty-two bytes, for a change"]


@pytest.fixture(scope="module", params=["6.1-amd64-v6-samples", "6.1-amd64-v7-samples"])
def kinds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LoadedRun:
    database = tmp_path_factory.mktemp("samples") / "run.db"
    trace = TRACES / str(request.param) / "trace.dat"
    result = run([ingester_path(), "sqlite", trace, "--all", "-o", database])
    assert result.returncode == 0, result.stderr
    return LoadedRun(database)


def values(kinds: LoadedRun, event: str, names: str) -> list[tuple[Value, ...]]:
    return [row[4:] for row in kinds.records(f"wbscope_samples:{event}", names.split())]


def test_numbers(kinds: LoadedRun) -> None:
    rows = values(kinds, "sample_fixed", "a8 b8 a16 b16 a32 b32 a64 yes a_long kind flags")
    for i, row in zip(ROUNDS, rows, strict=True):
        bytes_and_shorts = (-i, 255 - i, -300 * i, 65535 - i)
        longer = (-70000 * i, 4294967295 - i, -5000000000 * i)
        assert row == (*bytes_and_shorts, *longer, i & 1, -i, {1: 1, 2: 2}.get(i, -3), 1 << i | 1)


def test_numbers_of_64_bits_keep_their_bits(kinds: LoadedRun) -> None:
    assert values(kinds, "sample_fixed", "b64 b_long pointer") == [(-1 - i,) * 3 for i in ROUNDS]


def test_fixed_arrays(kinds: LoadedRun) -> None:
    rows = values(kinds, "sample_fixed", "name mac shorts words longs")
    for i, (name, mac, shorts, words, longs) in zip(ROUNDS, rows, strict=True):
        assert name == "12345678"[:i]
        assert mac == bytes(0x50 + byte * i for byte in range(6))
        assert json.loads(str(shorts)) == [-1000 * i, 0, 1000 * i]
        assert json.loads(str(words)) == [4000000000 + i, 4000000001 + i]
        assert json.loads(str(longs)) == [6000000000 * i, -6000000000 * i]


def test_a_structure_is_its_bytes(kinds: LoadedRun) -> None:
    for i, (pair,) in zip(ROUNDS, values(kinds, "sample_fixed", "pair"), strict=True):
        # u16, a gap of two bytes that nobody sets, u32
        assert isinstance(pair, bytes)
        assert (pair[:2], pair[4:]) == (struct.pack("<H", i), struct.pack("<I", 100000 * i))


@pytest.mark.parametrize("event", ["sample_dynamic", "sample_relative"])
def test_dynamic_fields(kinds: LoadedRun, event: str) -> None:
    rows = values(kinds, event, "round text list longs blob mask address")
    for i, (number, text, integers, longs, blob, mask, address) in zip(ROUNDS, rows, strict=True):
        assert (number, text) == (i, TEXTS[i % len(TEXTS)])
        length = i % 8
        assert json.loads(str(integers)) == [(k - 3) * 100003 * i for k in range(8)][:length]
        assert json.loads(str(longs)) == [(1 << 64) - 59 - k * i for k in range(4)][:length]
        size = 3001 if i == 5 else 3 * i
        assert blob == bytes((k * 7 + i) % 256 for k in range(size))
        words = -(-min(13 + 31 * i, 128) // 64)
        bits = (0x5A5A5A5A << i | 0x81 << 64) % (1 << 64 * words)
        assert mask == mask_text(bits, 8 * words)
        assert address == (address_text(socket_address(i)) or b"")


def socket_address(i: int) -> bytes:
    """sockaddr_in, sockaddr_in6 or none."""
    if i % 3 == 0:
        return struct.pack("<H", 2) + struct.pack(">HI8x", 8000 + i, 0xC0000200 + i)
    if i % 3 == 1:
        return struct.pack("<H", 10) + struct.pack(">HIIIIII", 9000 + i, 0, 0x20010DB8, 0, 0, i, 0)
    return b""


def test_dynamic_characters(kinds: LoadedRun) -> None:
    assert values(kinds, "sample_dynamic", "chars") == [("ab",)] * len(ROUNDS)


def test_labels(kinds: LoadedRun) -> None:
    rows = kinds.rows(
        "SELECT field, value, label, kind FROM enum_label WHERE event = ?",
        "wbscope_samples:sample_fixed",
    )
    assert set(rows) == {
        ("kind", 1, "one", "symbol"),
        ("kind", 2, "two", "symbol"),
        ("kind", -3, "minus three", "symbol"),
        ("flags", 1, "LOW", "flag"),
        ("flags", 2, "NEXT", "flag"),
        ("flags", 4, "THIRD", "flag"),
    }


def test_a_type_that_no_parser_knows_is_kept_as_bytes(kinds: LoadedRun) -> None:
    assert kinds.is_raw("wbscope_samples:sample_unparsable")
    rows = kinds.rows(
        f'SELECT payload FROM "{kinds.tables["wbscope_samples:sample_unparsable"]}" ORDER BY seq'
    )
    # int, a gap of four bytes that nobody sets, a pointer
    payloads = [row[0] for row in rows]
    assert all(isinstance(payload, bytes) and len(payload) == 16 for payload in payloads)
    assert [(p[:4], p[8:]) for p in payloads if isinstance(p, bytes)] == [
        (struct.pack("<i", i), struct.pack("<Q", 0x1000 * i)) for i in ROUNDS
    ]
    assert kinds.stats["formats_not_parsed"] == 1


def test_a_print_format_that_no_parser_knows(kinds: LoadedRun) -> None:
    assert values(kinds, "sample_unprintable", "round") == [(i,) for i in ROUNDS]


def test_names_that_tables_have_for_themselves(kinds: LoadedRun) -> None:
    rows = values(kinds, "sample_names", "ts cpu seq rowid select")
    assert rows == [(i, i + 1, i + 2, i + 3, i + 4) for i in ROUNDS]


def test_marks(kinds: LoadedRun) -> None:
    rows = kinds.rows(f'SELECT buf FROM "{kinds.tables["ftrace:print"]}" ORDER BY seq')
    texts = [str(row[0]).rstrip("\n") for row in rows]
    assert texts[: len(ROUNDS)] == [f"print without a constant {i}" for i in ROUNDS]
    assert texts[len(ROUNDS)].startswith("a mark from ")
    assert texts[len(ROUNDS) + 1] == "no newline, 100%"


def test_trace_printk_is_written_out(kinds: LoadedRun) -> None:
    rows = kinds.rows(f'SELECT text FROM "{kinds.tables["ftrace:bprint"]}" ORDER BY seq')
    assert [str(row[0]).rstrip("\n") for row in rows] == [
        f"trace_printk round {i} of {TEXTS[i % len(TEXTS)]}" for i in ROUNDS
    ]
    rows = kinds.rows(f'SELECT text FROM "{kinds.tables["ftrace:bputs"]}"')
    assert {str(row[0]).rstrip("\n") for row in rows} == {"trace_puts of a constant"}


def test_a_raw_mark_keeps_its_bytes(kinds: LoadedRun) -> None:
    ((ident, buf),) = kinds.rows(f'SELECT id, buf FROM "{kinds.tables["ftrace:raw_data"]}"')
    assert ident == 0x04030201
    # The kernel reserves the id twice, and the ring buffer fills the record up to four bytes.
    assert isinstance(buf, bytes)
    assert buf.startswith(b"raw bytes\0\xff")
    assert len(buf) <= 16


# Pairs of a host's and a guest's file (`trace-cmd record -A`): the guest's clock is corrected.
#
# That every time stamp is the one that `trace-cmd report` prints, test_forms.py tests for all
# files.

PAIRS = [
    ("6.1-amd64-v7-host", "6.1-amd64-v7-guest"),
    ("6.1-amd64-v6-host", "6.1-amd64-v7-guest-of-v6"),
    ("7.2-amd64-v7-host", "7.2-amd64-v7-guest"),
]


@pytest.mark.parametrize(("host", "guest"), PAIRS)
def test_the_files_know_each_other(host: str, guest: str) -> None:
    host_options = RawReport(TRACES / host / "trace.dat").trace_cmd("dump", "--options")
    guest_options = RawReport(TRACES / guest / "trace.dat").trace_cmd("dump", "--options")
    named = re.search(r"Option GUEST.*\n.*\n(0x\w+) \[trace id\]", host_options)
    own = re.search(r"Option TRACEID.*\n(0x\w+)", guest_options)
    assert named is not None
    assert own is not None
    assert named[1] == own[1]


@pytest.mark.parametrize(
    ("guest", "samples"),
    [
        ("6.1-amd64-v7-guest", 2),
        ("6.1-amd64-v7-guest-interval", 3),
        ("6.1-amd64-v7-guest-of-v6", 2),
        ("7.2-amd64-v7-guest", 2),
    ],
)
def test_the_guests_clock_is_corrected(guest: str, samples: int, tmp_path: Path) -> None:
    trace = TRACES / guest / "trace.dat"
    report = RawReport(trace)
    options = report.trace_cmd("dump", "--options")
    shifts = [int(s) for s in re.findall(r"^\s*(-?\d+) 1 0 \d+\[offset \*", options, re.MULTILINE)]
    assert len(shifts) == samples * 2  # of each CPU
    database = tmp_path / "run.db"
    result = run([ingester_path(), "sqlite", trace, "--all", "-o", database])
    assert result.returncode == 0, result.stderr
    meta = LoadedRun(database).meta
    corrected = sorted(report.time_stamps())
    assert meta["first_ts"] == min(ts for _, ts in corrected)
    assert meta["last_ts"] == max(ts for _, ts in corrected)
    recorded = sorted(report.time_stamps("--raw-ts"))
    moves = {after[1] - before[1] for after, before in zip(corrected, recorded, strict=True)}
    assert moves - {0}, "the correction moves nothing: the test proves nothing"
    assert min(shifts) <= min(moves) <= max(moves) <= max(shifts)


# What is left of recordings that were killed or met a full disk: never a quiet half answer.

KILLED = unpacked("data") / "killed"


@pytest.mark.parametrize(
    ("name", "slug", "fix"),
    [
        ("v7-killed-late", "no-options", "trace-cmd restore"),
        ("v6-full-24k", "truncated-section", ""),
        ("v6-full-28k", "unfinished-trace", "trace-cmd restore"),
        ("v7-full-8k", "unfinished-trace", "trace-cmd restore"),
    ],
)
def test_when_nothing_can_be_read_the_error_says_why(
    name: str, slug: str, fix: str, tmp_path: Path
) -> None:
    database = tmp_path / "run.db"
    result = run([ingester_path(), "sqlite", KILLED / name / "trace.dat", "--all", "-o", database])
    assert result.returncode == 3, result.stderr
    check_error(result.stderr, slug, "fix: ", fix)
    assert list(tmp_path.iterdir()) == []


def read(name: str, tmp_path: Path) -> LoadedRun:
    """The database of a file that is good in parts."""
    database = tmp_path / "run.db"
    trace = KILLED / name / "trace.dat"
    result = run([ingester_path(), "sqlite", trace, "--all", "-o", database])
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith("warning[damaged-trace]: ")
    loaded = LoadedRun(database)
    assert loaded.meta["damaged"] == 1
    assert "did not finish" in str(loaded.meta["damage"])
    return loaded


def test_a_cpu_that_was_never_written_is_damage(tmp_path: Path) -> None:
    counts = read("v6-full-32k", tmp_path).counts()
    report = RawReport(KILLED / "v6-full-32k" / "trace.dat")
    assert sum(counts.values()) == len(report.events) == 60


def test_what_was_written_of_a_version_7_file_is_read(tmp_path: Path) -> None:
    loaded = read("v7-full-12k", tmp_path)
    # The report has no line of it: trace-cmd stops at the CPU that is missing. What CPU 0 had
    # recorded, the kernel told in cpu_stat.
    ((entries,),) = loaded.rows("SELECT value FROM cpu_stat WHERE cpu = 0 AND key = 'entries'")
    assert sum(loaded.counts().values()) == entries == 53


def test_a_recorder_killed_in_the_middle_leaves_no_trace_dat(
    wbscope: Wbscope, tmp_path: Path
) -> None:
    result = wbscope.run("ingest", KILLED / "v7-killed", "-o", tmp_path / "run.db")
    assert result.returncode == 3
    parts = ("trace.dat.cpu0", "trace.dat.cpu1")
    check_error(result.stderr, "no-trace", *parts, "trace-cmd restore")
    assert list(tmp_path.iterdir()) == []
