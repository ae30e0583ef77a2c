# SPDX-License-Identifier: Apache-2.0
"""make kernel-test without a kernel: patches that apply, those that were tested, its checks."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from support.kernelchecks import (
    Done,
    Limits,
    Off,
    Throttle,
    Zone,
    asleep,
    calls_of,
    domain_of_throttle,
    killed_asleep,
    runs_of_calls,
    setpoint_of,
    thresholds_of,
    unexplained_waits,
    wrong_zones,
    zones_of,
)
from support.runs import REPOSITORY

# Which words of `patch` mean that a kernel series does not fit its source any more.

_PATCHING = "patching file mm/vmscan.c"
# Words of GNU patch 2.7.6; the first are of series/6.12/0001 on 6.12.117.
_OFFSET = "Hunk #6 succeeded at 7599 (offset -12 lines)."
_ONE_LINE = "Hunk #1 succeeded at 9 (offset 1 line)."
_FUZZ = "Hunk #1 succeeded at 8 with fuzz 1."
_FUZZ_AND_OFFSET = "Hunk #1 succeeded at 9 with fuzz 1 (offset 1 line)."


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = REPOSITORY / "tools/kernel_build.py"
    spec = importlib.util.spec_from_file_location("kernel_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "kernel_build", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("fetched", "line", "wrong"),
    [
        ("6.12.107-1", _PATCHING, False),
        ("6.12.107-1", _OFFSET, True),
        ("6.12.117-1", _OFFSET, False),
        ("6.12.117-1", _ONE_LINE, False),
        ("6.12.117-1", _FUZZ, True),
        ("6.12.117-1", _FUZZ_AND_OFFSET, True),
        # An older one, and another series.
        ("6.12.90-1", _OFFSET, True),
        ("6.13.2-1", _OFFSET, True),
    ],
)
def test_only_a_newer_stable_release_may_move_lines(
    tool: ModuleType, fetched: str, line: str, wrong: bool
) -> None:
    assert tool.misplaced([line], "6.12.107-1", fetched) == ([line] if wrong else [])


def test_each_cover_letter_names_its_source(tool: ModuleType) -> None:
    made = {series: tool.made_for(series) for series in tool.SERIES}
    assert made == {"6.1": "6.1.176-1", "6.12": "6.12.107-1", "7.2": "7.2.13-1"}


# The checks of make kernel-test, on rows that can be checked by hand.

_ROOT = Path(__file__).parents[2]
_ZONEINFO = """\
Node 0, zone      DMA
  pages free     2816
        spanned  4095
        present  3998
  start_pfn:           1
Node 0, zone    DMA32
        spanned  126944
  start_pfn:           4096
Node 0, zone   Normal
        spanned  0
"""
_MS = 1_000_000


def _tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, _ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_zones_with_pages_are_read() -> None:
    assert zones_of(_ZONEINFO) == [Zone(0, "DMA", 1, 4095), Zone(0, "DMA32", 4096, 126944)]


def test_zone_edges_and_other_names_are_wrong() -> None:
    zones = zones_of(_ZONEINFO)
    right = [(1, 0, "DMA"), (4095, 0, "DMA"), (4096, 0, "DMA32"), (131039, 0, "DMA32")]
    wrong = [(0, 0, "DMA"), (4096, 0, "DMA"), (131040, 0, "DMA32"), (4096, 1, "DMA32")]
    assert wrong_zones(right + wrong, zones) == wrong


def test_events_belong_to_the_call_around_them() -> None:
    first, second, third = (Throttle(ts, 7) for ts in (110, 150, 300))
    other, lost = Throttle(120, 8), Throttle(500, 7)
    one = Done(ts=200, tid=7, total_ns=100, loops=2)
    two = Done(ts=310, tid=7, total_ns=5, loops=1)  # its clock was read late
    calls, left = calls_of([first, second, third, lost, other], [two, one])
    assert [call.events for call in calls] == [(first, second), (third,)]
    assert sorted(left, key=lambda e: e.ts) == [other, lost]


def test_sleep_and_preemption_are_told_apart() -> None:
    switches = [(10, 7, 2, 0), (20, 0, 0, 7), (30, 7, 0, 9), (35, 9, 1, 7), (40, 7, 258, 0)]
    assert asleep(switches) == {
        7: [Off(10, 20, True), Off(30, 35, False)],
        0: [Off(20, 40, False)],
    }


def test_wait_is_the_sleep_and_a_little_more() -> None:
    off = {7: [Off(10 * _MS, 30 * _MS, True), Off(31 * _MS, 33 * _MS, False)]}

    def wrong(wait_ms: float, sleeps: int = 1) -> bool:
        done = Done(40 * _MS, 7, int(wait_ms * _MS), total_ns=35 * _MS, sleeps=sleeps)
        calls, _ = calls_of([], [done])
        return bool(unexplained_waits(calls, off, slack_ns=_MS))

    assert not wrong(20)
    assert not wrong(23)  # the sleep, the preemption, and 1 ms
    assert wrong(19.9)
    assert wrong(23.1)
    assert not wrong(23.1, sleeps=2)


def test_sleeps_of_other_calls_do_not_count() -> None:
    off = {7: [Off(1 * _MS, 9 * _MS, True)]}
    calls, _ = calls_of([], [Done(40 * _MS, 7, 0, total_ns=20 * _MS, exit=1)])
    assert unexplained_waits(calls, off, slack_ns=_MS) == []


def test_limits_are_those_of_the_domain_that_decided() -> None:
    whole = Limits(5, 7, 0, dirty=90, bg_thresh=50, thresh=100, dirty_limit=120)
    memcg = Limits(6, 7, 1, dirty=9, bg_thresh=5, thresh=10, dirty_limit=10)
    later = Limits(60, 7, 1, dirty=8, bg_thresh=5, thresh=10, dirty_limit=10)
    calls, _ = calls_of([Throttle(10, 7)], [Done(20, 7, total_ns=19, domain=1)])
    assert domain_of_throttle(calls, [whole, memcg, later]) == [(Throttle(10, 7), memcg)]
    calls, _ = calls_of([Throttle(10, 8)], [Done(20, 8, total_ns=19)])
    assert domain_of_throttle(calls, [whole]) == [(Throttle(10, 8), None)]


def test_setpoint_lies_between_freerun_and_limit() -> None:
    assert setpoint_of(120, thresh=100, bg_thresh=51) == (120 + 75) // 2


def test_real_time_tasks_get_higher_thresholds() -> None:
    # 6 % is 245 / 4096, 3 % 122 / 4096.
    assert thresholds_of(40960, 6, 3) == (2450, 1220)
    assert thresholds_of(40960, 6, 3, boosted_by=3200) == (2450 + 612 + 100, 1220 + 305 + 100)
    assert thresholds_of(40960, 6, 7) == (2450, 1225)


def test_a_kill_counts_where_it_met_a_sleep_of_the_call() -> None:
    calls, _ = calls_of(
        [Throttle(100, 7), Throttle(500, 7), Throttle(100, 8)],
        [Done(200, 7, total_ns=110), Done(600, 7, total_ns=110), Done(200, 8, total_ns=110)],
    )
    off = {7: [Off(120, 190, True), Off(520, 590, True)], 8: [Off(120, 190, False)]}
    assert killed_asleep(calls, off, [(530, 7), (150, 8)]) == [calls[2]]
    assert killed_asleep(calls, off, [(300, 7), (595, 7)]) == []


def test_events_are_counted_by_the_call_that_they_begin() -> None:
    rows = [(7, 10, 1), (7, 20, 0), (7, 30, 1), (8, 5, 0), (8, 6, 0)]
    assert runs_of_calls(rows) == [(7, 10, 2), (7, 30, 1), (8, 5, 2)]


_OBJDUMP = """\
0000000000000010 <f>:
  10:\tpush   %rbx
  11:\tnopl   0x0(%rax,%rax,1)
  16:\ttest   %edi,%edi
  18:\tje     20 <f+0x10>
  1a:\tpop    %rbx
  1b:\tret
  20:\tcall   25 <f+0x15>
\t\t\t21: R_X86_64_PLT32\tg-0x4
  25:\tjmp    1a <f+0xa>
  27:\tmov    $0x1,%edi
  2c:\tcall   31 <f+0x21>
\t\t\t2d: R_X86_64_PLT32\ttraced-0x4
  31:\tjmp    16 <f+0x6>

0000000000000040 <tail>:
  40:\tjmp    45 <tail+0x5>
\t\t\t41: R_X86_64_PLT32\tg-0x4
  45:\tud2
"""


def test_code_behind_a_static_key_is_not_reached() -> None:
    off_path = _tool("off_path")
    functions = off_path.parse(_OBJDUMP)
    assert functions["f"].size == 0x30
    reached = off_path.reachable(functions["f"])
    assert [one.at for one in reached] == [0x10, 0x11, 0x16, 0x18, 0x1A, 0x1B, 0x20, 0x25]
    assert [one.at for one in reached if one.is_nop] == [0x11]
    assert [one.at for one in off_path.reachable(functions["tail"])] == [0x40]


# The record of tested kernel patches: a line a series, which changes with any of its files.

_TOOL = REPOSITORY / "tools/kernel_stamp.py"
Ran = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def patches(tmp_path: Path) -> Path:
    """Of a repository that has nothing but the tool."""
    (tmp_path / "tools").mkdir()
    shutil.copy(_TOOL, tmp_path / "tools")
    for name in ("series/6.1/0001-a.patch", "series/6.12/0001-b.patch", "kconfig/guest.config"):
        path = tmp_path / "kernel-tracepoints" / name
        path.parent.mkdir(parents=True)
        path.write_text(f"{name}\n")
    return tmp_path / "kernel-tracepoints"


@pytest.fixture(scope="module")
def stamp_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernel_stamp", _TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ran(patches: Path) -> Ran:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, patches.parent / "tools/kernel_stamp.py", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_each_change_is_seen(stamp_tool: ModuleType, patches: Path) -> None:
    other = stamp_tool.series_hash("6.12", patches)
    before = stamp_tool.series_hash("6.1", patches)
    assert stamp_tool.series_hash("6.1", patches) == before
    (patches / "README.md").write_text("not a patch\n")
    assert stamp_tool.series_hash("6.1", patches) == before
    patch = patches / "series/6.1/0001-a.patch"
    patch.write_text("other\n")
    changed = stamp_tool.series_hash("6.1", patches)
    patch.rename(patch.with_name("0002-a.patch"))
    moved = stamp_tool.series_hash("6.1", patches)
    assert stamp_tool.series_hash("6.12", patches) == other
    (patches / "kconfig/guest.config").write_text("CONFIG_X=y\n")
    assert len({before, changed, moved, stamp_tool.series_hash("6.1", patches)}) == 4
    assert stamp_tool.series_hash("6.12", patches) != other


def test_what_was_noted_is_known(ran: Ran, patches: Path) -> None:
    """make kernel-test boots 6.1 only: it says nothing else of the others than it did."""
    assert ran("--check").returncode == 3
    assert ran("--write", "--booted", "6.1").returncode == 0
    noted = ran("--check")
    assert noted.returncode == 0
    first, second = noted.stdout.splitlines()
    assert first.startswith("6.1: as it was booted on 2")
    assert first[-1].isdigit()
    assert second.startswith("6.12: as it was compiled on 2")
    assert second.endswith(", not booted")
    (patches / "series/6.12/0001-b.patch").write_text("other\n")
    changed = ran("--check")
    assert changed.returncode == 1
    assert changed.stdout.splitlines() == [first]
    assert _named(changed) == ["6.12"]
    (patches / "series/7.2").mkdir()
    more = ran("--check")
    assert (more.returncode, _named(more)) == (1, ["6.12", "7.2"])


def _named(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The series that are not as they were."""
    return [line.partition(":")[0] for line in done.stderr.splitlines()]


def test_more_stays_known_of_the_same_patches(ran: Ran, patches: Path) -> None:
    old = "2026-01-02"
    assert ran("--write", "--booted", "6.1 6.12").returncode == 0
    tested = patches / "tested"
    today = tested.read_text().split()[3]
    tested.write_text(tested.read_text().replace(today, old))
    assert ran("--write", "--booted", "6.1").returncode == 0
    told = {line.split()[0]: line.split()[1::2] for line in tested.read_text().splitlines()}
    assert told == {"6.1": ["booted", today], "6.12": ["booted", old]}
    (patches / "series/6.12/0001-b.patch").write_text("other\n")
    assert ran("--write", "--booted", "6.1").returncode == 0
    assert tested.read_text().splitlines()[1].split()[:2] == ["6.12", "compiled"]


def test_a_series_that_is_not_there_was_not_booted(ran: Ran, patches: Path) -> None:
    refused = ran("--write", "--booted", "6.3")
    assert (refused.returncode, "6.3" in refused.stderr) == (2, True)
    assert not (patches / "tested").exists()


def test_the_record_is_of_what_is_here(stamp_tool: ModuleType) -> None:
    """Made another way: CI would build kernels for nothing, or not when it has to."""
    top = REPOSITORY / "kernel-tracepoints"
    lines = (top / "tested").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["6.1", "6.12", "7.2"]
    for line in lines:
        series, level, noted, _ = line.split()
        assert level in ("applied", "compiled", "booted")
        files = sorted((top / "series" / series).iterdir()) + sorted((top / "kconfig").iterdir())
        text = b"".join(
            str(path.relative_to(top)).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest()
            for path in files
        )
        assert hashlib.sha256(text).hexdigest() == stamp_tool.series_hash(series, top)
        assert len(noted) == 64
