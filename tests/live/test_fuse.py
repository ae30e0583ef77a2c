# SPDX-License-Identifier: Apache-2.0
"""Writers on a FUSE file system of this machine, against what its server counted."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.live import Recorder, program_of_ours, sysctls_of_machine
from support.runs import REPOSITORY
from support.waits import wait_until
from wbscope.record.choose import the_tracefs

_SOURCE = REPOSITORY / "examples/lab/fuse/passfs.c"
_SYNCED_BYTES, _COPIED_BYTES = 2003 << 15, 307 << 15
# So long does the server take for each WRITE: whoever asks for an fsync has to wait for some.
_WRITE_US = 1500
_WORKLOAD = f"""
$2 if=/dev/zero of=$1/synced bs=32k count={_SYNCED_BYTES >> 15} conv=fsync 2> /dev/null
$2 if=/dev/zero of=$1/copied bs=32k count={_COPIED_BYTES >> 15} 2> /dev/null
umount $1
"""


@dataclass(frozen=True)
class Served:
    """A run, and what the server counted in it."""

    recorder: Recorder
    counts: dict[str, int]
    dd: str  # under a name that nobody else runs
    device: str

    def query(self, name: str) -> list[dict[str, Any]]:
        """Of this file system: others may be mounted, too."""
        done = self.recorder.wbscope("query", name, "run", "--bdi", self.device, "--json")
        assert done.returncode == 0, done.stderr
        rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
        return rows

    def stalls_of_dd(self) -> list[dict[str, Any]]:
        """On any device."""
        done = self.recorder.wbscope("query", "stalls", "run", "--task", self.dd, "--json")
        assert done.returncode == 0, done.stderr
        rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
        return rows


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, disk: Path) -> Served:
    """One run: fsync of one file, close of another, unmounted at its end."""
    if not (the_tracefs() / "events/fuse").is_dir():
        pytest.skip("this machine cannot be traced: its kernel has no events of FUSE")
    recorder = Recorder(tmp_path_factory.mktemp("fuse"))
    server, mount, behind = recorder.folder / "passfs", recorder.folder / "mnt", disk / "behind"
    subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-static", "-o", server, _SOURCE], check=True)
    mount.mkdir()
    behind.mkdir()
    counts = recorder.folder / "served"
    # The server lives on with them, so they are no pipes.
    with (recorder.folder / "said").open("w+") as said:
        command = [server, behind, mount, counts, str(_WRITE_US)]
        done = subprocess.run(command, stdout=said, stderr=said, check=False)
        said.seek(0)
        if done.returncode:
            pytest.skip(f"cannot mount FUSE: {said.read().strip()}")
    (recorder.folder / "workload").write_text(_WORKLOAD)
    number = mount.stat().st_dev
    before, dd = sysctls_of_machine(), program_of_ours(recorder.folder, "dd")
    try:
        ended = recorder.record(
            *("--profile", "deep", "--backend", "tracefs", "--no-report", "-o", "run"),
            *("--", "sh", recorder.folder / "workload", mount, dd),
        )
        assert ended.returncode == 0, ended.stderr
        assert (recorder.left(), sysctls_of_machine()) == ([], before)
        wait_until(counts.exists, "the server ends and says what it counted")
    finally:
        subprocess.run(["umount", mount], capture_output=True, check=False)
    lines = (line.split() for line in counts.read_text().splitlines())
    served = {name: int(count) for name, count in lines}
    return Served(recorder, served, dd.name, f"{os.major(number)}:{os.minor(number)}")


def test_requests_are_those_that_the_server_counted(served: Served) -> None:
    rows = {row["op"]: row for row in served.query("server_latency")}
    # GETATTR is asked for by whoever looks at the mount, before the run and after it.
    counted = {
        op: count
        for op, count in served.counts.items()
        if op.isupper() and count and op != "GETATTR"
    }
    assert {"WRITE", "FSYNC", "FLUSH", "CREATE", "RELEASE"} <= counted.keys()
    assert {op: rows[op]["count"] for op in counted} == counted
    assert len({row["device"] for row in rows.values()}) == 1
    assert rows["WRITE"]["bytes"] == served.counts["write_bytes"] == _SYNCED_BYTES + _COPIED_BYTES
    # The server's own time for them, one after the other.
    told_ns = rows["WRITE"]["latency_mean_ns"] * rows["WRITE"]["count"]
    assert told_ns > served.counts["write_ns"] >= served.counts["WRITE"] * _WRITE_US * 1000
    # Each file is looked up before it is there; the server knows no attributes of security.
    assert {op: row["errors_count"] for op, row in rows.items() if row["errors_count"]} == {
        "LOOKUP": 2,
        "GETXATTR": counted["GETXATTR"],
    }


def test_the_writer_waits_for_the_server(served: Served) -> None:
    """The one FSYNC is the longest that its task waits for an answer; the server waits for none."""
    waits = [row for row in served.query("stalls") if row["kind"] == "server"]
    assert {row["comm"] for row in waits} <= {served.dd, "umount", "sh"}
    assert {row["cause"] for row in waits} == {"server latency"}
    (synced,) = (row for row in waits if row["what"] == "fuse FSYNC")
    assert synced["comm"] == served.dd
    calls = [row for row in served.stalls_of_dd() if row["what"] == "fsync"]
    (own,) = (row for row in calls if row["tid"] == synced["tid"])
    assert own["ts"] < synced["ts"]
    assert synced["ts"] + synced["span_ns"] <= own["ts"] + own["span_ns"]
    (row,) = (row for row in served.query("server_latency") if row["op"] == "FSYNC")
    assert synced["span_ns"] == row["latency_max_ns"]


def test_folio_waits_are_the_servers(served: Served) -> None:
    """Not those of the only disk, which the file system is not on."""
    waits = [
        row for row in served.stalls_of_dd() if row["kind"] == "folio wait" and row["dur"]
    ]  # fmt: skip
    assert waits
    total_ns = sum(row["dur"] for row in waits)
    assert sum(row["dur"] for row in waits if row["cause"] == "server latency") > 0.9 * total_ns
    assert all(row["device_ratio"] is None for row in waits)
