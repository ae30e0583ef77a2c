# SPDX-License-Identifier: Apache-2.0
"""Whose pages held a task up, where those who dirtied them were not throttled themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from support.texttrace import load_lines
from wbscope.library.finding import Finding

_PAGES = 256  # in a MiB
_TAIL = "sync_mode=0 kupdate=0 range_cyclic=1 background=1 reason=background"


def _victim() -> list[tuple[float, str]]:
    """The root's task on 8:0, with 40 of 117 MiB: 100 sleeps of 20 ms, 2 s in all."""
    end = "dirty=0 writeback=0 bg_thresh=15000 thresh=40000 limit=40000 dirtied=9000 written=9000"
    lines = [(107.0, f"global_dirty_state: {end}")]
    for i in range(100):
        ts = 101 + i / 20
        state = "dirty=10000 writeback=20000 bg_thresh=15000 thresh=40000 limit=40000"
        numbers = int(ts - 100) * 1000
        lines += [
            (ts, f"global_dirty_state: {state} dirtied={numbers} written={numbers}"),
            (
                ts + 0.0002,
                "balance_dirty_pages: bdi 8:0: limit=40000 setpoint=33750 dirty=30000"
                f" bdi_setpoint=33000 bdi_dirty={40 * _PAGES} dirty_ratelimit=100000"
                " task_ratelimit=100000 dirtied=512 dirtied_pause=32 paused=0 pause=20 period=20"
                " think=0 cgroup_ino=1",
            ),
        ]
    return [(ts, f"root-178 [000] {ts:.6f}: {text}") for ts, text in lines]


def _flushed(ts: float, bdi: str, cgroup: int, pages: int) -> list[tuple[float, str]]:
    """A chunk of a flusher, which has 10000 pages to write before it."""
    return [
        (t, f"kworker/u4:1-25 [001] {t:.6f}: {event}: bdi {bdi}: sb_dev 0:0 nr_pages={left}"
            f" {_TAIL} cgroup_ino={cgroup}")
        for t, event, left in (
            (ts, "writeback_start", 10000),
            (ts + 0.01, "writeback_written", 10000 - pages),
        )
    ]  # fmt: skip


def _requests(device: str, count: int, seconds: float = 0.001) -> list[tuple[float, str]]:
    """Of 1 MiB each, one in 50 ms."""
    lines = []
    for i in range(count):
        ts, end = 101.01 + i / 20, 101.01 + i / 20 + seconds
        where = f"() {1000 + i * 2048} + 2048"
        issue, done = f"{device} W 1048576 {where} [kworker]", f"{device} W {where} [0]"
        lines += [
            (ts, f"kworker/0:1-26 [000] {ts:.6f}: block_rq_issue: {issue}"),
            (end, f"kworker/0:1-26 [000] {end:.6f}: block_rq_complete: {done}"),
        ]
    return lines


def _starved(lines: list[tuple[float, str]], folder: Path) -> Finding:
    with wbscope.open(load_lines([line for _, line in sorted(lines)], folder).path) as run:
        (one,) = (one for one in run.findings() if one.id.endswith("_starves"))
    return one


def test_the_other_cgroup_that_was_written_for(tmp_path: Path) -> None:
    """Cgroup 27 wrote 30 MiB in one go, before anybody was throttled: no event has its pages."""
    lines = _victim() + _flushed(100.5, "8:0", 27, 30 * _PAGES) + _requests("8,0", 100)
    # What is written to a file of the journal elsewhere is not worth a name.
    lines += _flushed(100.7, "8:16", 1, 7)
    one = _starved(lines, tmp_path)
    assert (one.id, one.severity, one.confidence) == ("cgroup_starves", "severe", "inferred")
    # Of each sleep of 20 ms (and no more: nothing tells a jiffy) the disk has a request for 1 ms.
    assert one.cost_task_ns == 2_000_000_000
    assert one.facts["holder_share_ratio"] is None
    assert one.text == (
        "root 178 waited 2.00 s on 8:0 for pages of another cgroup: 34.1 % of the dirty pages were"
        " their own, and besides these only those of 27 were written; 8:0 had nothing to do for"
        " 95.0 % of that time."
    )
    assert one.advice is not None
    assert "io.max of 27, if it has one" in one.advice.text
    assert [knob for knob, _ in one.advice.settings] in ([], ["/sys/fs/cgroup/memory.high"])


@pytest.mark.parametrize(
    ("high", "told"), [(None, "max"), (500 << 20, str(500 << 20)), (400 << 20, None)]
)
def test_memory_high_leaves_room_for_other_memory(
    tmp_path: Path, high: int | None, told: str | None
) -> None:
    """Half of the machine's limit is a fifth of 390.6 MiB; 50 MiB of the cgroup are no files."""
    lines = _victim() + _flushed(100.5, "8:0", 27, 30 * _PAGES) + _requests("8,0", 100)
    (tmp_path / "trace.txt").write_text("".join(f"{line}\n" for _, line in sorted(lines)))
    (tmp_path / "cgroups").write_text("1 /sys/fs/cgroup\n27 /sys/fs/cgroup/h\n")
    files = {"memory.stat": f"anon 0\nfile {30 << 20}", "memory.current": 80 << 20}
    if high is not None:
        files["memory.high"] = high
    sample = "".join(f"== 27/{name}\n{text}\n" for name, text in files.items())
    (tmp_path / "cgroup.samples").write_text(f"# ts={102 * 10**9}\n{sample}")
    with wbscope.open(tmp_path) as run:
        (one,) = (one for one in run.findings() if one.id == "cgroup_starves")
    assert one.advice is not None
    assert "Give /h a memory.high that leaves 391 MiB to its files, beside" in one.advice.text
    knob = "/sys/fs/cgroup/h/memory.high"
    # No limit is raised by this.
    wanted = () if told is None else ((knob, str(40000 * 4096 // 2 * 5 + (50 << 20))),)
    assert one.advice.settings == wanted
    assert one.advice.now == (() if told is None else (f"{knob} = {told}",))


@pytest.mark.parametrize("seconds", [0.001, 0.049])
def test_a_busy_disk_is_held_back_by_nothing(tmp_path: Path, seconds: float) -> None:
    lines = _victim() + _flushed(100.5, "8:0", 27, 30 * _PAGES) + _requests("8,0", 100, seconds)
    one = _starved(lines, tmp_path)
    assert one.advice is not None
    assert ("io.max" in one.advice.text) is ("nothing to do" in one.text) is (seconds < 0.01)


def test_several_other_cgroups_are_not_named(tmp_path: Path) -> None:
    lines = _victim() + _flushed(100.5, "8:0", 27, 10 * _PAGES)
    one = _starved(lines + _flushed(100.6, "8:0", 28, 10 * _PAGES), tmp_path)
    assert (one.id, one.confidence) == ("cgroup_starves", "inferred")
    assert (one.facts["likely_cgroup_ino"], one.facts["holder_cgroup_ino"]) == (None, None)
    assert one.advice is None


@pytest.mark.parametrize("other", ["nobody", "flusher", "requests"])
def test_nobody_is_accused_where_nothing_tells(tmp_path: Path, other: str) -> None:
    """Nobody else was written for; or another disk was, by a flusher or past it, beside 27."""
    lines = _victim() + _requests("8,0", 100)
    if other != "nobody":
        lines += _flushed(100.5, "8:0", 27, 30 * _PAGES)
    if other == "flusher":
        lines += _flushed(100.6, "8:16", 1, 20 * _PAGES)
    if other == "requests":
        lines += _requests("8,16", 20)
    one = _starved(lines, tmp_path)
    assert (one.id, one.severity) == ("slow_bdi_starves", "warning")
    assert one.title == "Pages of others hold up writers"
    assert "nothing tells whose the others were, and 8:0 had nothing to do for 95.0 %" in one.text
    assert one.advice is not None
    assert one.advice.settings == ()
    assert "hold back requests above 8:0" in one.advice.text
