# SPDX-License-Identifier: Apache-2.0
"""Damage for texts, and for measurements of other tools."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

__all__ = ["NUMBERS", "measurement_mutant", "text_mutant"]


# Lines with other times, other values and other bytes, for any tool's text.
#
# Seeded: a base's name and a number name one mutant for ever.

NUMBERS = (
    *(b"0", b"-1", b"1", b"2147483648", b"4294967295", b"4294967296", b"9223372036854775807"),
    *(b"9223372036854775808", b"18446744073709551615", b"-9223372036854775808"),
    *(b"99999999999999999999999999999999", b"1e999", b"-1e999", b"1e-999", b"nan", b"inf"),
    *(b"0x7fffffffffffffff", b"0xffffffffffffffff", b"00000000000000000001", b"1.5", b"", b"1,5"),
    *("٣".encode(), b"9" * 400, b"1_000"),
)
_STRANGE = (
    *(b"\0", b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\x1b[2J", b"\r", b"\x0b", b"\t\t"),
    *("‮".encode(), "\u2028".encode(), b"%s%n", b"'; DROP TABLE meta; --", b'"', b"\\", b"\xf4\x90"),
)
_STAMP = re.compile(rb"(?<=[ \t])(\d{1,12})\.(\d{6,9})(?=: )")
_NUMBER = re.compile(rb"(?<![A-Za-z0-9_.])-?(?:0x[0-9a-f]+|\d+(?:\.\d+)?)(?![A-Za-z0-9_])")
_LONGEST_NAME = 40
_YEAR_S = 365 * 24 * 3600
Lines = list[bytes]


def text_mutant(base: str, data: bytes, number: int) -> tuple[str, bytes]:
    """What was done, and the text: one to three changes."""
    chance = random.Random(f"text of {base} {number}")
    lines = data.splitlines(keepends=True)
    kinds: list[Callable[[Lines, random.Random], str]] = [
        *(_number, _number, _number, _swap, _repeat, _cut_line, _strange, _drop, _long, _cut),
    ]
    if _STAMP.search(data):
        kinds += [_move, _move, _move]
    done = [
        chance.choice(kinds)(lines, chance) for _ in range(chance.choice((1, 1, 2, 3))) if lines
    ]
    return "; ".join(done), b"".join(lines)


def _move(lines: Lines, chance: random.Random) -> str:
    """The stamps of one line, or of all from it on, by a year and other times."""
    stamped = [index for index, line in enumerate(lines) if _STAMP.search(line)]
    if not stamped:
        return "nothing"
    first = chance.choice(stamped)
    moved = [first]
    if chance.random() < 0.2:
        moved = [index for index in stamped if index >= first]
    by = chance.choice((_YEAR_S, _YEAR_S, -_YEAR_S, 3600, -3600, 10**9, 10**11, -1))
    for index in moved:
        lines[index] = _STAMP.sub(
            lambda match: b"%d.%s" % (max(int(match[1]) + by, 0), match[2]), lines[index]
        )
    return f"{len(moved)} stamps from line {first + 1} by {by} s"


def _number(lines: Lines, chance: random.Random) -> str:
    """One number of a line, or that of the same name in all lines."""
    numbered = [index for index, line in enumerate(lines) if _NUMBER.search(line)]
    if not numbered:
        return "nothing"
    index = chance.choice(numbered)
    match = chance.choice(list(_NUMBER.finditer(lines[index])))
    value = chance.choice(NUMBERS)
    before = lines[index][max(match.start() - _LONGEST_NAME, 0) : match.start()]
    name = re.search(rb"[A-Za-z_]+[=:]\s*$", before)
    if name is not None and chance.random() < 0.3:
        pattern = re.compile(re.escape(name[0]) + rb"-?[0-9][0-9a-fx.]*")
        for place, line in enumerate(lines):
            lines[place] = pattern.sub(lambda _: name[0] + value, line)
        return f"every {name[0]!r} {_shown(value)}"
    lines[index] = lines[index][: match.start()] + value + lines[index][match.end() :]
    return f"line {index + 1}, {match[0]!r} is {_shown(value)}"


def _swap(lines: Lines, chance: random.Random) -> str:
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return f"lines {first + 1} and {second + 1} swapped"


def _repeat(lines: Lines, chance: random.Random) -> str:
    index, count = chance.randrange(len(lines)), chance.choice((2, 3, 1000))
    lines[index : index + 1] = [lines[index]] * count
    return f"line {index + 1} {count} times"


def _cut_line(lines: Lines, chance: random.Random) -> str:
    index = chance.randrange(len(lines))
    at = chance.randrange(len(lines[index]) + 1)
    lines[index] = lines[index][:at] + chance.choice((b"", b"\n"))
    return f"line {index + 1} cut at {at}"


def _drop(lines: Lines, chance: random.Random) -> str:
    index = chance.randrange(len(lines))
    count = chance.choice((1, 1, 5, len(lines)))
    del lines[index : index + count]
    return f"{count} lines dropped at {index + 1}"


def _strange(lines: Lines, chance: random.Random) -> str:
    index = chance.randrange(len(lines))
    at, word = chance.randrange(len(lines[index]) + 1), chance.choice(_STRANGE)
    end = at + chance.choice((0, 0, 1, len(word)))
    lines[index] = lines[index][:at] + word + lines[index][end:]
    return f"line {index + 1} has {word!r} at {at}"


def _long(lines: Lines, chance: random.Random) -> str:
    index = chance.randrange(len(lines))
    at, count = chance.randrange(len(lines[index]) + 1), chance.choice((200, 5000, 300_000))
    byte = chance.choice((b"a", b" ", b"9", b"[", b"(", b"{", b"="))
    lines[index] = lines[index][:at] + byte * count + lines[index][at:]
    return f"line {index + 1} has {count} {byte!r} at {at}"


def _cut(lines: Lines, chance: random.Random) -> str:
    index = chance.randrange(len(lines))
    at = chance.randrange(len(lines[index]) + 1)
    lines[index] = lines[index][:at]
    del lines[index + 1 :]
    return f"cut in line {index + 1} at {at}"


def _shown(value: bytes) -> str:
    return repr(value if len(value) < 40 else value[:10] + b"...")


# Files of fio, perf, mmtests, time and /proc/vmstat with other values, lines and bytes.
#
# Seeded: a base's name and a number name one mutant for ever.

_DEEP = "[" * 3000 + "]" * 3000
# As Python values, and as pieces of JSON that Python would not write.
_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        [],
        {},
        [[]],
        "",
        "x",
        "7",
        -1,
        0,
        1,
        0.5,
        1e308,
        -1e308,
        2**31,
        2**53 + 1,
    ),
    *(2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), 10**400, "9" * 1000, "\0", "\ud800", "٣"),
    *([1] * 1000, {"a": 1}, {"": {}}, [None]),
)
_PIECES = ("1e999", "-1e999", "NaN", "Infinity", "-0", "-0.0", "1E-400", "0x10", "01", _DEEP, "'x'")
_PLACE = "\ue000"  # what a piece stands in for


def measurement_mutant(base: str, data: bytes, number: int) -> tuple[str, bytes]:
    """What was done, and the file: a change of its JSON where it is one, or of its text."""
    chance = random.Random(f"measurement {base} {number}")
    document = _document(data)
    if document is None or chance.random() < 0.4:
        return text_mutant(f"measurement {base}", data, number)
    done = [_change(document, chance) for _ in range(chance.choice((1, 1, 2, 5)))]
    text = json.dumps(document, indent=2)
    for _, piece in done:
        if piece is not None:
            text = text.replace(json.dumps(_PLACE), piece, 1)
    return "; ".join(what for what, _ in done), text.encode("utf-8", "surrogatepass")


def _document(data: bytes) -> Any:
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None


def _change(document: Any, chance: random.Random) -> tuple[str, str | None]:
    """One value, key or list anywhere in the document: what was done, and what it stands for."""
    inside, path = document, "$"
    while True:
        keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        if not keys:
            return f"{path} is empty", None
        key = chance.choice(keys)
        value = inside[key]
        path += f".{key}" if isinstance(inside, dict) else f"[{key}]"
        if not isinstance(value, dict | list) or not value or chance.random() < 0.15:
            break
        inside = value
    how = chance.choice(("value", "value", "value", "piece", "remove", "double", "rename"))
    if how == "piece":
        inside[key] = _PLACE
        piece = chance.choice(_PIECES)
        return f"{path} = {piece[:20]}", piece
    if how == "remove":
        del inside[key]
    elif how == "double" and isinstance(inside, list):
        inside.insert(0, copy.deepcopy(value))
    elif how == "rename" and isinstance(inside, dict):
        inside[chance.choice((*inside, "", "x", f"{key}\0", "a=b", "[x]"))] = inside.pop(key)
    else:
        new = copy.deepcopy(chance.choice(_VALUES))
        inside[key] = new
        return f"{path} = {str(new)[:24]!r}", None
    return f"{how} {path}", None
