# SPDX-License-Identifier: Apache-2.0
"""A 32-bit kernel multiplies setpoint by the wb's thresh in 32 bits: above 2^32 it is not used.

By hand, 4 KiB pages: setpoint 60000 * limit 70000 = 4.2e9 < 2^32: the wb_setpoint of 30000 pages
counts (122880000 bytes). setpoint 65536 * limit 65536 = 2^32: may have wrapped, so it is unknown.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000


def make(folder: Path) -> None:
    trace = Trace(
        formats("balance_dirty_pages", long_bytes=4),
        long_bytes=4,
        cmdlines={11: "dd", 12: "cp"},
        uname="Linux board 3.10.49 armv7l",
    )
    for ms, bdi, setpoint, limit in ((0, "8:0", 60_000, 70_000), (50, "8:16", 65_536, 65_536)):
        values = {"bdi": bdi, "setpoint": setpoint, "limit": limit, "bdi_setpoint": 30_000}
        event = {**values, "dirty": 50_000, "bdi_dirty": 1000, "pause": 10, "period": 10}
        trace.event(0, (10_000 + ms) * _MS, 11, "balance_dirty_pages", event)
    trace.write(folder / "trace.dat")


CHECKS = [
    Check(
        query="bdi_dirty",
        rows=[
            {"bdi": "8:0", "wb_setpoint_bytes": 122_880_000, "wb_dirty_bytes": 4_096_000},
            {"bdi": "8:16", "wb_setpoint_bytes": None, "wb_dirty_bytes": 4_096_000},
        ],
    ),
]
