# SPDX-License-Identifier: Apache-2.0
"""Where syncs were recorded and writes were not, nobody says that no task wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import Wbscope, check_error
from support.wait_events import FSYNC, WRITE, Waits

_SLUG = "writes-not-recorded"


@pytest.mark.parametrize("has_writes", [False, True])
def test_copies(wbscope: Wbscope, tmp_path: Path, has_writes: bool) -> None:
    names = (*FSYNC, *(WRITE if has_writes else ()), "balance_dirty_pages")
    made = Waits(*names, cmdlines={7: "dd"})
    for ms in (1, 2):
        made.add(
            ms, 7, "balance_dirty_pages", bdi="8:0", cgroup_ino=1, pause=0, period=1, dirtied=32
        )
    made.write(tmp_path)
    trace = tmp_path / "trace.dat"
    document = wbscope.document("query", "copy_and_sync", trace)
    slugs = [one["slug"] for one in document["warnings"]]
    assert (document["rows"], _SLUG in slugs) == ([], not has_writes)
    done = wbscope.run("plot", trace, "copy-and-sync", "-o", tmp_path / "figures")
    assert done.returncode == 4
    told = " ".join(done.stderr.split())
    check_error(done.stderr, "nothing-to-draw", "copy-and-sync")
    assert ("-e syscalls:sys_enter_write" in told) != has_writes, told
