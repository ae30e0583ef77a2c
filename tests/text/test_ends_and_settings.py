# SPDX-License-Identifier: Apache-2.0
"""What files beside a trace tell of it: counters after the run, settings that are 0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import wbscope

_LIMITS = "bg_thresh=15000 thresh=30000 limit=30000"


def _run(folder: Path, files: dict[str, str], dirtied: tuple[int, int] = (0, 150)) -> Path:
    """156 pages are dirty at most, 150 and 6 under writeback; 4 KiB are written by a call."""
    lines = [
        f"dd-11 [000] 100.000000: global_dirty_state: dirty=10 writeback=6 {_LIMITS}"
        f" dirtied={dirtied[0]} written=0",
        "dd-11 [000] 100.001000: sys_exit_write: 0x1000",
        f"dd-11 [000] 100.002000: global_dirty_state: dirty=150 writeback=6 {_LIMITS}"
        f" dirtied={dirtied[1]} written=0",
    ]
    (folder / "trace.txt").write_text("".join(f"{line}\n" for line in lines))
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def _limits(folder: Path, **span: Any) -> dict[str, Any]:
    with wbscope.open(folder) as run:
        return run.query("dirty_limits", **span).records()[0]


def test_most_that_was_dirty(tmp_path: Path) -> None:
    """Counters are read after the run, when the recorder's own files may be dirty, too."""
    files = {"vmstat.before": "nr_dirty 999\n", "vmstat.after": "nr_dirty 240\nnr_writeback 7\n"}
    assert _limits(_run(tmp_path, files))["dirty_max_bytes"] == 156 * 4096


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("bytes = 0\nratio = 0", (None, 0)),
        ("bytes = 0\nratio = 10", (None, 10)),
        ("bytes = 4096\nratio = 0", (4096, None)),
        # Of a pair the ratio is 0 while the bytes are in force.
        ("ratio = 0", (None, None)),
        ("ratio = 10", (None, 10)),
    ],
)
@pytest.mark.parametrize("kind", ["dirty", "dirty_background"])
def test_a_ratio_of_0_is_in_force(
    tmp_path: Path, kind: str, settings: str, told: tuple[int | None, int | None]
) -> None:
    lines = "".join(f"vm.{kind}_{line}\n" for line in settings.splitlines())
    row = _limits(_run(tmp_path, {"sysctls": lines}))
    assert (row[f"vm_{kind}_bytes"], row[f"vm_{kind}_percent"]) == told


def test_what_writes_without_a_call(tmp_path: Path) -> None:
    """1000 pages were dirtied, and calls wrote one: io_uring asks for its writes in memory."""
    with wbscope.open(_run(tmp_path, {}, dirtied=(0, 1000))) as run:
        (row,) = (row for row in run.query("check").records() if row["source"] == "system calls")
    assert row["verdict"] == "differs"
    assert "mmap and io_uring need none" in str(dict(row))
