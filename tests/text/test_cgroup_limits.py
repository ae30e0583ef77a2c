# SPDX-License-Identifier: Apache-2.0
"""What is advised where the limits of a memory cgroup held its tasks up."""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from wbscope.library.finding import Finding

_MIB = 1 << 20
_KNOBS = {name: f"/sys/fs/cgroup/h/{name}" for name in ("memory.high", "memory.max")}
_GLOBAL = "dirty=500 writeback=0 bg_thresh=5000 thresh=10000 limit=10000 dirtied=9000"


def _throttled() -> list[str]:
    """Twenty sleeps of 50 ms over the limit of cgroup 27, 100 pages: 1 s in all."""
    lines = []
    for i in range(20):
        ts = 101 + i / 10
        lines += [
            f"dd-11 [000] {ts:.6f}: global_dirty_state: {_GLOBAL} written={9000 + i}",
            f"dd-11 [000] {ts + 0.0001:.6f}: balance_dirty_pages: bdi 8:0: limit=100 setpoint=88"
            " dirty=100 bdi_setpoint=88 bdi_dirty=100 dirty_ratelimit=1000 task_ratelimit=0"
            " dirtied=8 dirtied_pause=8 paused=0 pause=50 period=50 think=0 cgroup_ino=27",
        ]
    return [*lines, f"dd-11 [000] 104.000000: global_dirty_state: {_GLOBAL} written=9020"]


def _reclaiming() -> list[str]:
    """Four reclaims of 60 ms of a task that writes nothing: 240 ms, and no page is dirty."""
    lines = []
    for i in range(4):
        ts = 101 + i / 10
        lines += [
            f"dd-11 [000] {ts:.6f}: mm_vmscan_memcg_reclaim_begin: order=0 gfp_flags=GFP_KERNEL",
            f"dd-11 [000] {ts + 0.06:.6f}: mm_vmscan_memcg_reclaim_end: nr_reclaimed=32",
        ]
    return lines


def _advised(
    folder: Path,
    lines: list[str],
    memory_mib: int = 512,
    limits: dict[str, str] | None = None,
    cgroups: str = "1 /sys/fs/cgroup\n27 /sys/fs/cgroup/h\n",
    file_mib: int = 8,
) -> Finding:
    """Of a task that dirtied 29 MiB in all."""
    (folder / "trace.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "cgroups").write_text(cgroups)
    (folder / "sysctls").write_text("vm.dirty_ratio = 20\nvm.dirty_background_ratio = 10\n")
    (folder / "meminfo").write_text(f"MemTotal:  {memory_mib << 10} kB\n")
    (folder / "task_io").write_text(
        "".join(
            f"{sample} ts={ts} tid=11 tgid=11 write_bytes={value} cancelled_write_bytes=0 comm=dd\n"
            for sample, ts, value in (("start", 10**11, 0), ("end", 105 * 10**9, 29 * _MIB))
        )
    )
    if limits is not None:
        # As the recorder: a file that says max is left out.
        stat = f"anon 0\nfile {file_mib * _MIB}"
        texts = {"memory.stat": stat, "memory.current": f"{8 * _MIB}", **limits}
        texts = {name: text for name, text in texts.items() if text != "max"}
        sample = "".join(f"== 27/{name}\n{text}\n" for name, text in texts.items())
        (folder / "cgroup.samples").write_text(f"# ts={102 * 10**9}\n{sample}")
    with wbscope.open(folder) as run:
        (one,) = (one for one in run.findings() if one.id == "small_memcg_limit")
    assert one.advice is not None
    return one


# 29 MiB are 15 % of 193.3 MiB.
_ROOM = 194 * _MIB
_LOW, _HIGH = str(16 * _MIB), str(300 * _MIB)


@pytest.mark.parametrize(
    ("high", "most", "told", "changed"),
    [
        (_LOW, "max", "memory.high", {"memory.high": _LOW}),
        ("max", _LOW, "memory.max", {"memory.max": _LOW}),
        (_LOW, _HIGH, "memory.high", {"memory.high": _LOW}),
        (_HIGH, _LOW, "memory.max", {"memory.max": _LOW}),
        # One of them alone would leave the other.
        (_LOW, str(32 * _MIB), "memory.high", {"memory.high": _LOW, "memory.max": str(32 * _MIB)}),
        (_LOW, _LOW, "memory.high and memory.max", {"memory.high": _LOW, "memory.max": _LOW}),
    ],
)
def test_the_file_that_holds_the_limit_is_set(
    tmp_path: Path, high: str, most: str, told: str, changed: dict[str, str]
) -> None:
    """And none that says max, which would be lowered."""
    one = _advised(tmp_path, _throttled(), limits={"memory.high": high, "memory.max": most})
    assert one.advice is not None
    assert one.advice.text == (
        f"Give the cgroup more memory ({told}): its dirty limits are a share of what its files have"
        " and could have, with free run up to 15.0 %, and 194 MiB in all have room for this burst."
    )
    assert one.advice.settings == tuple((_KNOBS[name], str(_ROOM)) for name in changed)
    assert one.advice.now == tuple(f"{_KNOBS[name]} = {value}" for name, value in changed.items())


def test_other_memory_comes_on_top(tmp_path: Path) -> None:
    """Of 8 MiB 3 are page cache: 5 more than files need for the burst."""
    limits = {"memory.high": "max", "memory.max": _LOW}
    one = _advised(tmp_path, _throttled(), limits=limits, file_mib=3)
    assert one.advice is not None
    assert "and 199 MiB in all have room for this burst." in one.advice.text
    assert one.advice.settings == ((_KNOBS["memory.max"], str(_ROOM + 5 * _MIB)),)


def test_a_limit_that_was_not_recorded_is_not_set(tmp_path: Path) -> None:
    """Each of the files may say max."""
    one = _advised(tmp_path, _throttled())
    assert one.cost_task_ns == 10**9
    assert one.advice is not None
    assert (
        "more memory (memory.high or memory.max, if one is set: that was not recorded): its"
        in one.advice.text
    )
    assert one.advice.text.endswith("and 194 MiB for its files have room for this burst.")
    assert one.advice.settings == one.advice.now == ()
    assert one.advice.expect == "throttle_summary.slept_total_ns lower"


def test_the_limit_of_a_folder_above(tmp_path: Path) -> None:
    one = _advised(tmp_path, _throttled(), limits={"memory.high": "max", "memory.max": "max"})
    assert one.advice is not None
    assert "(the limit is that of a folder above it)" in one.advice.text
    assert one.advice.settings == ()


def test_no_more_than_the_machine_has(tmp_path: Path) -> None:
    limits = {"memory.high": _LOW, "memory.max": "max"}
    one = _advised(tmp_path, _throttled(), memory_mib=193, limits=limits)
    assert one.advice is not None
    assert one.advice.text == (
        "No limit has room for this burst: that takes 194 MiB, and the machine has 193 MiB. Let"
        " its writers write less at once, start writing as they go (sync_file_range), or bypass the"
        " page cache (O_DIRECT)."
    )
    assert (one.advice.settings, one.advice.now, one.advice.costs, one.advice.expect) == (
        (), (), "", ""
    )  # fmt: skip


def test_no_less_than_it_has(tmp_path: Path) -> None:
    """Its other memory takes the room: nothing tells how much would do."""
    one = _advised(tmp_path, _throttled(), limits={"memory.high": _HIGH, "memory.max": "max"})
    assert one.advice is not None
    assert one.advice.text.endswith("with free run up to 15.0 %.")
    assert one.advice.settings == ()


def test_a_cgroup_that_has_no_dirty_pages(tmp_path: Path) -> None:
    """Nobody was throttled: that cannot become less, and dirty limits are not in the way."""
    one = _advised(tmp_path, _reclaiming())
    assert one.text == (
        "dd 11 waited 240 ms for the limits of a memory cgroup, of which there was only /h."
    )
    assert one.advice is not None
    assert one.advice.text == (
        "Give the cgroup more memory (memory.high or memory.max, if one is set: that was not"
        " recorded): its tasks wait while they reclaim what is over its limit."
    )
    assert one.advice.expect == "stalls_by_task.total_ns lower"


def test_one_of_several_cgroups_is_not_named(tmp_path: Path) -> None:
    cgroups = "1 /sys/fs/cgroup\n27 /sys/fs/cgroup/h\n28 /sys/fs/cgroup/i\n"
    one = _advised(tmp_path, _reclaiming(), cgroups=cgroups)
    assert one.text == "dd 11 waited 240 ms for the limits of a memory cgroup."
