# SPDX-License-Identifier: Apache-2.0
"""Units that other tools write, as the units of metrics: converted once, on reading."""

from __future__ import annotations

__all__ = ["BYTES_PER_BLOCK", "Unit", "unit_of_text"]

# getrusage(2) counts file system input and output in these.
BYTES_PER_BLOCK = 512

# A unit's name in metrics, and how many of it one of the text's is.
Unit = tuple[str, float]

_TIMES = {"ns": 1, "us": 1_000, "ms": 1_000_000, "msec": 1_000_000, "s": 1_000_000_000}
_BYTES = {
    **{"B": 1, "bytes": 1, "kB": 1000, "KB": 1000, "MB": 1000**2, "GB": 1000**3},
    **{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
}


def unit_of_text(text: str) -> Unit:
    """The unit that a text means; one that is not known stays as it is.

    kB and KB are 1000 bytes, as in budgets and margins; what /proc and time(1) call kB
    is KiB.
    """
    if text in _TIMES:
        return "ns", float(_TIMES[text])
    if text in _BYTES:
        return "bytes", float(_BYTES[text])
    amount, slash, second = text.rpartition("/")
    if slash and second in ("s", "sec") and amount in _BYTES:
        return "bytes/s", float(_BYTES[amount])
    if text == "%":
        return "ratio", 0.01
    if text in ("", "count"):
        return "count", 1.0
    return text, 1.0
