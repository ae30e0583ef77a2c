# SPDX-License-Identifier: Apache-2.0
"""Every kind of field, against what the module that emitted it computes.

trace-cmd is no judge of some of them: it prints the bytes behind an empty array, reads on behind
a text that fills its array, and stops at a type it does not know. So each value is worked out
here as tools/record-samples/module/wbscope_samples.c does.
"""

from __future__ import annotations

import json
import struct

import pytest
from support.archives import unpacked
from support.loaded import LoadedRun, Value, address_text, mask_text
from support.tools import ingester_path, run

TRACES = unpacked("data") / "traces"
ROUNDS = range(9)
TEXTS = ["", "plain", "two words", "café", "bad \ufffd byte"]
TEXTS += ["a longer text, of more than thirty-two bytes, for a change"]


@pytest.fixture(scope="module", params=["6.1-amd64-v6-samples", "6.1-amd64-v7-samples"])
def samples(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LoadedRun:
    database = tmp_path_factory.mktemp("samples") / "run.db"
    trace = TRACES / str(request.param) / "trace.dat"
    result = run([ingester_path(), "sqlite", trace, "--all", "-o", database])
    assert result.returncode == 0, result.stderr
    return LoadedRun(database)


def values(samples: LoadedRun, event: str, names: str) -> list[tuple[Value, ...]]:
    return [row[4:] for row in samples.records(f"wbscope_samples:{event}", names.split())]


def test_numbers(samples: LoadedRun) -> None:
    rows = values(samples, "sample_fixed", "a8 b8 a16 b16 a32 b32 a64 yes a_long kind flags")
    for i, row in zip(ROUNDS, rows, strict=True):
        bytes_and_shorts = (-i, 255 - i, -300 * i, 65535 - i)
        longer = (-70000 * i, 4294967295 - i, -5000000000 * i)
        assert row == (*bytes_and_shorts, *longer, i & 1, -i, {1: 1, 2: 2}.get(i, -3), 1 << i | 1)


def test_numbers_of_64_bits_keep_their_bits(samples: LoadedRun) -> None:
    assert values(samples, "sample_fixed", "b64 b_long pointer") == [(-1 - i,) * 3 for i in ROUNDS]


def test_fixed_arrays(samples: LoadedRun) -> None:
    rows = values(samples, "sample_fixed", "name mac shorts words longs")
    for i, (name, mac, shorts, words, longs) in zip(ROUNDS, rows, strict=True):
        assert name == "12345678"[:i]
        assert mac == bytes(0x50 + byte * i for byte in range(6))
        assert json.loads(str(shorts)) == [-1000 * i, 0, 1000 * i]
        assert json.loads(str(words)) == [4000000000 + i, 4000000001 + i]
        assert json.loads(str(longs)) == [6000000000 * i, -6000000000 * i]


def test_a_structure_is_its_bytes(samples: LoadedRun) -> None:
    for i, (pair,) in zip(ROUNDS, values(samples, "sample_fixed", "pair"), strict=True):
        # u16, a gap of two bytes that nobody sets, u32
        assert isinstance(pair, bytes)
        assert (pair[:2], pair[4:]) == (struct.pack("<H", i), struct.pack("<I", 100000 * i))


@pytest.mark.parametrize("event", ["sample_dynamic", "sample_relative"])
def test_dynamic_fields(samples: LoadedRun, event: str) -> None:
    rows = values(samples, event, "round text list longs blob mask address")
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


def test_dynamic_characters(samples: LoadedRun) -> None:
    assert values(samples, "sample_dynamic", "chars") == [("ab",)] * len(ROUNDS)


def test_labels(samples: LoadedRun) -> None:
    rows = samples.rows(
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


def test_a_type_that_no_parser_knows_is_kept_as_bytes(samples: LoadedRun) -> None:
    assert samples.is_raw("wbscope_samples:sample_unparsable")
    rows = samples.rows(
        f'SELECT payload FROM "{samples.tables["wbscope_samples:sample_unparsable"]}" ORDER BY seq'
    )
    # int, a gap of four bytes that nobody sets, a pointer
    payloads = [row[0] for row in rows]
    assert all(isinstance(payload, bytes) and len(payload) == 16 for payload in payloads)
    assert [(p[:4], p[8:]) for p in payloads if isinstance(p, bytes)] == [
        (struct.pack("<i", i), struct.pack("<Q", 0x1000 * i)) for i in ROUNDS
    ]
    assert samples.stats["formats_not_parsed"] == 1


def test_a_print_format_that_no_parser_knows(samples: LoadedRun) -> None:
    assert values(samples, "sample_unprintable", "round") == [(i,) for i in ROUNDS]


def test_names_that_tables_have_for_themselves(samples: LoadedRun) -> None:
    rows = values(samples, "sample_names", "ts cpu seq rowid select")
    assert rows == [(i, i + 1, i + 2, i + 3, i + 4) for i in ROUNDS]


def test_marks(samples: LoadedRun) -> None:
    rows = samples.rows(f'SELECT buf FROM "{samples.tables["ftrace:print"]}" ORDER BY seq')
    texts = [str(row[0]).rstrip("\n") for row in rows]
    assert texts[: len(ROUNDS)] == [f"print without a constant {i}" for i in ROUNDS]
    assert texts[len(ROUNDS)].startswith("a mark from ")
    assert texts[len(ROUNDS) + 1] == "no newline, 100%"


def test_trace_printk_is_written_out(samples: LoadedRun) -> None:
    rows = samples.rows(f'SELECT text FROM "{samples.tables["ftrace:bprint"]}" ORDER BY seq')
    assert [str(row[0]).rstrip("\n") for row in rows] == [
        f"trace_printk round {i} of {TEXTS[i % len(TEXTS)]}" for i in ROUNDS
    ]
    rows = samples.rows(f'SELECT text FROM "{samples.tables["ftrace:bputs"]}"')
    assert {str(row[0]).rstrip("\n") for row in rows} == {"trace_puts of a constant"}


def test_a_raw_mark_keeps_its_bytes(samples: LoadedRun) -> None:
    ((ident, buf),) = samples.rows(f'SELECT id, buf FROM "{samples.tables["ftrace:raw_data"]}"')
    assert ident == 0x04030201
    # The kernel reserves the id twice, and the ring buffer fills the record up to four bytes.
    assert isinstance(buf, bytes)
    assert buf.startswith(b"raw bytes\0\xff")
    assert len(buf) <= 16
