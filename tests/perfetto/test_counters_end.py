# SPDX-License-Identifier: Apache-2.0
"""What the timeline draws at a time is what the queries say of it, and nothing where they do not.

A counter keeps its value until it is told another, in the UI too. So each window of each query is
held against what is drawn in it: at its begin, in its middle and just before its end. A NULL is no
value: no slice, or a counter at 0.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from typing import Any

import pytest
from support.cli import Document, Wbscope
from support.timeline import (
    CounterSample,
    Curves,
    Slice,
    curves_of,
    drawn_path,
    engine_counters,
    engine_slices,
)

from .conftest import Exported

WINDOW = ("--window", "2s")
# A row's rates are whole bytes per second.
ROUNDED = 1e-4
# What is summed up, what a number of the kernel was when it last told it, and what the last window
# says, which ends with the trace: these have a value then.
GO_ON = (
    r"(.*/)?Task progress/.*",
    r"(.*/)?Dirtied and written/.*",
    r"(.*/)?Reclaim/.* total",
    r"(.*/)?Reclaim/vmscan_write [^/]*",
    r"(.*/)?Dirty pages(/.*)?",
    r"(.*/)?(Fairness|Throughput)/.*",
    r"(.*/)?Bandwidth/[^/]*/(?!(task_ratelimit|pos_ratio) of ).*",
    r"(.*/)?Memory cgroups/.*",
    r"(.*/)?(vmstat|Zones)/.*",
)


class Drawn:
    """What the engine shows at a time."""

    def __init__(self, exported: Exported) -> None:
        self._tops = {name for name, is_top in exported.wanted.places.items() if is_top}
        self.curves: Curves = curves_of(engine_counters(exported.engine))
        self._slices: dict[str, list[Slice]] = defaultdict(list)
        for slice_ in engine_slices(exported.engine):
            self._slices[slice_.track].append(slice_)

    def value(self, track: str, ts: int) -> float:
        """Of a counter; 0 before its first value, and of one that is not there."""
        points = self.curves.get(drawn_path(f"Writeback/{track}", self._tops), [])
        at = bisect_right(points, ts, key=lambda point: point.ts)
        return points[at - 1].value if at else 0.0

    def slices(self, track: str, ts: int) -> list[Slice]:
        """Those of a track that are drawn at this time."""
        found = self._slices[drawn_path(f"Writeback/{track}", self._tops)]
        return [one for one in found if one.ts <= ts < one.ts + one.dur]

    def tracks(self, pattern: str) -> list[tuple[str, list[CounterSample]]]:
        """Counters whose path matches, each with what the pattern's group is."""
        found = []
        for track, points in self.curves.items():
            if match := re.fullmatch(pattern, track.removeprefix("Writeback/")):
                found.append((match[1], points))
        return found


@pytest.fixture(scope="module")
def drawn(exported: Exported) -> Drawn:
    return Drawn(exported)


@pytest.fixture(scope="module")
def windows(exported: Exported, wbscope: Wbscope) -> dict[int, int]:
    """The end of each window by its start; that of the last is the end of the trace."""
    rows = wbscope.sql(
        exported.database,
        "SELECT w.window_start_ns AS start, min(w.window_end_ns, b.end_ts) AS end"
        " FROM wb_window AS w CROSS JOIN wb_bounds AS b",
    )
    return {row["start"]: row["end"] for row in rows}


@pytest.fixture(scope="module")
def devices(exported: Exported, wbscope: Wbscope) -> dict[str, str]:
    """What tracks call a bdi."""
    rows = wbscope.sql(exported.database, "SELECT bdi, device FROM wb_device")
    return {row["bdi"]: f"{row['device']} {row['bdi']}" for row in rows if row["device"]}


def moments(window: tuple[int, int]) -> tuple[int, int, int]:
    start, end = window
    return start, (start + end) // 2, end - 1


def answer(wbscope: Wbscope, exported: Exported, query: str, *options: str) -> list[Document]:
    """The rows of a query; none where its events were not recorded."""
    done = wbscope.run("query", query, exported.database, *options, "--json")
    if done.returncode == 4:
        return []
    return wbscope.query(query, exported.database, *options)


def wb_name(row: dict[str, Any], devices: dict[str, str]) -> str:
    cgroup = row["cgroup_ino"]
    name = devices.get(row["bdi"], row["bdi"])
    return name + (f" cgroup {cgroup}" if cgroup is not None and cgroup > 1 else "")


def task_name(comm: str, tid: int | str) -> str:
    """As tracks call a task."""
    return f"{comm} {tid}".replace("\\", "\\\\").replace("/", "\\/")


def assert_is(found: float, wanted: float, *what: object) -> None:
    assert math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9), (found, wanted, *what)


def assert_are(found: list[Slice], jains: list[float]) -> None:
    """At most one, that says so in its name too."""
    assert len(found) == len(jains), (found, jains)
    for slice_, jain in zip(found, jains, strict=True):
        told = float(dict(slice_.args)["jain_ratio"])
        assert math.isclose(told, jain, rel_tol=ROUNDED), (told, jain, slice_)
        assert slice_.name == f"Jain {round(100 * told)} %"


def compared(
    row: dict[str, Any], spans: dict[tuple[int, str], tuple[int, int]], light: set[tuple[int, str]]
) -> float | None:
    """Jain's index of those that wrote all through the window and wanted more than they got."""
    start = row["window_start_ns"]
    rates = []
    for tid, rate in re.findall(r"-(\d+)=(\d+)(?: |$)", row["task_rates"]):
        task = int(tid), row["bdi"]
        first, last = spans[task]
        is_whole = first <= start and last >= start + 2_000_000_000
        if int(rate) > 0 and is_whole and task not in light:
            rates.append(int(rate))
    if len(rates) < 2 or row["jain_ratio"] is None:
        return None
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def test_fairness(
    exported: Exported,
    wbscope: Wbscope,
    drawn: Drawn,
    windows: dict[int, int],
    devices: dict[str, str],
) -> None:
    rows = answer(wbscope, exported, "fairness", *WINDOW)
    spans = {}
    if rows:
        found = wbscope.sql(
            exported.database,
            "SELECT e.tid, e.bdi, min(e.ts) AS first, max(e.ts) AS last"
            " FROM ev_balance_dirty_pages AS e GROUP BY e.tid, e.bdi",
        )
        spans = {(row["tid"], row["bdi"]): (row["first"], row["last"]) for row in found}
    light = {
        (row["tid"], row["bdi"])
        for row in answer(wbscope, exported, "fairness_tasks")
        if row["is_demand_limited"] or (row["demand_basis"] == "none" and row["slept_ratio"] < 0.05)
    }
    known: dict[tuple[int, str], float] = {}
    for row in rows:
        jain = compared(row, spans, light)
        if jain is not None:
            known[row["window_start_ns"], wb_name(row, devices)] = jain
    names = {wb_name(row, devices) for row in rows}
    of_run = [
        row["jain_ratio"] if row["jain_weighted_ratio"] is None else row["jain_weighted_ratio"]
        for row in answer(wbscope, exported, "fairness")
        if row["tasks_count"] > 1 and row["jain_ratio"] is not None
    ]
    for start, end in windows.items():
        jains = [jain for (at, _), jain in known.items() if at == start]
        for ts in moments((start, end)):
            for name in names:
                wanted = known.get((start, name))
                bars = drawn.slices(f"Fairness/Jain's index of {name}", ts)
                assert_are(bars, [] if wanted is None else [wanted])
            bars = drawn.slices("Fairness", ts)
            whole = [bar for bar in bars if bar.name.startswith("whole run: ")]
            assert_are([bar for bar in bars if bar not in whole], [min(jains)] if jains else [])
            assert [bar.name for bar in whole] == [
                f"whole run: Jain {100 * jain:.1f} %" for jain in sorted(of_run)[:1]
            ]


def test_throttled_shares(
    exported: Exported, wbscope: Wbscope, drawn: Drawn, windows: dict[int, int]
) -> None:
    ratios = {
        (row["window_start_ns"], task_name(row["comm"], row["tid"])): row["throttled_ratio"]
        for row in answer(wbscope, exported, "throttle_windows", *WINDOW)
    }
    for start, end in windows.items():
        for name in {name for _, name in ratios}:
            for ts in moments((start, end)):
                found = drawn.value(f"Fairness/throttled share of {name}", ts)
                assert_is(found, 100 * ratios.get((start, name), 0.0), name, start)


def test_dirtied_shares(exported: Exported, drawn: Drawn, windows: dict[int, int]) -> None:
    """Of what the curves of Task progress gain in the window: throttle_windows has only what the
    kernel charged, these the best source that there is."""
    curves = {
        name: f"Task progress/dirtied by {name} ({basis})"
        for name, basis in (
            re.fullmatch(r"(.*) \((\w+)\)", found).groups()  # type: ignore[union-attr]
            for found, _ in drawn.tracks(r"Task progress/dirtied by (.*)")
        )
    }
    for start, end in windows.items():
        gained = {
            name: drawn.value(track, end - 1) - drawn.value(track, start - 1)
            for name, track in curves.items()
        }
        total = sum(gained.values())
        for name, megabytes in gained.items():
            wanted = 100 * megabytes / total if total else 0.0
            for ts in moments((start, end)):
                found = drawn.value(f"Fairness/dirtied share of {name}", ts)
                assert math.isclose(found, wanted, abs_tol=0.01), (name, start, found, wanted)


def test_throughput(
    exported: Exported, wbscope: Wbscope, drawn: Drawn, windows: dict[int, int]
) -> None:
    for row in answer(wbscope, exported, "throughput", *WINDOW):
        window = row["window_start_ns"], windows[row["window_start_ns"]]
        for curve in ("dirtied", "written"):
            wanted = (row[f"{curve}_bytes_per_s"] or 0.0) / 1024**2
            for ts in moments(window):
                assert_is(drawn.value(f"Throughput/{curve}", ts), wanted, curve, row)


def test_throughput_by_device(
    exported: Exported,
    wbscope: Wbscope,
    drawn: Drawn,
    windows: dict[int, int],
    devices: dict[str, str],
) -> None:
    told: dict[tuple[int, str, str], float] = {}
    names = set()
    for row in answer(wbscope, exported, "throughput_by_device", *WINDOW):
        name = devices.get(row["device"], row["device"])
        names.add(name)
        for curve in ("read", "written"):
            told[row["window_start_ns"], name, curve] = row[f"{curve}_bytes"] or 0
    for start, end in windows.items():
        for name in names:
            for curve in ("read", "written"):
                wanted = told.get((start, name, curve), 0) * 1e9 / (end - start) / 1024**2
                for ts in moments((start, end)):
                    assert_is(drawn.value(f"Throughput/{name} {curve}", ts), wanted, name, start)


def test_pool(
    exported: Exported,
    wbscope: Wbscope,
    drawn: Drawn,
    windows: dict[int, int],
    devices: dict[str, str],
) -> None:
    """The query gives whole bytes."""
    rows = answer(wbscope, exported, "pool", *WINDOW)
    held: dict[tuple[int, str], float] = {}
    for row in rows:
        name = "nobody known" if row["bdi"] is None else wb_name(row, devices)
        held[row["window_start_ns"], name] = row["held_bytes"] or 0.0
    for start, end in windows.items():
        for ts in moments((start, end)):
            for name in {name for _, name in held}:
                wanted = held.get((start, name), 0.0) / 1024**2
                found = drawn.value(f"Dirty pages/held by {name}", ts)
                assert math.isclose(found, wanted, abs_tol=1e-6), (name, start, found, wanted)


def test_curves_of_throttled_tasks_end(exported: Exported, wbscope: Wbscope, drawn: Drawn) -> None:
    """Behind the last pause of a task on a wb nothing is asked of it, and nothing allowed."""
    rows = wbscope.sql(
        exported.database,
        "SELECT tid, max(max(ts, sleep_ts + slept_ns)) AS end_ts, max(ts) AS ts"
        " FROM wb_throttle GROUP BY tid",
    )
    ends = {str(row["tid"]): row["end_ts"] for row in rows}
    tracks = [
        *drawn.tracks(r"Throttled tasks/.* (\d+) on .*/(?:pause|paused|dirtied)"),
        *drawn.tracks(r"Bandwidth/.*/(?:task_ratelimit|pos_ratio) of .* (\d+)"),
    ]
    assert {tid for tid, _ in tracks} == ends.keys()
    for tid, points in tracks:
        # A counter that was 0 before its end is not told again.
        assert points[-1].value == 0, points[-1]
        assert points[-1].ts <= ends[tid] + 1, points[-1]


def test_nothing_else_goes_on(exported: Exported, drawn: Drawn) -> None:
    """At the end of the trace only sums and states have a value."""
    for track, points in drawn.curves.items():
        if not any(re.fullmatch(pattern, track) for pattern in GO_ON):
            waits = re.fullmatch(r"(.*/)?(Stalls|Reclaim|Block requests)(/.*)?", track)
            assert points[-1].value == 0 or waits, (track, points[-1])
