# SPDX-License-Identifier: Apache-2.0
"""Dirty limits: of a cgroup, changed in a run, and the numbers that are advised."""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from support.texttrace import TextRun, proven_findings
from wbscope.base.span import parse_span
from wbscope.explain.remedy import prove
from wbscope.library.finding import Finding
from wbscope.run.filters import Filters

# What is advised where the limits of a memory cgroup held its tasks up.

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


# The dirty limit is changed in the middle of a run: what waits then is told of the change.

_PAGES = 256  # in a MiB
_DIRTY = 32 * _PAGES
_WARNING = "limit-changed"


class _Trace(TextRun):
    def state(
        self,
        ts: float,
        thresh: int,
        dirty: int,
        task: str = "kworker/0:1-25",
        limit: int | None = None,
    ) -> None:
        """The smoothed limit is that of the setting, unless another is told."""
        self.event(
            ts,
            task,
            "global_dirty_state",
            f"dirty={dirty // 2} writeback={dirty - dirty // 2} bg_thresh={thresh // 2}"
            f" thresh={thresh} limit={limit or thresh}"
            f" dirtied={int(ts * 1000)} written={int(ts * 1000)}",
        )

    def throttled(self, ts: float, thresh: int, dirty: int, paused_ms: int) -> None:
        """A sleep of 200 ms; a call's first has nothing behind it."""
        self.state(ts - 0.0001, thresh, dirty, "dd-200")
        self.event(
            ts,
            "dd-200",
            "balance_dirty_pages",
            f"bdi 8:0: limit={thresh} setpoint={thresh * 7 // 8} dirty={dirty}"
            f" bdi_setpoint={thresh * 7 // 8} bdi_dirty={dirty} dirty_ratelimit=6000"
            f" task_ratelimit=0 dirtied=32 dirtied_pause=32 paused={paused_ms} pause=200"
            " period=200 think=0 cgroup_ino=1",
        )

    def busy(self, begin: float, end: float) -> None:
        """8:0 writes 6 MiB/s all the time, and the kernel takes it for a disk of 100 MiB/s."""
        for i in range(int((end - begin) * 6)):
            place = f"{1000 + i * 2048} + 2048"
            ts = begin + i / 6
            self.event(
                ts, "kworker/0:1-25", "block_rq_issue", f"8,0 W 1048576 () {place} [kworker]"
            )
            self.event(ts + 0.166, "kworker/0:1-25", "block_rq_complete", f"8,0 W () {place} [0]")
            self.event(
                ts + 0.001,
                "dd-200",
                "bdi_dirty_ratelimit",
                "bdi 8:0: write_bw=102400 awrite_bw=102400 dirty_rate=6000 dirty_ratelimit=6000"
                " task_ratelimit=6000 balanced_dirty_ratelimit=6000 cgroup_ino=1",
            )


def _lowered() -> _Trace:
    """At 106 s from 64 to 2 MiB, with 32 MiB dirty; no more than the limit from 109 s on.

    One call waits 15 times 200 ms, from 106.01 s on: 3.0 s. Behind 109 s there are five more.
    """
    trace = _Trace()
    trace.busy(100, 112)
    for i in range(24):
        trace.state(100 + i / 4, 64 * _PAGES, _DIRTY * i // 24)
    for i in range(15):
        trace.throttled(106.01 + i / 5, 2 * _PAGES, _DIRTY, i * 200)
    trace.state(109.0095, 2 * _PAGES, 2 * _PAGES)
    for i in range(5):
        trace.throttled(109.5 + i / 2, 2 * _PAGES, 2 * _PAGES - 8, 0)
    return trace


def _warned(path: Path) -> tuple[list[dict[str, int]], list[str]]:
    """Rows of dirty_limits, and their warnings of a change."""
    with wbscope.open(path) as run:
        told = run.query("dirty_limits")
        return told.records(), [one.message for one in told.warnings if one.slug == _WARNING]


def test_waits_for_what_the_old_limit_let_gather(tmp_path: Path) -> None:
    by_id = proven_findings(_lowered().write(tmp_path))
    one = by_id["limit_changed"]
    assert one.severity == "warning"
    assert one.text == (
        "The dirty limit changed from 64.0 MiB to 2.00 MiB after 6.01 s, when 32.0 MiB were dirty:"
        " dd 200 waited 3.00 s until less was dirty than the limit, and one write was blocked for"
        " 3.00 s of that."
    )
    # Nobody was throttled before, but that says nothing of the disk.
    assert "new_bdi_bandwidth" not in by_id or by_id["new_bdi_bandwidth"].cost_task_ns <= 10**9


def test_a_part_behind_the_change(tmp_path: Path) -> None:
    """From 108 s on five sleeps of 200 ms are left of the drain: they begin at 108.01 s."""
    span = parse_span("8s")
    with wbscope.open(_lowered().write(tmp_path)) as run:
        (one,) = (one for one in run.findings(span) if one.id == "limit_changed")
        assert all(proven.holds for proven in prove(run, one, Filters(span=span)))
    assert one.severity == "warning"
    assert one.text == (
        "dd 200 waited 1.00 s until less was dirty than the limit, which was lowered before"
        " this part, and one write was blocked for 1.00 s of that."
    )


def test_no_limit_is_proposed_above_the_one_in_force(tmp_path: Path) -> None:
    """What 8:0 writes in two seconds are 12 MiB: less than 64, and more than 2."""
    by_id = proven_findings(_lowered().write(tmp_path))
    assert by_id["many_seconds"].facts["dirty_max_bytes"] == 32 * _MIB
    settings = [pair for one in by_id.values() if one.advice for pair in one.advice.settings]
    assert not [value for knob, value in settings if knob == "vm.dirty_bytes"]


def test_a_limit_is_no_mean_of_two(tmp_path: Path) -> None:
    rows, warnings = _warned(_lowered().write(tmp_path))
    assert [row["thresh_bytes"] for row in rows] == [2 * _MIB]
    assert [row["bg_thresh_bytes"] for row in rows] == [_MIB]
    (message,) = warnings
    assert "from 64.0 to 2.0 MiB after 6.0 s" in message


def test_a_limit_that_rises_holds_up_nobody(tmp_path: Path) -> None:
    trace = _Trace()
    trace.busy(100, 112)
    for i in range(48):
        trace.state(100 + i / 4, (4 if i < 24 else 96) * _PAGES, 2 * _PAGES)
    path = trace.write(tmp_path)
    one = proven_findings(path)["limit_changed"]
    assert (one.severity, one.cost_task_ns) == ("note", 0)
    assert one.text == (
        "The dirty limit changed from 4.00 MiB to 96.0 MiB after 6.00 s, when 2.00 MiB were dirty."
    )
    # Not in a part in which it does not change.
    with wbscope.open(path) as run:
        assert "limit_changed" not in {one.id for one in run.findings(parse_span("0s", "5s"))}


def _real_time(i: int) -> int:
    """Three of ten samples are a real-time task's, right behind a higher limit: 2 MiB, a quarter of
    that and a part of the limit before."""
    return 1152 if 5 <= i % 10 < 8 else 512


@pytest.mark.parametrize("kind", ["memory", "taken", "freed", "real-time"])
def test_what_is_no_change_of_the_limit(kind: str, tmp_path: Path) -> None:
    """A ratio's threshold follows free memory; a real-time task has a threshold of its own."""
    trace = _Trace()
    trace.busy(100, 112)
    for i in range(100):
        ts = 100 + i / 10
        if kind == "memory":
            trace.state(ts, 20000 - i * 180, 100, limit=20000)
        elif kind == "taken":
            # At once, and the smoothed limit stays where it was.
            trace.state(ts, 20000 - i if i < 50 else 9000 - i, 100, limit=20000)
        elif kind == "freed":
            # 2.1 s without a sample.
            trace.state(ts if i < 50 else ts + 2.1, 9000 + i if i < 50 else 20000 + i, 100)
        else:
            trace.state(ts, _real_time(i), 100, limit=512)
    path = trace.write(tmp_path)
    assert "limit_changed" not in proven_findings(path)
    assert _warned(path)[1] == []


def test_a_warning_of_many_changes_names_three(tmp_path: Path) -> None:
    """Whoever changes it for each event has no message of megabytes."""
    trace = _Trace()
    for second in range(40):
        for i in range(10):
            trace.state(100 + second + i / 10, (64 if second % 2 else 2) * _PAGES, _PAGES)
    _, warned = _warned(trace.write(tmp_path))
    (message,) = warned
    assert message.count(" MiB after ") == 3
    assert " and 36 more (" in message


# Numbers that are advised: none below what the kernel keeps, none that is set already.

_SETTINGS = "vm.dirty_background_ratio = 10\nvm.dirty_ratio = 20\n"


def _found(folder: Path, lines: list[str], rule: str, **files: str) -> Finding:
    (folder / "trace.txt").write_text("".join(f"{line}\n" for line in lines))
    for name, text in files.items():
        (folder / name).write_text(text)
    with wbscope.open(folder) as run:
        (one,) = (one for one in run.findings() if one.id == rule)
    return one


def _reclaims(count: int) -> list[str]:
    """Direct reclaims of 60 ms, of a task that meets no dirty page."""
    lines = []
    for i in range(count):
        ts = 101 + i / 10
        lines += [
            f"cc-11 [000] {ts:.6f}: mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL",
            f"cc-11 [000] {ts + 0.06:.6f}: mm_vmscan_direct_reclaim_end: nr_reclaimed=32",
        ]
    return lines


@pytest.mark.parametrize(
    ("release", "factor", "set_to", "told"),
    [
        ("6.12.1", 10, 100, "Let kswapd begin earlier."),
        ("6.12.1", 29, 290, "Let kswapd begin earlier."),
        ("6.12.1", 100, 300, "Let kswapd begin earlier."),
        ("6.12.1", 300, None, "begins early already (vm.watermark_scale_factor is 300): let fewer"),
        ("6.12.1", 2000, None, "begins early already (vm.watermark_scale_factor is 2000)"),
        ("6.12.1", None, 100, "Let kswapd begin earlier."),
        ("4.5.0", None, None, "vm.min_free_kbytes: Linux 4.5.0 has no vm.watermark_scale_factor."),
    ],
)
def test_kswapd_begins_earlier_than_now(
    tmp_path: Path, release: str, factor: int | None, set_to: int | None, told: str
) -> None:
    now = "" if factor is None else f"vm.watermark_scale_factor = {factor}\n"
    one = _found(
        tmp_path, _reclaims(10), "direct_reclaim",
        sysctls=_SETTINGS + now, uname=f"Linux vm {release} #1 SMP x86_64 GNU/Linux\n",
    )  # fmt: skip
    assert one.advice is not None
    assert told in one.advice.text
    wanted = () if set_to is None else (("vm.watermark_scale_factor", str(set_to)),)
    assert one.advice.settings == wanted
    assert bool(one.advice.costs) is bool(one.advice.expect) is (set_to is not None)


def _copied(mib: int) -> list[str]:
    """A disk of 10 MiB/s, busy for 3 s, in a machine that had so much dirty."""
    lines = []
    for i in range(30):
        ts = 101 + i / 10
        dirty = f"dirty={mib * _PAGES} writeback=0 bg_thresh=100000 thresh=200000 limit=200000"
        lines += [
            f"dd-11 [000] {ts:.6f}: global_dirty_state: {dirty} dirtied=90000 written=9000",
            f"kworker/0:1-26 [000] {ts + 0.001:.6f}: block_rq_issue: 8,0 W {_MIB} ()"
            f" {1000 + i * 2048} + 2048 [kworker]",
            f"kworker/0:1-26 [000] {ts + 0.0999:.6f}: block_rq_complete: 8,0 W ()"
            f" {1000 + i * 2048} + 2048 [0]",
        ]
    return lines


@pytest.mark.parametrize(
    ("cpus", "limit", "told"),
    [
        (2, 21 * _MIB, "Lower the limit to 21.0 MiB, what 8:0 writes in two seconds"),
        # Each counts up to 8 x (1 + log2 CPUs) pages by itself: 64 x 56 pages, four times.
        (64, 57 * _MIB, "Lower the limit to 57.0 MiB: with so many CPUs, each of which"),
    ],
)
def test_no_limit_below_what_many_cpus_keep(
    tmp_path: Path, cpus: int, limit: int, told: str
) -> None:
    header = ["# tracer: nop", "#", f"# entries-in-buffer/entries-written: 90/90   #P:{cpus}", "#"]
    one = _found(tmp_path, header + _copied(200), "many_seconds", sysctls=_SETTINGS)
    assert one.advice is not None
    assert one.advice.text.startswith(told)
    assert one.advice.settings[0] == ("vm.dirty_bytes", str(limit))
