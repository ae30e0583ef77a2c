# SPDX-License-Identifier: Apache-2.0
"""The control law, an event of each branch, worked out with the kernel's integers.

By hand, pages of 4 KiB, so KiB/s = 4 x pages/s. thresh 2000, bg_thresh 1000, dirty_limit 2000:
freerun 1500, limit 2000, setpoint 1750, divisor 250 | 1 = 251. Ratios are in 1/1024.

Kernel 6.1. 8:0 has all of thresh: wb_setpoint 1749 = 1750 * 2000 / 2001, so wb_thresh 2000, share
(2000 << 16) / 2001 = 65503, wb setpoint 1750 * 65503 >> 16 = 1749; bandwidth 1000: span 8000 *
65503 >> 16 = 7995. 8:16 is alike with bandwidth 10: span 80 * 65503 >> 16 = 79. 8:32 has 400 pages:
wb_setpoint 349, share 13100, wb setpoint 349; bandwidth 1000: span 9600 * 13100 >> 16 = 1918.
  plain    8:0 dirty 1750: x 0, ratio 1024; wb_dirty 1750: 1024 * (9744 - 1750) / 7995 = 1023;
    1000 * 1023 >> 10 = 999
  limit    8:0 dirty 2000: 0
  quarter  8:16 dirty 1850: x -102400 / 251 = -407 (towards 0); 165649 >> 10 = 161; 161 * -407 =
    -65527 >> 10 = -64; ratio 960; wb_dirty 1850 >= 1828 - 19: 240; 1000 * 240 >> 10 = 234
  reserve  8:32 dirty 1600: x 153600 / 251 = 611; 373321 >> 10 = 364; 364 * 611 >> 10 = 217; ratio
    1241; wb_dirty 100: 1241 * (2267 - 100) / 1919 = 1401; below half of 400: 1401 * 200 / 100 =
    2802; 500 * 2802 >> 10 = 1368
  eight    8:32 wb_dirty 10, an eighth of 200 is 25: 1241 * 2257 / 1919 = 1459, times 8; 500 *
    11672 >> 10 = 5699
  floor    8:32 wb_setpoint 0: raised to (2000 - 1600) / 8 = 50; share 1637, wb setpoint 43, span
    (2000 - 50 + 8000) * 1637 >> 16 = 248; wb_dirty 40: 1241 * (291 - 40) / 249 = 1250; 500 * 1250
    >> 10 = 610
  off      as plain, recorded 900: 99 of 900 is 11 %
  step     8:0 dirty 1995: x -250880 / 251 = -999; 998001 >> 10 = 974; 974 * -999 >> 10 = -951;
    ratio 73; wb_dirty 1995: 73 * 7749 / 7995 = 70; 20000 * 70 >> 10 = 1367; recorded 1347, which
    is 20000 * 69 >> 10
  alone    tid 12, whose call has no global_dirty_state in the trace
  member   of cgroup 27, whose dirty pages are not the machine's: its thresholds are not told
  stale    8:16, after its last update, so its bandwidth is not known exactly: as plain of 8:16
    (span 79), recorded 500; dirty 1750: 1024 * (1828 - 1750) / 79 = 1011; 1000 * 1011 >> 10 = 987
The bandwidth is that of the next update. The one between state and event of `late` is of the same
call: it says 1000, and the one behind 500 comes too late: 999 again.

Kernel 7.2, in `new`: no floor, wb_thresh has it: wb_setpoint 0: share, wb setpoint and span 0;
wb_dirty 40 >= 0: 1241 / 4 = 310; 500 * 310 >> 10 = 151. In cgroup 27 with limit 500: dirty 500 is
0, dirty 400 cannot be replayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support.golden import Check, Expected
from support.kernel_events import formats, new_balance_dirty_pages
from support.tracedat import Trace

_MS = 1_000_000
_KIB = 4


@dataclass(frozen=True)
class _Call:
    """One event, with the state before it unless it is not told; rates in pages/s."""

    bdi: str
    dirty: int
    wb_setpoint: int
    wb_dirty: int
    base: int
    rate: int
    tid: int = 11
    cgroup: int = 1
    limit: int = 2000
    setpoint: int = 1750
    machine: int | None = None
    has_state: bool = True
    update: int = 0


_OLD = (
    _Call("8:0", 1750, 1749, 1750, 1000, 999),
    _Call("8:0", 2000, 1749, 1990, 1000, 0),
    _Call("8:16", 1850, 1749, 1850, 1000, 234),
    _Call("8:32", 1600, 349, 100, 500, 1368),
    _Call("8:32", 1600, 349, 10, 500, 5699),
    _Call("8:32", 1600, 0, 40, 500, 610),
    _Call("8:0", 1750, 1749, 1750, 1000, 900),
    _Call("8:0", 1995, 1749, 1995, 20000, 1347),
    _Call("8:0", 1750, 1749, 1750, 1000, 999, tid=12, has_state=False),
    _Call("8:0", 90, 80, 90, 1000, 700, tid=13, cgroup=27, setpoint=80, machine=1800),
    _Call("8:0", 1750, 1749, 1750, 1000, 999, update=1000),
)
_STALE = _Call("8:16", 1750, 1749, 1750, 1000, 500)
_NEW = (
    _Call("8:32", 1600, 0, 40, 500, 151),
    _Call("8:32", 500, 0, 40, 500, 0, cgroup=27, limit=500, setpoint=400, machine=1800),
    _Call("8:32", 400, 0, 40, 500, 300, cgroup=27, limit=500, setpoint=400, machine=1800),
)


class _Writer:
    """Adds a call each 10 ms."""

    def __init__(self, trace: Trace, wb: str) -> None:
        self._trace = trace
        self._wb = wb
        self._ms = 10_000

    def call(self, call: _Call) -> None:
        self._ms += 10
        if call.has_state:
            seen = call.dirty if call.machine is None else call.machine
            state = {"nr_dirty": seen - 50, "nr_writeback": 50, "background_thresh": 1000}
            state |= {"dirty_thresh": 2000, "dirty_limit": 2000}
            self._add(0, call.tid, "global_dirty_state", state)
        if call.update:
            self._bandwidth(call.bdi, call.update)
        values = {"bdi": call.bdi, "cgroup_ino": call.cgroup, "limit": call.limit}
        values |= {"setpoint": call.setpoint, "dirty": call.dirty, "dirtied": 8, "pause": 10}
        values |= {f"{self._wb}_setpoint": call.wb_setpoint, f"{self._wb}_dirty": call.wb_dirty}
        values |= {"dirty_ratelimit": _KIB * call.base, "task_ratelimit": _KIB * call.rate}
        self._add(2, call.tid, "balance_dirty_pages", {**values, "period": 10})

    def update(self, bdi: str, bandwidth: int, cgroup: int = 1) -> None:
        self._ms += 10
        self._bandwidth(bdi, bandwidth, cgroup)

    def _bandwidth(self, bdi: str, bandwidth: int, cgroup: int = 1) -> None:
        values = {"bdi": bdi, "avg_write_bw": _KIB * bandwidth, "cgroup_ino": cgroup}
        self._add(1, 11, "bdi_dirty_ratelimit", values)

    def _add(self, ms: int, tid: int, name: str, values: Mapping[str, object]) -> None:
        self._trace.event(0, (self._ms + ms) * _MS, tid, name, values)


def make(folder: Path) -> None:
    known = formats("global_dirty_state", "bdi_dirty_ratelimit")
    names = {11: "dd", 12: "cp", 13: "tar"}
    trace = Trace([*formats("balance_dirty_pages"), *known], cmdlines=names)
    writer = _Writer(trace, "bdi")
    for call in _OLD:
        writer.call(call)
    for bdi, bandwidth in (("8:0", 500), ("8:16", 10), ("8:32", 1000)):
        writer.update(bdi, bandwidth)
    writer.call(_STALE)
    trace.write(folder / "trace.dat")

    uname = "Linux guest 7.2.13-amd64 x86_64"
    trace = Trace([new_balance_dirty_pages(), *known], cmdlines=names, uname=uname)
    writer = _Writer(trace, "wb")
    for call in _NEW:
        writer.call(call)
    for cgroup in (1, 27):
        writer.update("8:32", 1000, cgroup)
    (folder / "new").mkdir()
    trace.write(folder / "new" / "trace.dat")


def _row(predicted: int | None, recorded: int, agreed: int | None) -> Expected:
    return {
        "predicted_pages_per_s": predicted,
        "recorded_pages_per_s": recorded,
        "is_agreed": agreed,
    }


def _off(ms: int, predicted: int, recorded: int, why: str) -> Expected:
    return {
        "ts": (10_000 + ms) * _MS,
        "comm": "dd",
        "predicted_bytes_per_s": predicted * 4096,
        "recorded_bytes_per_s": recorded * 4096,
        "off_ratio": (predicted - recorded) / recorded,
        "why": why,
    }


_ALL = "SELECT * FROM wb_law ORDER BY seq"
_MISSING = "SELECT why FROM _law_break WHERE is_replayed = 0 ORDER BY seq"
CHECKS = [
    Check(
        sql=_ALL,
        ordered=True,
        rows=[
            _row(999, 999, 1),
            _row(0, 0, 1),
            _row(234, 234, 1),
            _row(1368, 1368, 1),
            _row(5699, 5699, 1),
            _row(610, 610, 1),
            _row(999, 900, 0),
            _row(1367, 1347, 0),
            _row(None, 999, None),
            _row(None, 700, None),
            _row(999, 999, 1),
            _row(987, 500, 0),
        ],
    ),
    Check(
        query="law",
        ordered=True,
        rows=[
            _off(
                72,
                999,
                900,
                "a changed kernel, strictlimit, or wb_thresh not told exactly",
            ),
            _off(82, 1367, 1347, "one step of pos_ratio: a number changed within the call"),
        ],
    ),
    Check(
        sql=_MISSING,
        ordered=True,
        rows=[
            {"why": "no global_dirty_state of its call"},
            {"why": "the thresholds of the memory cgroup are not recorded"},
            {"why": "the bandwidth can have changed before the next bdi_dirty_ratelimit"},
        ],
    ),
    Check(
        sql="SELECT count(*) AS events_count, sum(is_replayed) AS replayed_count,"
        " sum(is_replayed AND is_agreed) AS agreed_count FROM wb_law",
        rows=[{"events_count": 12, "replayed_count": 9, "agreed_count": 7}],
    ),
    Check(
        sql=_ALL,
        folder="new",
        ordered=True,
        rows=[_row(151, 151, 1), _row(0, 0, 1), _row(None, 300, None)],
    ),
]
