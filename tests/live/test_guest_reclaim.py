# SPDX-License-Identifier: Apache-2.0
"""Where reclaim's pages go on stock kernels, in QEMU: of zeros, and of other content.

As test_guest.py, which says where kernels come from. /proc/vmstat is the truth here, and the bytes
that the swap device completed. 6.1 has the classic LRU and writes zeros; 6.12 and 7.2 have MGLRU
and do not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.cli import Document, Wbscope
from support.guest import GUEST_SECONDS, guest_folders
from support.runs import REPOSITORY

_KERNELS = ("6.1", "6.12", "7.2")
_CPUS = {"6.1": "2,maxcpus=4", "6.12": "1"}
_NO_ZEROS = ("6.12", "7.2")
_SWAP = "254:16"
_PAGE = 4096
# A buffer of zeros and one of other content, each larger than what is free, and read again.
_SCENARIO = """\
mkswap /dev/vdb > /dev/null; swapon /dev/vdb
echo 100 > /proc/sys/vm/swappiness
for what in zero urandom; do
  mkdir /out/$what; cd /out/$what
  cat /proc/zoneinfo > zoneinfo
  trace-cmd record -q -b 20000 -e vmscan -e block:block_rq_issue -e block:block_rq_complete \\
    -o trace.dat sh -c "cat /proc/vmstat > /out/$what/vmstat.before
      dd if=/dev/$what of=/dev/null bs=180M count=2; dd if=/dev/$what of=/dev/null bs=180M count=1
      sleep 1; until grep -q '^nr_writeback 0$' /proc/vmstat; do sleep 0.5; done
      cat /proc/vmstat > /out/$what/vmstat.after" > /out/$what/log 2>&1
  echo "$what rc=$?"
done
"""


@pytest.fixture(scope="module", params=_KERNELS)
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs of one kernel: zero, urandom."""
    kernel = guest_folders().get(request.param)
    if kernel is None:
        pytest.skip(f"no kernel {request.param} in build/guests; run: make guest-kernels")
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed")
    out = tmp_path_factory.mktemp(f"guest-{request.param}") / "out"
    out.mkdir()
    scenario, swap = out.parent / "scenario.sh", out.parent / "swap.img"
    scenario.write_text(_SCENARIO)
    subprocess.run(["truncate", "-s", "1G", swap], check=True)
    env = os.environ | {
        "DRIVES": f"file={swap},if=virtio,format=raw,cache=unsafe",
        "SMP": _CPUS.get(request.param, "2"),
        "MEM": "256",
        "LIMIT": os.environ.get("WBSCOPE_GUEST_SECONDS", GUEST_SECONDS),
    }
    boot = [sys.executable, REPOSITORY / "tools/record-samples/boot.py"]
    for _ in range(3):  # emulation of 6.12 is not perfect
        done = subprocess.run(
            [*boot, "amd64", kernel, scenario, out], env=env, capture_output=True, text=True
        )
        print(done.stderr)
        if (out / "log").exists():
            break
    log = (out / "log").read_text()
    assert all(f"{what} rc=0" in log for what in ("zero", "urandom")), log
    return out


def _gained(folder: Path) -> Mapping[str, int]:
    before, after = (
        {name: int(value) for name, value in map(str.split, (folder / file).open())}
        for file in ("vmstat.before", "vmstat.after")
    )
    return {name: value - before.get(name, 0) for name, value in after.items()}


def _by(rows: list[Document], key: str) -> dict[str, Document]:
    return {row[key]: row for row in rows}


@pytest.mark.parametrize("what", ["zero", "urandom"])
def test_every_page_has_a_destination(wbscope: Wbscope, guest: Path, what: str) -> None:
    folder = guest / what
    gained = _gained(folder)
    rows = _by(wbscope.query("reclaim_destinations", folder), "destination")
    assert gained["nr_vmscan_write"] > 10_000
    assert rows["swap device"]["pages_count"] == gained["pswpout"]
    assert rows["zero-filled"]["pages_count"] == gained.get("swpout_zero", 0)
    # What was given back before the write.
    assert 0 <= rows["rest"]["pages_count"] <= 0.01 * gained["nr_vmscan_write"]
    pages = sum(row["pages_count"] or 0 for row in rows.values())
    assert pages == gained["nr_vmscan_write"]
    device = _by(wbscope.query("throughput_by_device", folder, "--window", "1000s"), "device")
    assert device[_SWAP]["written_bytes"] == pytest.approx(gained["pswpout"] * _PAGE, rel=0.01)


def test_zeros_are_written_up_to_6_11(wbscope: Wbscope, guest: Path) -> None:
    kernel = (guest / "uname").read_text().split()[2]
    looks_for_zeros = kernel.startswith(_NO_ZEROS)
    ratios = {}
    for what in ("zero", "urandom"):
        rows = wbscope.query("reclaim_writes", guest / what)
        (ratios[what],) = {row["swap_device_ratio"] for row in rows if row["kind"] == "anon"}
    assert (ratios["zero"] < 0.5) == looks_for_zeros, ratios
    assert ratios["urandom"] > 0.8, ratios
    document = wbscope.document("query", "reclaim_writes", str(guest / "zero"))
    slugs = {warning["slug"] for warning in document["warnings"]}
    assert ("reached-no-device" in slugs) == looks_for_zeros


@pytest.mark.parametrize("what", ["zero", "urandom"])
def test_scans_are_those_of_vmstat(wbscope: Wbscope, guest: Path, what: str) -> None:
    gained = _gained(guest / what)
    rows = _by(wbscope.query("reclaim_efficiency", guest / what), "reclaimer")
    kernel = (guest / "uname").read_text().split()[2]
    for who in ("kswapd", "direct"):
        assert (
            rows[who]["scanned_count"]
            == gained[f"pgscan_{who}"]
            == rows[who]["vmstat_scanned_count"]
        )
        assert rows[who]["reclaimed_count"] == gained[f"pgsteal_{who}"]
        assert rows[who]["scan_basis"] == ("isolate" if kernel.startswith(_NO_ZEROS) else "shrink")
