# SPDX-License-Identifier: Apache-2.0
"""Series, reclaim and a slow disk in QEMU guests with stock kernels."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.cli import Document, Wbscope
from support.guest import GUEST_SECONDS, boot, guest_kernel
from support.live import Recorder
from support.runs import REPOSITORY

# Series of stock kernels, in QEMU: of each bdi, of a cgroup, and what threads dirtied.
#
# As test_guest.py, which says where kernels come from.

_MIB, _PAGE = 1 << 20, 4096
_DATA = "254:32"
_COPIES, _OF_CGROUP = (29, 31), 37
_LIMIT = 16
_KERNELS = ("6.1", "6.12", "7.2")
_CPUS = {"6.1": "2,maxcpus=4", "6.12": "1"}
_HAS_WB_STATS = ("6.12", "7.2")
_SCENARIO = f"""\
echo "+memory +io" > /p/sys/fs/cgroup/cgroup.subtree_control
mkdir /p/sys/fs/cgroup/small
echo 64M > /p/sys/fs/cgroup/small/memory.max
sampled() {{
  name=$1; shift
  record record --backend tracefs --sample 200ms --sysctl vm.dirty_bytes={_LIMIT}M \\
    --sysctl vm.dirty_background_bytes=8M --no-report -o /out/$name -- sh -c "$*"
  echo "$name rc=$?"
}}
copy='dd if=/dev/zero bs=1M conv=fsync'
sampled copies "for i in {" ".join(map(str, _COPIES))}; do
  $copy of=/data/copy-\\$i count=\\$i 2>/dev/null & done; wait"
sampled cgroup "echo \\$\\$ > /sys/fs/cgroup/small/cgroup.procs
  $copy of=/data/small count={_OF_CGROUP} 2>/dev/null"
"""


@pytest.fixture(scope="module", params=_KERNELS)
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """The runs of one kernel."""
    kernel = guest_kernel(request.param)
    disk = request.getfixturevalue("guest_disk")
    out = tmp_path_factory.mktemp(f"guest-{request.param}")
    boot(kernel, disk, _SCENARIO, out, smp=_CPUS.get(request.param, "2"))
    log = (out / "log").read_text()
    assert re.findall(r"^(\w+) rc=0$", log, re.MULTILINE) == ["copies", "cgroup", "scenario"], log
    guest = Recorder(out)
    guest.env["WBSCOPE_TEST_KERNEL"] = request.param
    return guest


def _kernel(guest: Recorder) -> str:
    return guest.env["WBSCOPE_TEST_KERNEL"]


def _values(guest: Recorder, run: str, file: str, name: str) -> list[int]:
    """Bytes, of the files as they are."""
    parts = (guest.folder / run / file).read_text().split(f"== {_DATA}\n")[1:]
    pattern = re.compile(rf"^{name}:\s+(\d+) kB$", re.MULTILINE)
    return [int(pattern.findall(part.split("== ")[0])[0]) << 10 for part in parts]


def _gained(guest: Recorder, run: str, name: str) -> int:
    (before,) = _values(guest, run, "bdi.before", name)
    (after,) = _values(guest, run, "bdi.after", name)
    return after - before


def _exits(guest: Recorder, run: str) -> list[int]:
    text = (guest.folder / run / "task_io").read_text()
    return sorted(
        int(written)
        for written in re.findall(r"^exit .* write_bytes=(\d+) .*comm=dd$", text, re.MULTILINE)
    )


def _rows(guest: Recorder, query: str, run: str) -> list[dict[str, Any]]:
    done = guest.wbscope("query", query, run, "--json")
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


def test_bdis_dirty_writeback_threshold_and_throughput(guest: Recorder) -> None:
    """Kara's first graph."""
    written = sum(_COPIES) * _MIB
    for name in ("BdiDirtied", "BdiWritten"):
        # Counters of each CPU are added up when they are large enough.
        assert -_MIB < _gained(guest, "copies", name) - written < 4 * _MIB, name
    (told,) = guest.sql(
        "copies",
        "SELECT count(*) AS n, sum(dirtied_bytes) AS dirtied, sum(written_bytes) AS written,"
        " max(dirty_bytes) AS dirty, max(writeback_bytes) AS writeback,"
        " max(wb_thresh_bytes) AS thresh, max(write_bw_bytes_per_s) AS write_bw"
        f" FROM wb_usage WHERE source = 'bdi' AND device = '{_DATA}' AND cgroup_ino IS NULL",
    )
    assert told["n"] >= 3
    # The command has begun before the first sample, and goes on behind the last.
    for column, name in (("dirtied", "BdiDirtied"), ("written", "BdiWritten")):
        sampled = _values(guest, "copies", "bdi.samples", name)
        assert len(sampled) == told["n"]
        assert 0 < told[column] == sampled[-1] - sampled[0] <= _gained(guest, "copies", name)
    for column, name in (("dirty", "BdiReclaimable"), ("writeback", "BdiWriteback")):
        # A slow guest can have written all at each sample.
        assert told[column] == max(_values(guest, "copies", "bdi.samples", name)) < written
    assert 0 < told["thresh"] <= _LIMIT * _MIB
    assert told["write_bw"] > 0
    rows = [row for row in _rows(guest, "bdi_samples", "copies") if row["bdi"] == _DATA]
    assert rows
    assert all(row["wb_thresh_bytes"] is not None for row in rows)
    tracks = guest.sql(
        "copies",
        f"SELECT DISTINCT track FROM tl_bdi_sample WHERE track GLOB '*/vd? {_DATA}/*' ORDER BY 1",
    )
    assert [row["track"].rpartition("/")[2] for row in tracks] == [
        "dirtied", "dirty", "wb_thresh", "write_bw", "writeback", "written",
    ]  # fmt: skip


def test_disks_are_busy_with_large_requests(guest: Recorder) -> None:
    (told,) = guest.sql(
        "copies",
        "SELECT sum(written_bytes) AS written, sum(writes_count) AS writes,"
        " sum(busy_ns) AS busy, max(device) AS device"
        " FROM wb_usage WHERE source = 'block' AND object = 'vdc'",
    )
    assert told["device"] == _DATA
    assert _MIB < told["written"] < 2 * sum(_COPIES) * _MIB
    samples = (guest.folder / "copies/block.samples").read_text()
    ticks = [int(line.split()[9]) for line in re.findall(r"^== vdc\n(.*)$", samples, re.MULTILINE)]
    assert 0 < told["busy"] == (ticks[-1] - ticks[0]) * 1_000_000  # io_ticks, in ms
    assert told["written"] / told["writes"] > 16 * _PAGE


def test_threads_dirtied_what_they_wrote(guest: Recorder) -> None:
    for run, sizes in (("copies", _COPIES), ("cgroup", (_OF_CGROUP,))):
        exits = _exits(guest, run)
        assert len(exits) == len(sizes)
        for written, size in zip(exits, sizes, strict=True):
            assert 0 <= written - size * _MIB <= 4 * _PAGE
        assert guest.meta(run)["task_io"]["exits"] == "taskstats"


def test_a_cgroup_that_writes(guest: Recorder) -> None:
    rows = [
        row
        for row in _rows(guest, "cgroup_samples", "cgroup")
        if row["path"] == "/sys/fs/cgroup/small"
    ]
    assert rows
    assert {row["memory_max_bytes"] for row in rows} == {64 * _MIB}
    inode = rows[0]["cgroup_ino"]
    parts = (guest.folder / "cgroup/cgroup.samples").read_text().split("== ")
    stats = "".join(part for part in parts if part.startswith(f"{inode}/memory.stat\n"))
    sampled = [int(size) for size in re.findall(r"^file_dirty (\d+)$", stats, re.MULTILINE)]
    assert (max(row["dirty_bytes"] for row in rows) > 0) == (max(sampled) > 0)
    assert max(row["memory_bytes"] for row in rows) <= 64 * _MIB
    told = guest.sql(
        "cgroup",
        "SELECT max(dirty_bytes + writeback_bytes) AS dirty, sum(dirtied_bytes) AS dirtied"
        f" FROM wb_usage WHERE source = 'bdi' AND device = '{_DATA}' AND cgroup_ino = {inode}",
    )
    if _kernel(guest) in _HAS_WB_STATS:
        assert 0 <= told[0]["dirty"] <= 64 * _MIB
        assert 0 < told[0]["dirtied"] <= (_OF_CGROUP + 1) * _MIB
    else:
        assert told == [{"dirty": None, "dirtied": None}]
    files = guest.sql("cgroup", "SELECT name FROM sidecar_file WHERE status <> 'loaded'")
    assert files == []


# Where reclaim's pages go on stock kernels, in QEMU: of zeros, and of other content.
#
# As test_guest.py, which says where kernels come from. /proc/vmstat is the truth here, and the
# bytes that the swap device completed. 6.1 has the classic LRU and writes zeros; 6.12 and 7.2 have
# MGLRU and do not.

_NO_ZEROS = ("6.12", "7.2")
_SWAP = "254:16"
_RECLAIM_PAGE = 4096
# A buffer of zeros and one of other content, each larger than what is free, and read again.
_RECLAIM_SCENARIO = """\
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
def reclaim_guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs of one kernel: zero, urandom."""
    kernel = guest_kernel(request.param)
    out = tmp_path_factory.mktemp(f"guest-{request.param}") / "out"
    out.mkdir()
    scenario, swap = out.parent / "scenario.sh", out.parent / "swap.img"
    scenario.write_text(_RECLAIM_SCENARIO)
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


def _reclaim_gained(folder: Path) -> Mapping[str, int]:
    before, after = (
        {name: int(value) for name, value in map(str.split, (folder / file).open())}
        for file in ("vmstat.before", "vmstat.after")
    )
    return {name: value - before.get(name, 0) for name, value in after.items()}


def _by(rows: list[Document], key: str) -> dict[str, Document]:
    return {row[key]: row for row in rows}


@pytest.mark.parametrize("what", ["zero", "urandom"])
def test_every_page_has_a_destination(wbscope: Wbscope, reclaim_guest: Path, what: str) -> None:
    folder = reclaim_guest / what
    gained = _reclaim_gained(folder)
    rows = _by(wbscope.query("reclaim_destinations", folder), "destination")
    assert gained["nr_vmscan_write"] > 10_000
    assert rows["swap device"]["pages_count"] == gained["pswpout"]
    assert rows["zero-filled"]["pages_count"] == gained.get("swpout_zero", 0)
    # What was given back before the write.
    assert 0 <= rows["rest"]["pages_count"] <= 0.01 * gained["nr_vmscan_write"]
    pages = sum(row["pages_count"] or 0 for row in rows.values())
    assert pages == gained["nr_vmscan_write"]
    device = _by(wbscope.query("throughput_by_device", folder, "--window", "1000s"), "device")
    assert device[_SWAP]["written_bytes"] == pytest.approx(
        gained["pswpout"] * _RECLAIM_PAGE, rel=0.01
    )


def test_zeros_are_written_up_to_6_11(wbscope: Wbscope, reclaim_guest: Path) -> None:
    kernel = (reclaim_guest / "uname").read_text().split()[2]
    looks_for_zeros = kernel.startswith(_NO_ZEROS)
    ratios = {}
    for what in ("zero", "urandom"):
        rows = wbscope.query("reclaim_writes", reclaim_guest / what)
        (ratios[what],) = {row["swap_device_ratio"] for row in rows if row["kind"] == "anon"}
    assert (ratios["zero"] < 0.5) == looks_for_zeros, ratios
    assert ratios["urandom"] > 0.8, ratios
    document = wbscope.document("query", "reclaim_writes", str(reclaim_guest / "zero"))
    slugs = {warning["slug"] for warning in document["warnings"]}
    assert ("reached-no-device" in slugs) == looks_for_zeros


@pytest.mark.parametrize("what", ["zero", "urandom"])
def test_scans_are_those_of_vmstat(wbscope: Wbscope, reclaim_guest: Path, what: str) -> None:
    gained = _reclaim_gained(reclaim_guest / what)
    rows = _by(wbscope.query("reclaim_efficiency", reclaim_guest / what), "reclaimer")
    kernel = (reclaim_guest / "uname").read_text().split()[2]
    for who in ("kswapd", "direct"):
        assert (
            rows[who]["scanned_count"]
            == gained[f"pgscan_{who}"]
            == rows[who]["vmstat_scanned_count"]
        )
        assert rows[who]["reclaimed_count"] == gained[f"pgsteal_{who}"]
        assert rows[who]["scan_basis"] == ("isolate" if kernel.startswith(_NO_ZEROS) else "shrink")


# The recorder is not held by what it records: a disk of 256 KB/s holds all dirty pages.
#
# As test_guest.py, which says where kernels come from. The run is on another disk, a fast one: the
# machine is over its limit until long after the recording, and every task that makes a page dirty
# is held with it.

_SLOW_CPUS = {"6.12": "1"}
_SLOW_BYTES_PER_S = 256_000
_LIMIT_BYTES = 16 << 20
_SECONDS = 20
_SLOW_SCENARIO = f"""\
mkdir -p /p/tmp/slow
# Without a journal, for whose commit dd would wait instead.
chroot /p mkfs.ext4 -qF -O ^has_journal -E lazy_itable_init=1 /dev/vdd 64M
mount -t ext4 /dev/vdd /p/tmp/slow
echo {_LIMIT_BYTES} > /proc/sys/vm/dirty_bytes
cat > /p/tmp/writers << 'EOF'
pids=
for i in 1 2 3 4 5 6 7 8; do
  dd if=/dev/zero of=/tmp/slow/f$i bs=64k 2>/dev/null &
  pids="$pids $!"
done
sleep {_SECONDS}
kill $pids
EOF
# More events than the pages of dd alone, so that there is much to write.
for backend in tracefs trace-cmd; do
  read -r began rest < /proc/uptime
  record record --backend $backend --profile deep --no-report -o /data/$backend -- sh /tmp/writers
  echo "$backend rc=$?"
  read -r ended rest < /proc/uptime
  echo "$backend took $began $ended"
  grep -E '^(Dirty|Writeback):' /proc/meminfo | sed "s/^/$backend /"
  cp -r /p/data/$backend /out/$backend
  rm /p/tmp/slow/f* # pages that are not being written need not be any more
done
"""


@pytest.fixture(scope="module", params=_KERNELS)
def slow_guest(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Recorder:
    """The runs of one kernel: tracefs, trace-cmd."""
    kernel = guest_kernel(request.param)
    out = tmp_path_factory.mktemp(f"slow-disk-{request.param}")
    disk = request.getfixturevalue("guest_disk")
    boot(
        kernel, disk, _SLOW_SCENARIO, out,
        smp=_SLOW_CPUS.get(request.param, "2"), slow_bytes_per_s=_SLOW_BYTES_PER_S,
    )  # fmt: skip
    return Recorder(out)


def _log(slow_guest: Recorder) -> str:
    log = slow_guest.folder / "log"
    return log.read_text() if log.exists() else (slow_guest.folder / "console").read_text()


def _seconds(slow_guest: Recorder, backend: str) -> float:
    (line,) = (
        line for line in _log(slow_guest).splitlines() if line.startswith(f"{backend} took ")
    )
    began, ended = map(float, line.split()[2:])
    return ended - began


def _pauses(slow_guest: Recorder, run: str) -> dict[str, tuple[int, float]]:
    """Number and seconds of pauses of each process, by the events."""
    rows = slow_guest.sql(
        run,
        "SELECT COALESCE(t.comm, b.tid) AS comm, COUNT(*) AS n, SUM(b.pause) / 1000.0 AS s"
        " FROM ev_balance_dirty_pages AS b LEFT JOIN task AS t USING (tid)"
        " WHERE b.pause > 0 GROUP BY 1",
    )
    return {str(row["comm"]): (row["n"], row["s"]) for row in rows}


def test_recorder_is_not_held(slow_guest: Recorder) -> None:
    assert "tracefs rc=0" in _log(slow_guest)
    meta = slow_guest.meta("tracefs")
    assert (meta["ended"], meta["problems"], sum(meta["lost"].values())) == ("complete", [], 0)
    assert meta["recorder_throttled_ns"] == 0
    pauses = _pauses(slow_guest, "tracefs")
    assert pauses.keys() == {"dd"}, pauses
    assert pauses["dd"][1] > 0


def test_samples_are_not_held(slow_guest: Recorder) -> None:
    """They go on while dd is held, and none waits for the disk: it takes a minute to get below."""
    text = (slow_guest.folder / "tracefs/meminfo.samples").read_text()
    stamps = [int(line[5:]) for line in text.splitlines() if line.startswith("# ts=")]
    gaps = [later - earlier for earlier, later in itertools.pairwise(stamps)]
    (held,) = slow_guest.sql(
        "tracefs",
        "SELECT MIN(ts) AS first, MAX(ts) AS last FROM ev_balance_dirty_pages WHERE pause > 0",
    )
    assert sum(held["first"] < stamp < held["last"] for stamp in stamps) > 3
    assert max(gaps) < (held["last"] - held["first"]) / 2, gaps
    assert "\0" not in text


def test_trace_cmd_says_how_long_it_was_held(slow_guest: Recorder) -> None:
    """It writes through the page cache, which cannot be helped: 15 s on 7.2, nothing on 6.1."""
    assert "trace-cmd rc=0" in _log(slow_guest)
    meta = slow_guest.meta("trace-cmd")
    throttled_s = meta["recorder_throttled_ns"] / 1e9
    held = sum(
        s for comm, (_, s) in _pauses(slow_guest, "trace-cmd").items() if comm == "trace-cmd"
    )
    assert held <= throttled_s < _seconds(slow_guest, "trace-cmd")
    assert ("held in balance_dirty_pages" in str(meta["problems"])) == (throttled_s > 0)
