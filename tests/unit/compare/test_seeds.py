# SPDX-License-Identifier: Apache-2.0
"""The tables of the mails that the project was asked to understand, as golden cases."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats
from support.rundata import TIME, WRITES, metric, run, side
from wbscope.compare.comparison import Side, compare_sides
from wbscope.compare.gate import judge
from wbscope.compare.policy import Margin, Policy, Rule
from wbscope.measure.metric import Metric
from wbscope.measure.tables import parse_ops
from wbscope.render.changes import described_text
from wbscope.render.compare import gain, mmtests_text

# Mail of 2013-05-16, "Reduce system disruption due to kswapd V4".
MEMCACHETEST = """\
Ops memcachetest-0M 22155.00 ( 0.00%) 22180.00 ( 0.11%)
Ops memcachetest-715M 22720.00 ( 0.00%) 22355.00 ( -1.61%)
Ops memcachetest-2385M 3939.00 ( 0.00%) 23450.00 (495.33%)
Ops memcachetest-4055M 3628.00 ( 0.00%) 24341.00 (570.92%)
Ops io-duration-0M 0.00 ( 0.00%) 0.00 ( 0.00%)
Ops io-duration-715M 12.00 ( 0.00%) 7.00 ( 41.67%)
Ops io-duration-2385M 118.00 ( 0.00%) 21.00 ( 82.20%)
Ops io-duration-4055M 162.00 ( 0.00%) 36.00 ( 77.78%)
Ops swaptotal-0M 0.00 ( 0.00%) 0.00 ( 0.00%)
Ops swaptotal-715M 140134.00 ( 0.00%) 18.00 ( 99.99%)
Ops swaptotal-2385M 392438.00 ( 0.00%) 0.00 ( 0.00%)
Ops swaptotal-4055M 449037.00 ( 0.00%) 27864.00 ( 93.79%)
Ops swapin-0M 0.00 ( 0.00%) 0.00 ( 0.00%)
Ops swapin-715M 0.00 ( 0.00%) 0.00 ( 0.00%)
Ops swapin-2385M 148031.00 ( 0.00%) 0.00 ( 0.00%)
Ops swapin-4055M 135109.00 ( 0.00%) 0.00 ( 0.00%)
Ops minorfaults-0M 1529984.00 ( 0.00%) 1530235.00 ( -0.02%)
Ops minorfaults-715M 1794168.00 ( 0.00%) 1613750.00 ( 10.06%)
Ops minorfaults-2385M 1739813.00 ( 0.00%) 1609396.00 ( 7.50%)
Ops minorfaults-4055M 1754460.00 ( 0.00%) 1614810.00 ( 7.96%)
Ops majorfaults-0M 0.00 ( 0.00%) 0.00 ( 0.00%)
Ops majorfaults-715M 185.00 ( 0.00%) 180.00 ( 2.70%)
Ops majorfaults-2385M 24472.00 ( 0.00%) 101.00 ( 99.59%)
Ops majorfaults-4055M 22302.00 ( 0.00%) 229.00 ( 98.97%)
"""
# Three lines where mmtests is wrong: what fell to 0 got better by all there was.
WRONG = {
    "Ops swaptotal-2385M": "100.00%",
    "Ops swapin-2385M": "100.00%",
    "Ops swapin-4055M": "100.00%",
}
VMSTAT = """\
Page Ins 1234608 101892
Page Outs 12446272 11810468
Swap Ins 283406 0
Swap Outs 698469 27882
Direct pages scanned 0 136480
Kswapd pages scanned 6266537 5369364
Kswapd pages reclaimed 1088989 930832
Direct pages reclaimed 0 120901
Kswapd efficiency 17% 17%
Kswapd velocity 5398.371 4635.115
Direct efficiency 100% 88%
Direct velocity 0.000 117.817
Percentage direct scans 0% 2%
Page writes by reclaim 1655843 4009929
Page writes file 957374 3982047
Page writes anon 698469 27882
Page reclaim immediate 5245 1745
Page rescued immediate 0 0
Slabs scanned 33664 25216
Direct inode steals 0 0
Kswapd inode steals 19409 778
"""
_OPS = re.compile(r"Ops (\S+) (\S+) \( 0\.00%\) (\S+) \(\s*(\S+)\)")
_UNITS = {"memcachetest": "ops/s higher", "io-duration": "s lower"}


def _ops_side(name: str, column: int) -> Side:
    """As the benchmark's own file of `name value unit` lines would have it."""
    lines = []
    for line in MEMCACHETEST.splitlines():
        found = _OPS.fullmatch(line)
        assert found is not None
        unit = _UNITS.get(found[1].rpartition("-")[0], "pages lower")
        lines.append(f"{found[1]} {found[column]} {unit}")
    scalars = parse_ops("\n".join(lines))
    return Side(name, (run(name, dict(scalars.values())),))


def test_memcachetest_line_by_line() -> None:
    base, patched = _ops_side("vanilla", 2), _ops_side("lessdisrupt-v4", 3)
    text = mmtests_text(compare_sides(base, [patched]))
    printed = [" ".join(line.split()) for line in text.splitlines() if line.startswith("Ops ")]
    for line, wanted in zip(printed, MEMCACHETEST.splitlines(), strict=True):
        name = " ".join(wanted.split()[:2])
        if name in WRONG:
            wanted = wanted.rpartition("( ")[0] + f"({WRONG[name]})"
        assert line == wanted
    assert "none is told apart from chance" in " ".join(text.split())  # one run a side


def test_the_vmstat_table_line_by_line() -> None:
    units = {"efficiency": "%", "Percentage direct scans": "%", "velocity": "pages/s"}
    sides: list[dict[Metric, float | None]] = [{}, {}]
    for line in VMSTAT.splitlines():
        name, old, new = line.rsplit(maxsplit=2)
        unit = next((unit for word, unit in units.items() if word in name), "pages")
        key = f"mmtests_vmstat.value[name={name.replace(' ', '_')}]"
        one = metric(key, "higher" if "efficiency" in name else "lower", unit)
        for values, text in zip(sides, (old, new), strict=True):
            values[one] = float(text.rstrip("%"))
    base, patched = (Side(n, (run(n, v),)) for n, v in zip("BA", sides, strict=True))
    text = mmtests_text(compare_sides(base, [patched]))
    without = re.sub(r"\(\s*\S+\)", "", text)
    printed = [" ".join(line.split()) for line in without.splitlines()]
    del printed[: printed.index("B A") + 1]
    assert printed[: len(VMSTAT.splitlines())] == VMSTAT.splitlines()
    percent = {line.split("  ")[0].strip(): re.findall(r"\(\s*(\S+)\)", line)[1:]
               for line in text.splitlines() if "(" in line}  # fmt: skip
    assert percent["Page Ins"] == ["91.75%"]
    assert percent["Direct pages scanned"] == ["---"]  # a rise from 0 has no per cent
    assert percent["Page writes by reclaim"] == ["-142.17%"]


@pytest.mark.parametrize(
    ("better", "base", "value", "wanted"),
    [
        ("lower", 667839, 0, 100.0),
        ("lower", 3347, 161, 95.1897),
        ("higher", 667839, 0, -100.0),  # mmtests: 0.00 %
        ("higher", 3939, 23450, 495.329),
        ("lower", 0, 5, None),
        ("lower", 0, 0, 0.0),
        ("neutral", 10, 15, 50.0),
        ("lower", -10, -15, 50.0),
    ],
)
def test_per_cent(better: str, base: float, value: float, wanted: float | None) -> None:
    found = gain(metric("x.y", better), base, value)  # type: ignore[arg-type]
    assert found == (None if wanted is None else pytest.approx(wanted, abs=1e-3))


def _around(mean: float, deviation: float, n: int) -> list[float]:
    """n values with exactly this mean and standard deviation, spread as normal ones are."""
    scores = stats.norm.ppf((np.arange(1, n + 1) - 0.375) / (n + 0.25))
    scores = scores / scores.std(ddof=1)
    return [float(value) for value in mean + deviation * scores]


@pytest.mark.parametrize("of_mean", [1.0, 6**0.5], ids=["s.d.", "s.d. of the mean"])
def test_copying_8_gib_to_a_usb_stick(of_mean: float) -> None:
    """Per-zone dirty limits, 2011-07-25: 912.6 s (+- 3.851 %) to 605.9 s (+- 0.783 %), 6 runs.

    What perf stat prints behind +- is the deviation of the mean: each run has 6 ** 0.5
    times that.
    """
    old = _around(912.625, 912.625 * 0.03851 * of_mean, 6)
    new = _around(605.910, 605.910 * 0.00783 * of_mean, 6)
    row = compare_sides(side("B", {TIME: old}), [side("A", {TIME: new})]).rows[0]
    assert row.outcome == "better"
    assert row.shift is not None
    assert row.shift.p == pytest.approx(2 / 924)
    assert row.shift.relative == pytest.approx(605.910 / 912.625 - 1, abs=0.02)
    assert row.shift.high is not None
    assert row.shift.high < 0.75
    policy = Policy((Rule(TIME.name, Margin("5%", 0.05)), Rule(WRITES.name, Margin("5%", 0.05))))
    written = [667839.0 + i for i in range(6)]
    before = side("b", {TIME: old, WRITES: written})
    after = side("a", {TIME: new, WRITES: [0.0] * 6})
    assert [v.reasons for v in judge(after, before, policy, []).verdicts] == [("better",)] * 2
    assert [v.status for v in judge(before, after, policy, []).verdicts] == ["FAIL", "FAIL"]


@pytest.mark.parametrize(("old", "new"), [(667839, 0), (3347, 161)])
def test_single_runs_of_nr_vmscan_write(old: float, new: float) -> None:
    """The mail has one number a kernel: an improvement, and nothing that a test can know."""
    row = compare_sides(side("B", {WRITES: [old]}), [side("A", {WRITES: [new]})]).rows[0]
    assert (row.outcome, row.reason) == ("undecided", "no test possible with one run each")
    assert row.shift is not None
    assert row.shift.scale == ("difference" if new == 0 else "ratio")


def test_cache_references() -> None:
    """Commit e50e3720: 10 runs without the extremes, 648.6 (14.6) to 620.1 (16.5) million."""
    million = metric("perf.cache-references_count", unit="count")

    def runs(mean: float, deviation: float) -> list[float]:
        kept = _around(mean, deviation, 8)
        return [min(kept) - 30, *kept, max(kept) + 60]

    old, new = runs(648.6, 14.6), runs(620.1, 16.5)
    row = compare_sides(side("B", {million: old}), [side("A", {million: new})]).rows[0]
    told = row.base_sample.description
    assert (told.trimmed_mean, told.trimmed_sd) == pytest.approx((648.6, 14.6))
    told = row.sample.description
    assert (told.trimmed_mean, told.trimmed_sd) == pytest.approx((620.1, 16.5))
    assert "(trimmed 649 ± 14.6)" in described_text(million, row.base_sample)
    # Of all ten runs, extremes too: surely fewer, by less than 5 %, so without a face.
    assert row.shift is not None
    assert row.shift.p < 0.05
    assert row.shift.relative == pytest.approx(-0.044, abs=0.01)
    assert row.outcome == "changed"


def test_three_settings_of_write_behind() -> None:
    """Mail of 2019-09-20: COPY, SYNC and Dirty for vm.dirty_write_behind = 0, 1, 2."""
    copy, sync = metric("ops.copy_ns"), metric("ops.sync_ns")
    dirty = metric("ops.dirty_bytes", unit="bytes")
    measured = {
        "0": (3.629e9, 31.953e9, 3254552 * 1024),
        "1": (32.738e9, 0.427e9, 2900 * 1024),
        "2": (32.168e9, 0.421e9, 3088 * 1024),
    }
    sides = [
        Side(name, (run(name, dict(zip((copy, sync, dirty), values, strict=True))),))
        for name, values in measured.items()
    ]
    found = compare_sides(sides[0], sides[1:])
    assert [(row.side, row.metric.name) for row in found.rows[:2]] == [
        ("1", "ops.copy_ns"),
        ("1", "ops.sync_ns"),
    ]
    text = mmtests_text(found)
    printed = [" ".join(line.split()) for line in text.splitlines()]
    table = printed[printed.index("0 1 2") + 1 :]
    assert table[:3] == [
        "Ops copy 3.63 ( 0.00%) 32.74 (-802.12%) 32.17 (-786.41%)",
        "Ops sync 31.95 ( 0.00%) 0.43 ( 98.66%) 0.42 ( 98.68%)",
        "Ops dirty_bytes 3.10 GiB ( 0.00%) 2.83 MiB ( 99.91%) 3.02 MiB ( 99.91%)",
    ]
