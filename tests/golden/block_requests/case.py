# SPDX-License-Identifier: Apache-2.0
"""Requests: one that ends in two parts, a flush, one still in flight, one that began too early.

By hand, sectors of 512 bytes, device 8:0 = dev 8 << 20; the trace goes from 10.000 s to 10.100 s:
  write A, sector 100 + 8: issued at 0 ms, done at 10 ms
  write B, sector 200 + 16: issued at 0 ms, its first half done at 20 ms, the rest at 30 ms: 30 ms
  write C, sector 300 + 8: issued at 40 ms, never done: open, in flight for 60 ms
  write D, sector 400 + 8: done at 50 ms, issued before the trace: not counted, but busy
  read E, sector 100 + 8 (A's place again): issued at 60 ms, done at 62 ms
  flush: issued with sector 0, done at sector -1, as the kernel has it: 5 ms
  writes: 2 done, 24 sectors = 12288 bytes, 1 open; mean 20 ms; p50 is the 1st of 2 = 10 ms, p95 and
    p99 the 2nd = 30 ms; in flight 10 + 30 + 60 = 100 ms of 100.000001 ms, at most 2 at once
  busy: 0 to 50 ms (D, with A and B in it) and 40 to 100 ms (C, with E and the flush): 100 ms
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_SDA = 8 << 20
_LENGTH = 100 * _MS + 1


def make(folder: Path) -> None:
    trace = Trace(formats("block_rq_complete", "block_rq_issue"))

    def rq(ms: int, name: str, sector: int, sectors: int, rwbs: str) -> None:
        values = {"dev": _SDA, "sector": sector, "nr_sector": sectors, "rwbs": rwbs}
        trace.event(0, (10_000 + ms) * _MS, 7, f"block_rq_{name}", values)

    rq(0, "issue", 100, 8, "W")
    rq(0, "issue", 200, 16, "WS")
    rq(10, "complete", 100, 8, "W")
    rq(20, "complete", 200, 8, "WS")
    rq(30, "complete", 208, 8, "WS")
    rq(40, "issue", 300, 8, "W")
    rq(50, "complete", 400, 8, "W")
    rq(60, "issue", 100, 8, "RA")
    rq(62, "complete", 100, 8, "RA")
    rq(95, "issue", 0, 0, "FF")
    rq(100, "complete", (1 << 64) - 1, 0, "FF")
    trace.write(folder / "trace.dat")


def _row(
    op: str, count: int, size: int, still: int, ns: tuple[int, ...], busy: int, most: int
) -> Expected:
    mean, p50, p95, p99, longest = ns
    return {
        "device": "8:0",
        "op": op,
        "count": count,
        "bytes": size,
        "open_count": still,
        "latency_mean_ns": mean * _MS,
        "latency_p50_ns": p50 * _MS,
        "latency_p95_ns": p95 * _MS,
        "latency_p99_ns": p99 * _MS,
        "latency_max_ns": longest * _MS,
        "depth_mean_count": busy * _MS / _LENGTH,
        "depth_max_count": most,
        "mean_request_bytes": size / count,
        "utilisation_ratio": 100 * _MS / _LENGTH,
    }


CHECKS = [
    Check(
        query="block_latency",
        rows=[
            _row("flush", 1, 0, 0, (5, 5, 5, 5, 5), 5, 1),
            _row("read", 1, 4096, 0, (2, 2, 2, 2, 2), 2, 1),
            _row("write", 2, 12_288, 1, (20, 10, 30, 30, 30), 100, 2),
        ],
    ),
]
