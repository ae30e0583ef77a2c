# SPDX-License-Identifier: Apache-2.0
"""Who is told to have lost time: not the recorder, and by name only those who lost some of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope

_PLAIN = "order=0 gfp_flags=GFP_KERNEL"


def _reclaims(tid: int, comm: str, start_ms: int, dur_ms: float) -> list[tuple[float, str]]:
    start, end = 100 + start_ms / 1000, 100 + (start_ms + dur_ms) / 1000
    task = f"{comm}-{tid} [000]"
    return [
        (start, f"{task} {start:.6f}: mm_vmscan_direct_reclaim_begin: {_PLAIN}"),
        (end, f"{task} {end:.6f}: mm_vmscan_direct_reclaim_end: nr_reclaimed=32"),
    ]


def _told(folder: Path, lines: list[tuple[float, str]], own: str | None = None) -> tuple[str, int]:
    """Whom direct_reclaim names, and what it cost."""
    (folder / "trace.txt").write_text("".join(f"{line}\n" for _, line in sorted(lines)))
    if own is not None:
        (folder / "recorder_tasks").write_text(own)
    with wbscope.open(folder) as run:
        (one,) = (one for one in run.findings() if one.id == "direct_reclaim")
    return one.facts["tasks"], one.cost_task_ns


def _with_sampler() -> list[tuple[float, str]]:
    """A writer that reclaimed for 300 ms, and a sampler (70) with five children: 20 ms each."""
    lines = _reclaims(11, "dd", 0, 300)
    for tid in range(70, 76):
        lines += _reclaims(tid, "sh", 400 + tid, 20)
    return lines


@pytest.mark.parametrize("own", ["70 9\n71\n72\n73\n74\n75\n", "9 70 71 72 73 74 75"])
def test_the_recorder_is_no_victim(tmp_path: Path, own: str) -> None:
    assert _told(tmp_path, _with_sampler(), own) == ("dd 11", 300_000_000)


def test_a_run_that_does_not_tell_its_recorder(tmp_path: Path) -> None:
    assert _told(tmp_path, _with_sampler()) == ("1 dd and 6 sh", 420_000_000)


def test_numbers_that_hold_a_thread_s(tmp_path: Path) -> None:
    """7 and 1 are no threads of the recorder because 70, 71 and 11 are."""
    lines = _reclaims(7, "dd", 0, 300) + _reclaims(1, "sh", 400, 200)
    assert _told(tmp_path, lines, "70 71 11\n") == ("dd and sh", 500_000_000)


@pytest.mark.parametrize(
    ("writers", "others", "told"),
    [
        # 9 tasks of 1 ms are 3 % of 309 ms; of 20 ms they are 38 % of 480.
        ([300], [1] * 9, "dd 11 and 9 more"),
        ([300], [20] * 9, "1 dd and 9 sh"),
        ([150, 150], [1] * 9, "2 dd and 9 more"),
        ([300], [1], "dd 11 and 1 more"),
        ([300], [20], "dd and sh"),
        ([300], [], "dd 11"),
    ],
)
def test_tasks_that_lost_next_to_nothing(
    tmp_path: Path, writers: list[int], others: list[int], told: str
) -> None:
    lines = []
    for place, dur_ms in enumerate(writers):
        lines += _reclaims(11 + place, "dd", 0, dur_ms)
    for place, dur_ms in enumerate(others):
        lines += _reclaims(70 + place, "sh", 400 + 30 * place, dur_ms)
    assert _told(tmp_path, lines) == (told, (sum(writers) + sum(others)) * 1_000_000)


def test_its_pauses_are_told_by_a_rule_of_their_own(tmp_path: Path) -> None:
    """wbscope (70) and a script's sh (71) slept 300 ms each over the limit, dd 500 ms."""
    state = "dirty=30000 writeback=0 bg_thresh=15000 thresh=30000 limit=30000 dirtied=9 written=9"
    lines = [(100.0, f"dd-11 [000] 100.000000: global_dirty_state: {state}")]
    for tid, comm, count in ((11, "dd", 5), (70, "wbscope", 3), (71, "sh", 3)):
        for i in range(count):
            ts = 101 + i / 5
            lines.append(
                (
                    ts,
                    f"{comm}-{tid} [000] {ts:.6f}: balance_dirty_pages: bdi 8:0: limit=30000"
                    " setpoint=25000 dirty=30000 bdi_setpoint=25000 bdi_dirty=30000"
                    " dirty_ratelimit=1000 task_ratelimit=0 dirtied=512 dirtied_pause=32 paused=0"
                    " pause=100 period=100 think=0 cgroup_ino=1",
                )
            )
    lines.append((103.0, f"dd-11 [000] 103.000000: global_dirty_state: {state}"))
    (tmp_path / "trace.txt").write_text("".join(f"{line}\n" for _, line in sorted(lines)))
    (tmp_path / "recorder_tasks").write_text("70\n71\n")
    with wbscope.open(tmp_path) as run:
        rows = run.query("lost_time").records()
        found = {one.id: one for one in run.findings()}
    assert sorted((row["comm"], row["total_ns"]) for row in rows) == [
        ("dd", 500_000_000), ("wbscope", 300_000_000)
    ]  # fmt: skip
    assert found["recorder_writes"].cost_task_ns == 300_000_000
