# SPDX-License-Identifier: Apache-2.0
"""What tasks dirtied in free run, shared out by their calls, and when that cannot be done.

By hand, 4 KiB pages, ms from 10 s. nr_dirtied goes from 1000 to 1700: the machine dirtied 700
pages. Each call looks at the machine's dirty pages; one that is throttled then fires its event.
  a, tid 1: looks at 0, 100, 1000, 2100, 3000; at 1000 and 3000 it is charged 100 pages each
  b, tid 2: looks at 200, 1200, 3200; at 1200 and 3200 it is charged 50 pages each
  flusher, tid 9: looks too, and is not asked
root: 300 of 700 pages are charged: coverage 3/7. 400 pages in 4 calls in free run, 100 for each: a
  has 3, so 200 + 300 = 500; b has 1, so 100 + 100 = 200.
  Rates: the first call of each was in free run and is older than the rate's time: a 400 pages in
  3 s, b 100 in 3 s: Jain 500^2 / (2 * (400^2 + 100^2)) = 25/34, slowest to fastest 1/4.
  Windows of 2 s: a 100 + 2 * 100 = 300, b 50 + 100 = 150: 450^2 / (2 * (300^2 + 150^2)) = 9/10;
  a 100 + 100 = 200, b 50: 250^2 / (2 * (200^2 + 50^2)) = 62500/85000. Nothing tells what they
  asked for: there is no weighted index.
folio: of root, and each folio that becomes dirty is told: a 450 at 100, 105 ... 2345, b 230 at 200,
  205 ... 1345, the flusher 20; 700 of 700 pages, and what is told is exact.
  Rates: a 450 pages in 2.245 s, b 230 in 1.145 s.
large: the same, but only a's 450 are told, so some folios were larger than a page: 450 is less than
  99 % of 700 pages less the 6 that a counter of this machine may be off (128 MiB, 1 CPU: the
  threshold of a CPU is 2 * 1 * (1 + 1) = 4, half of it more is 6). As root.
untold: as folio, but nr_dirtied goes from 1650 to 1700: 50 pages are less than ten times those 6:
  nothing tells how large the folios were, and they are no basis.
memcg: the same as root, but b is of a memory cgroup, which makes its calls stand for fewer pages:
  nothing is shared out, the bounds remain, and with 3/7 of the pages they tell nothing: no index.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from support.golden import Check
from support.wait_events import Waits

_PAGE = 4096
_FOLIOS = ((1, 100, 450), (2, 200, 230), (9, 300, 20))


def make(folder: Path) -> None:
    for name, cgroup in (("root", 1), ("memcg", 27)):
        (folder / name).mkdir()
        _write(folder / name, cgroup)
    for name, tasks in (("folio", 3), ("large", 1), ("untold", 3)):
        (folder / name).mkdir()
        _write(folder / name, 1, _FOLIOS[:tasks], 50 if name == "untold" else 700)
        (folder / name / "meminfo").write_text("MemTotal: 131072 kB\n")


def _write(
    folder: Path, cgroup: int, folios: Sequence[tuple[int, int, int]] = (), counted: int = 700
) -> None:
    events = (
        "global_dirty_state",
        "balance_dirty_pages",
        *(["writeback_dirty_folio"] * bool(folios)),
    )
    waits = Waits(*events, cmdlines={1: "a", 2: "b", 9: "flusher"})
    for tid, start, count in folios:
        for index in range(count):
            ms = start + 5 * index
            waits.add(ms, tid, "writeback_dirty_folio", name="8:0", ino=12, index=index)
    limits = {"background_thresh": 1000, "dirty_thresh": 2000, "dirty_limit": 2000}

    def look(ms: float, tid: int, dirtied: int) -> None:
        dirtied = max(dirtied, 1700 - counted)
        waits.add(ms, tid, "global_dirty_state", nr_dirty=1600, nr_dirtied=dirtied, **limits)

    def charge(ms: float, tid: int, pages: int) -> None:
        look(ms, tid, 1300)
        values = {"cgroup_ino": 1 if tid == 1 else cgroup, "limit": 2000, "setpoint": 1750}
        values |= {"dirty": 1600, "dirty_ratelimit": 4000, "task_ratelimit": 4000}
        values |= {"dirtied": pages, "pause": 20, "period": 20}
        waits.add(ms, tid, "balance_dirty_pages", bdi="8:0", **values)

    look(0, 1, 1700 - counted)
    for ms, tid in ((100, 1), (200, 2), (2100, 1), (500, 9), (600, 9)):
        look(ms, tid, 1200)
    for ms, tid, pages in ((1000, 1, 100), (1200, 2, 50), (3000, 1, 100), (3200, 2, 50)):
        charge(ms, tid, pages)
    look(3999.999999, 9, 1700)
    waits.write(folder)


def _task(
    tid: int, pages: int, measure: str, rate: float | None = None
) -> dict[str, int | float | str | None]:
    row: dict[str, int | float | str | None] = {
        "tid": tid,
        "dirtied_estimate_bytes": pages * _PAGE,
        "dirtied_basis": measure,
        "coverage_ratio": 3 / 7,
        "demand_basis": "none",
        "entitlement_bytes_per_s": None,
    }
    return row if rate is None else row | {"rate_bytes_per_s": rate * _PAGE}


def _jain(
    value: float | None, measure: str, **more: int | float | None
) -> dict[str, int | float | str | None]:
    return {
        "jain_ratio": value,
        "jain_weighted_ratio": None,
        "dirtied_basis": measure,
        "coverage_ratio": 3 / 7,
        **more,
    }


CHECKS = [
    Check(
        query="fairness_tasks",
        folder="root",
        rows=[_task(1, 500, "calibrated", 400 / 3), _task(2, 200, "calibrated", 100 / 3)],
    ),
    Check(
        query="fairness",
        folder="root",
        rows=[_jain(25 / 34, "calibrated", tasks_count=2, slowest_to_fastest_ratio=1 / 4)],
        warning_words=("demand of",),
    ),
    Check(
        query="fairness",
        folder="root",
        options=("--window", "2s"),
        rows=[_jain(9 / 10, "calibrated"), _jain(62500 / 85000, "calibrated")],
    ),
    Check(
        query="fairness_tasks",
        folder="folio",
        rows=[_task(1, 450, "folio", 450 / 2.245), _task(2, 230, "folio", 230 / 1.145)],
    ),
    Check(
        query="throttle_windows",
        folder="folio",
        rows=[{"tid": 1, "dirtied_bytes": 100 * _PAGE}, {"tid": 2, "dirtied_bytes": 50 * _PAGE}]
        * 2,
        keep=lambda row: row["tid"] in {1, 2},
    ),
    Check(
        query="fairness_tasks",
        folder="large",
        rows=[_task(1, 500, "calibrated", 400 / 3), _task(2, 200, "calibrated", 100 / 3)],
    ),
    Check(
        sql="SELECT tid, basis FROM wb_task_dirtied ORDER BY tid",
        folder="untold",
        rows=[{"tid": 1, "basis": "calibrated"}, {"tid": 2, "basis": "calibrated"}],
    ),
    Check(
        query="fairness_tasks",
        folder="memcg",
        rows=[_task(1, 200, "bound"), _task(2, 100, "bound")],
    ),
    Check(
        query="fairness",
        folder="memcg",
        rows=[
            _jain(None, "bound", cgroup_ino=1, slowest_to_fastest_ratio=None),
            _jain(None, "bound", cgroup_ino=27, slowest_to_fastest_ratio=None),
        ],
        warning_words=("43 % of what the machine dirtied",),
    ),
]
