# SPDX-License-Identifier: Apache-2.0
"""Series of stock kernels, in QEMU: of each bdi, of a cgroup, and what threads dirtied.

As test_guest.py, which says where kernels come from.
"""

from __future__ import annotations

import json
import re
import shutil
from typing import Any

import pytest
from support.guest import boot, guest_folders
from support.live import Recorder

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
    kernel = guest_folders().get(request.param)
    if kernel is None:
        pytest.skip(f"no kernel {request.param} in build/guests; run: make guest-kernels")
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed")
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
        assert 0 < told[column] == max(_values(guest, "copies", "bdi.samples", name)) < written
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
        " max(1.0 * busy_ns / dur_ns) AS busy, max(device) AS device"
        " FROM wb_usage WHERE source = 'block' AND object = 'vdc'",
    )
    assert told["device"] == _DATA
    assert _MIB < told["written"] < 2 * sum(_COPIES) * _MIB
    assert told["busy"] > 0.25
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
    assert max(row["dirty_bytes"] for row in rows) > 0
    assert max(row["memory_bytes"] for row in rows) <= 64 * _MIB
    inode = rows[0]["cgroup_ino"]
    told = guest.sql(
        "cgroup",
        "SELECT max(dirty_bytes + writeback_bytes) AS dirty, sum(dirtied_bytes) AS dirtied"
        f" FROM wb_usage WHERE source = 'bdi' AND device = '{_DATA}' AND cgroup_ino = {inode}",
    )
    if _kernel(guest) in _HAS_WB_STATS:
        assert 0 < told[0]["dirty"] <= 64 * _MIB
        assert 0 < told[0]["dirtied"] <= (_OF_CGROUP + 1) * _MIB
    else:
        assert told == [{"dirty": None, "dirtied": None}]
    files = guest.sql("cgroup", "SELECT name FROM sidecar_file WHERE status <> 'loaded'")
    assert files == []
