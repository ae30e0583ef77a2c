# SPDX-License-Identifier: Apache-2.0
"""Perfetto traces with other bytes, other lengths and parts that are missing.

Seeded: a base's name and a number name one mutant for ever.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache

__all__ = ["packets_of", "perfetto_mutant"]

_PACKET_TAG = 0x0A
_LENGTHS = (0, 1, 127, 128, 2**14, 2**21, 2**28, 2**31, 2**32, 2**63, 2**64 - 1)
_BYTES = (0x00, 0x01, 0x0A, 0x12, 0x7F, 0x80, 0xFF)

_Change = Callable[[bytearray, random.Random, list[tuple[int, int]]], str]


def perfetto_mutant(base: str, data: bytes, number: int) -> tuple[str, bytes]:
    """What was done, and the file: one to three changes."""
    chance = random.Random(f"Perfetto trace {base} {number}")
    out = bytearray(data)
    packets = packets_of(data)
    changes: tuple[_Change, ...] = (*(_byte,) * 5, *(_length,) * 3, _cut, _delete, _double, _swap)
    done = [
        chance.choice(changes)(out, chance, packets) for _ in range(chance.choice((1, 1, 2, 3)))
    ]
    return "; ".join(done), bytes(out)


@cache
def packets_of(data: bytes) -> list[tuple[int, int]]:
    """Start and end of each packet of a good trace.

    Raises: ValueError when it is none.
    """
    return list(_read_packets(data))


def _read_packets(data: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(data):
        start, length, shift = at, 0, 0
        if data[at] != _PACKET_TAG:
            raise ValueError(f"no packet at {at}")
        at += 1
        while at < len(data):
            byte = data[at]
            length |= (byte & 0x7F) << shift
            shift += 7
            at += 1
            if byte < 0x80:
                break
        at += length
        if at > len(data):
            raise ValueError(f"the packet at {start} ends behind the file")
        yield start, at


def _place(out: bytearray, chance: random.Random, packets: list[tuple[int, int]]) -> int:
    """In any packet, near its start more often than not: there are the lengths and ids."""
    start, end = chance.choice(packets)
    end = min(end, start + chance.choice((8, 40, end - start)))
    return min(chance.randrange(start, end), max(len(out) - 1, 0))


def _byte(out: bytearray, chance: random.Random, packets: list[tuple[int, int]]) -> str:
    if not out:
        return "nothing"
    done = []
    for _ in range(chance.choice((1, 1, 1, 5, 30))):
        at = _place(out, chance, packets)
        out[at] = chance.choice((out[at] ^ 1 << chance.randrange(8), chance.choice(_BYTES)))
        done.append(f"{at}={out[at]:#x}")
    return f"bytes {' '.join(done[:6])}"


def _length(out: bytearray, chance: random.Random, packets: list[tuple[int, int]]) -> str:
    at, length = _place(out, chance, packets), chance.choice(_LENGTHS)
    tag = bytes([chance.randrange(1, 16) << 3 | 2]) if chance.random() < 0.5 else b""
    out[at:at] = tag + _varint(length)
    return f"length {length} put in at {at}"


def _cut(out: bytearray, chance: random.Random, packets: list[tuple[int, int]]) -> str:
    at = _place(out, chance, packets)
    del out[at:]
    return f"cut at {at}"


def _delete(out: bytearray, chance: random.Random, packets: list[tuple[int, int]]) -> str:
    at, count = _place(out, chance, packets), chance.choice((1, 2, 8, 100, 5000))
    del out[at : at + count]
    return f"{count} bytes deleted at {at}"


def _double(out: bytearray, chance: random.Random, packets: list[tuple[int, int]]) -> str:
    start, end = chance.choice(packets)
    out[start:start] = out[start:end] * chance.choice((1, 3))
    return f"packet at {start} again"


def _swap(out: bytearray, chance: random.Random, packets: list[tuple[int, int]]) -> str:
    """A packet moves to another place: what it refers to comes after it."""
    start, end = chance.choice(packets)
    packet = bytes(out[start:end])
    del out[start:end]
    at = min(chance.choice(packets)[0], len(out))
    out[at:at] = packet
    return f"packet at {start} moved to {at}"


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
