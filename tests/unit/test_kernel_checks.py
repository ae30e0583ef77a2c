# SPDX-License-Identifier: Apache-2.0
"""The checks of make kernel-test, on rows that can be checked by hand."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

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
