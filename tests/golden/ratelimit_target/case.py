# SPDX-License-Identifier: Apache-2.0
"""A task's target is its task_ratelimit weighted by the time to its next event.

By hand, 4 KiB pages = 4 KiB:
  dd, tid 11: 1000 KiB/s for 100 ms, 0 for 200 ms, 2000 KiB/s for 100 ms; the last event tells a
    rate for no known time. Target (1000 * 100 + 0 + 2000 * 100) / 400 = 750 KiB/s = 768000 bytes/s;
    stopped 200 of 400 ms. Dirtied after the first event: the event of rate 0 has paused 0 and
    dirtied 32, so it begins a call of its own: 32 + 32 + 11 = 75 pages in 400 ms = 187.5 pages/s =
    750 KiB/s: error 0.
  cp, tid 12, at the same time on the same bdi: 1000 KiB/s for 400 ms; 200 pages in 400 ms = 2000
    KiB/s: error 1.
  Of dd's error 0, 32 pages after the rate 0 = 327680 bytes/s are 32/75 of the target too much, and
    43 pages in the told time 32/75 too few. The rate was 0 for half of the time: p25 and p50; 1000
    for a quarter, 2000 for the rest: p95.
  rsync, tid 14: 1000 KiB/s for 100 ms, at the end of which it is 50 ms late (pause -50): elsewhere;
    500 for 100 ms; 0 for 200 ms. Target 150000 / 400 = 375 KiB/s = 384000 bytes/s. 10 pages after
    the first, 5 and 3 after the others: 18 pages in 400 ms = 184320 bytes/s, error -0.52. Of that
    stopped 30720 / 384000 = 0.08, told 51200 / 384000 - 1/3 = -0.2, elsewhere 102400 / 384000 - 2/3
    = -0.4.
  tar, tid 13, comes back to 8:0 after an event on 8:16: 100 ms count for each. 8:0: 1000 KiB/s for
    100 ms, then one event without a next: target 1024000; 10 pages in 200 ms = 204800 bytes/s. No
    error: for the other 100 ms it was told a rate for 8:16, where it
    has one event only: no rate, no row.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_EVENTS = (
    (0, 11, "8:0", 1000, 32),
    (0, 12, "8:0", 1000, 7),
    (0, 13, "8:0", 1000, 5),
    (0, 14, "8:0", 1000, 7),
    (100, 11, "8:0", 0, 32),
    (100, 13, "8:16", 1000, 5),
    (100, 14, "8:0", 500, 10, -50),
    (200, 13, "8:0", 1000, 10),
    (200, 14, "8:0", 0, 5, 0),
    (300, 11, "8:0", 2000, 32),
    (400, 11, "8:0", 500, 11),
    (400, 12, "8:0", 1000, 200),
    (400, 14, "8:0", 1000, 3, -8),
)


def make(folder: Path) -> None:
    trace = Trace(
        formats("balance_dirty_pages"), cmdlines={11: "dd", 12: "cp", 13: "tar", 14: "rsync"}
    )
    for ms, tid, bdi, rate, dirtied, *pause in _EVENTS:
        values = {"bdi": bdi, "cgroup_ino": 1, "task_ratelimit": rate, "dirtied": dirtied}
        event = {**values, "pause": pause[0] if pause else 10, "period": 10}
        trace.event(0, (10_000 + ms) * _MS, tid, "balance_dirty_pages", event)
    trace.write(folder / "trace.dat")


_RATIOS = ("stopped", "told", "elsewhere")


def _row(
    tid: int,
    target: int,
    actual: int,
    error: float | None,
    rates: tuple[int, int, int],
    times: tuple[float, float, float],
    parts: tuple[float | None, float | None, float | None],
) -> dict[str, int | float | None]:
    names = [f"target_{rank}_bytes_per_s" for rank in ("p25", "p50", "p95")]
    return {
        "tid": tid,
        "target_bytes_per_s": float(target),
        "actual_bytes_per_s": float(actual),
        "error_ratio": error,
        **{name: rate * 1024 for name, rate in zip(names, rates, strict=True)},
        **{f"{name}_ratio": share for name, share in zip(_RATIOS, times, strict=True)},
        **{f"{name}_error_ratio": part for name, part in zip(_RATIOS, parts, strict=True)},
        "freerun_error_ratio": None if error is None else 0.0,
    }


_TOLD = (0.0, 1.0, 0.0)
_CP = _row(12, 1_024_000, 2_048_000, 1.0, (1000, 1000, 1000), _TOLD, (0.0, 1.0, 0.0))


CHECKS = [
    Check(
        query="ratelimit_error",
        rows=[
            _row(
                11,
                768_000,
                768_000,
                0.0,
                (0, 0, 2000),
                (0.5, 0.5, 0.0),
                (32 / 75, -32 / 75, 0.0),
            ),
            _CP,
            _row(13, 1_024_000, 204_800, None, (1000, 1000, 1000), _TOLD, (None, None, None)),
            _row(14, 384_000, 184_320, -0.52, (0, 0, 1000), (0.5, 0.25, 0.25), (0.08, -0.2, -0.4)),
        ],
    ),
    Check(
        query="ratelimit_error",
        options=("--tid", "12"),
        rows=[_CP],
    ),
]
