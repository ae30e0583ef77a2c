# SPDX-License-Identifier: Apache-2.0
"""Files of fio, perf, mmtests, time and /proc/vmstat with other values, lines and bytes.

Seeded: a base's name and a number name one mutant for ever.
"""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from .mutate_texts import text_mutant

__all__ = ["measurement_mutant"]

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
