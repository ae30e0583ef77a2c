# SPDX-License-Identifier: Apache-2.0
"""The reclaim lines of July 2011, all of them, with and without the stamps that dmesg adds."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.runs import REPOSITORY

_LOG = REPOSITORY / "tests" / "data" / "text" / "kernel-log-2011-07.txt"
_LINE = re.compile(r"zone=(\w+) .*inactive=(\d+)\((\d+)\) .*dirty=(\d+)\((\d+)\)")
_PAGE = 4096


@pytest.mark.parametrize("stamped", [False, True])
def test_zones_when_reclaim_wrote(wbscope: Wbscope, tmp_path: Path, stamped: bool) -> None:
    lines = _LOG.read_text().splitlines()
    inactive, dirty = defaultdict(list), defaultdict(list)
    for line in lines:
        match = _LINE.search(line)
        assert match is not None, line
        inactive[match[1]].append(int(match[2]))
        dirty[match[1]].append(int(match[4]))
    log = tmp_path / "log.txt"
    front = "[ {:5}.000001] " if stamped else ""
    log.write_text("".join(front.format(10 + i) + line + "\n" for i, line in enumerate(lines)))

    rows = wbscope.query("reclaim_zone_prints", log)
    assert [row["zone"] for row in rows] == sorted(inactive)
    for row in rows:
        zone = row["zone"]
        assert row["prints_count"] == len(inactive[zone])
        assert row["inactive_bytes"] == sum(inactive[zone]) * _PAGE // len(inactive[zone])
        assert row["dirty_ratio"] == pytest.approx(sum(dirty[zone]) / sum(inactive[zone]))
    times = [row["ts"] for row in wbscope.sql(log, "SELECT ts FROM raw_reclaim ORDER BY seq")]
    wanted = [(10 + i) * 10**9 + 1000 for i in range(len(lines))] if stamped else [0] * len(lines)
    assert times == wanted
