# SPDX-License-Identifier: Apache-2.0
"""Numbers that are advised: none below what the kernel keeps, none that is set already."""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from wbscope.library.finding import Finding

_MIB = 1 << 20
_PAGES = 256  # in a MiB
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
