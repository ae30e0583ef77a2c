# SPDX-License-Identifier: Apache-2.0
"""The reclaim lines of July 2011, all of them, with and without the stamps that dmesg adds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.runs import REPOSITORY

_LOG = REPOSITORY / "tests" / "data" / "text" / "kernel-log-2011-07.txt"
_LINE = re.compile(
    r"zone=(\w+) .*inactive=(\d+)\((\d+)\) .*dirty=(\d+)\((\d+)\) writeback=(\d+)\((\d+)\)"
)
_PAGE = 4096


@pytest.mark.parametrize("stamped", [False, True])
def test_zones_when_reclaim_wrote(wbscope: Wbscope, tmp_path: Path, stamped: bool) -> None:
    lines = _LOG.read_text().splitlines()
    wanted = []
    for line in lines:
        match = _LINE.search(line)
        assert match is not None, line
        wanted.append((match[1], *(int(number) for number in match.groups()[1:])))
    log = tmp_path / "log.txt"
    front = "[ {:5}.000001] " if stamped else ""
    log.write_text("".join(front.format(10 + i) + line + "\n" for i, line in enumerate(lines)))

    rows = wbscope.query("reclaim_dirty_state", log)
    assert [
        (
            row["zone"],
            *(
                row[f"{name}_bytes"] / _PAGE
                for counter in ("inactive", "dirty", "writeback")
                for name in (f"zone_{counter}", counter)
            ),
        )
        for row in rows
    ] == wanted
    for row, (_, inactive, _, dirty, _, writeback, _) in zip(rows, wanted, strict=True):
        assert row["zone_pending_ratio"] == pytest.approx((dirty + writeback) / inactive)
    times = [row["ts"] for row in wbscope.sql(log, "SELECT ts FROM raw_reclaim ORDER BY seq")]
    stamps = [(10 + i) * 10**9 + 1000 for i in range(len(lines))] if stamped else [0] * len(lines)
    assert times == stamps
