# SPDX-License-Identifier: Apache-2.0
"""vmstat.samples: /proc/vmstat again and again, each after a line `# ts=NS`."""

from __future__ import annotations

import re

from wbscope.measure.bad import bad, shown
from wbscope.measure.vmstat import Samples, parse_vmstat

__all__ = ["parse_samples"]

_FIX = "write `# ts=NS` before each copy of /proc/vmstat, as wbscope record does"
_STAMP = re.compile(r"# ts=([0-9]{1,19})")


def parse_samples(text: str, subject: str = "vmstat.samples") -> Samples:
    """(ns of the trace clock, counters) of each sample.

    A recorder that is killed cuts the last sample off: that one is left out.

    Raises: InputError.
    """
    pieces: list[tuple[int, int, list[str]]] = []  # ns, number of the first line, lines
    for number, line in enumerate(text.split("\n"), 1):
        if match := _STAMP.fullmatch(line):
            pieces.append((int(match[1]), number + 1, []))
        elif line.strip() and not pieces:
            problem = f"found {shown(line)}, wanted # ts=NS"
            raise bad(subject, problem, _FIX, at=f"line {number}")
        elif line.strip():
            pieces[-1][2].append(f"{line}\n")
    if not pieces:
        raise bad(subject, "has no sample", _FIX)
    whole = len(pieces[0][2])
    if len(pieces) > 1 and (len(pieces[-1][2]) < whole or not text.endswith("\n")):
        pieces.pop()
    return [(ts, parse_vmstat("".join(lines), subject, first)) for ts, first, lines in pieces]
