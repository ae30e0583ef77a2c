# SPDX-License-Identifier: Apache-2.0
"""Writers on NFS and on FUSE in a guest, against what the client and the server count.

The experiments of examples/lab, shortened: one run each. /proc/self/mountstats has what the NFS
client counted, `served` what the FUSE server did.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.guest import guest_folders
from support.runs import REPOSITORY

_KERNELS = ("6.1", "6.12", "7.2")
_EXAMPLES = REPOSITORY / "examples/lab"
# Request and answer of fuse_request_send are in other threads than the server's clock.
_FUSE_SLACK = 0.02


@dataclass(frozen=True)
class Call:
    """A line of /proc/self/mountstats; times in ms, of all calls together."""

    count: int
    queue_ms: int
    rtt_ms: int


@pytest.fixture(scope="module", params=_KERNELS)
def kernel(request: pytest.FixtureRequest) -> Path:
    folder = guest_folders().get(request.param)
    if folder is None:
        pytest.skip(f"no kernel {request.param} in build/guests; run: make guest-kernels")
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed")
    return folder / "kernel"


@pytest.fixture(scope="module")
def nfs(kernel: Path, tmp_path_factory: pytest.TempPathFactory, lab: Wbscope) -> Path:
    folder = tmp_path_factory.mktemp("nfs")
    return _run(lab, "nfs", kernel, folder, "through", "nfs", ("timeout 8", "timeout 4"))


@pytest.fixture(scope="module")
def fuse(kernel: Path, tmp_path_factory: pytest.TempPathFactory, lab: Wbscope) -> Path:
    folder = tmp_path_factory.mktemp("fuse")
    source = _EXAMPLES / "fuse/passfs.c"
    command = ["gcc", "-O2", "-Wall", "-Werror", "-static", "-o", folder / "passfs", source]
    subprocess.run(command, check=True)
    lab.env["PATH"] = f"{folder}:{lab.env['PATH']}"
    return _run(lab, "fuse", kernel, folder, "share", "strict", ("count=12288", "count=4096"))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Wbscope:
    return Wbscope(tmp_path_factory.mktemp("cache"), process=True)


def _run(
    lab: Wbscope, example: str, kernel: Path, folder: Path, axis: str, name: str,
    shorter: tuple[str, str],
) -> Path:  # fmt: skip
    """The run folder of one run of the experiment, with this kernel and this name of the axis."""
    for path in (_EXAMPLES / example).iterdir():
        if path.name.startswith("mount-"):
            shutil.copy(path, folder)
    text = (_EXAMPLES / example / "matrix.toml").read_text()
    assert text.count(shorter[0]) == 1
    (chosen,) = re.findall(rf"^{name} = .*$", text, re.M)
    text = text[: text.index("[axis.")].replace(*shorter).replace("runs = 3", "runs = 1")
    text += f'[axis.kernel]\nk = {{ kernel.folder = "{kernel}" }}\n[axis.{axis}]\n{chosen}\n'
    (folder / "matrix.toml").write_text(text)
    done = lab.run("lab", folder / "matrix.toml", "-o", folder / "out")
    assert done.returncode == 0, done.stderr
    return folder / "out" / f"k,{name}" / "run-1"


def _calls(run: Path, name: str) -> dict[str, Call]:
    """What the client did for the file system on /mnt since it was mounted."""
    text = (run / name).read_text()
    (own,) = (part for part in text.split("device ") if " mounted on /mnt with" in part)
    found = re.findall(r"^\s*(\w+): (\d+) \d+ \d+ \d+ \d+ (\d+) (\d+) \d+", own, re.M)
    return {op: Call(int(count), int(queue), int(rtt)) for op, count, queue, rtt in found}


def _written_bytes(run: Path, name: str) -> int:
    """Bytes that the client wrote to the server."""
    text = (run / name).read_text()
    (own,) = (part for part in text.split("device ") if " mounted on /mnt with" in part)
    (counts,) = re.findall(r"^\s*bytes:\s*(.*)$", own, re.M)
    return int(counts.split()[5])


def _by_op(lab: Wbscope, run: Path) -> dict[str, dict[str, Any]]:
    return {row["op"]: row for row in lab.query("server_latency", run)}


def test_nfs_requests_are_those_that_the_client_counted(lab: Wbscope, nfs: Path) -> None:
    rows = _by_op(lab, nfs)
    before, after = _calls(nfs, "mountstats.before"), _calls(nfs, "mountstats")
    for op in ("WRITE", "COMMIT"):
        count = after[op].count - before[op].count
        assert count > 3
        assert (rows[op]["count"], rows[op]["open_count"]) == (count, 0)
        assert rows[op]["calls_count"] == count
        # The client counts whole ms of the sum, the event us of each.
        rtt_ms = after[op].rtt_ms - before[op].rtt_ms
        queue_ms = after[op].queue_ms - before[op].queue_ms
        assert rows[op]["rtt_mean_ns"] * count / 1e6 == pytest.approx(rtt_ms, abs=count + 2)
        assert rows[op]["queue_mean_ns"] * count / 1e6 == pytest.approx(queue_ms, abs=count + 2)
        # Sent and answered, with what the client does around it.
        told_ms = rows[op]["latency_mean_ns"] * count / 1e6
        assert told_ms >= (rtt_ms + queue_ms) * 0.98 - count


def test_nfs_bytes_are_those_of_the_files(lab: Wbscope, nfs: Path) -> None:
    """dd writes each page once, but for the last one of a dd that was ended."""
    written = _written_bytes(nfs, "mountstats") - _written_bytes(nfs, "mountstats.before")
    sizes = [int(line.split()[4]) for line in (nfs / "ls-files").read_text().splitlines()
             if line.startswith("-")]  # fmt: skip
    told = _by_op(lab, nfs)["WRITE"]["bytes"]
    assert told == written
    assert len(sizes) == 9
    assert told == pytest.approx(sum(sizes), abs=len(sizes) * 4096)


def test_nfs_fsync_waits_for_the_server(lab: Wbscope, nfs: Path) -> None:
    """One dd had conv=fsync, and the stopwatch was around it."""
    took_ns = float((nfs / "fsync.seconds").read_text()) * 1e9
    rows = [row for row in lab.query("stalls", nfs) if row["what"] == "fsync"]
    fsyncs = [row for row in rows if row["bdi"] and row["bdi"].startswith("0:")]
    assert len(fsyncs) == 1
    assert fsyncs[0]["span_ns"] <= took_ns + 2e7
    # What is inside it, by the same task: its own time, and sleeps for folios.
    own = [
        row for row in lab.query("stalls", nfs)
        if row["tid"] == fsyncs[0]["tid"]
        and fsyncs[0]["ts"] <= row["ts"] < fsyncs[0]["ts"] + fsyncs[0]["span_ns"]
    ]  # fmt: skip
    late = sum(row["dur"] or 0 for row in own if row["cause"] == "server latency")
    assert late >= 0.9 * fsyncs[0]["span_ns"]
    assert not [row for row in own if row["cause"] in ("device latency", "journal commit")]


def test_nfs_close_waits_for_the_server(lab: Wbscope, nfs: Path) -> None:
    """The eight others are ended, which closes their file."""
    closes = [row for row in lab.query("stalls", nfs) if row["what"] == "nfs_wb_all"]
    assert len({row["tid"] for row in closes}) >= 8
    assert {row["kind"] for row in closes} == {"server"}


def test_fuse_requests_are_those_that_the_server_counted(lab: Wbscope, fuse: Path) -> None:
    served = dict(line.split() for line in (fuse / "served").read_text().splitlines())
    if "fuse:fuse_request_send" not in _events(lab, fuse):
        assert _release(fuse) < (6, 12)
        return
    rows = _by_op(lab, fuse)
    assert rows["WRITE"]["count"] == int(served["WRITE"])
    assert rows["WRITE"]["bytes"] == int(served["write_bytes"]) == 4096 * 32768
    for op in ("FSYNC", "CREATE"):
        assert rows[op]["count"] == int(served[op]) == 1
    # The server's own time is part of it.
    told_ns = rows["WRITE"]["latency_mean_ns"] * rows["WRITE"]["count"]
    assert told_ns >= int(served["write_ns"]) * (1 - _FUSE_SLACK)


def test_fuse_writer_is_held_by_the_strictlimit(lab: Wbscope, fuse: Path) -> None:
    """1 % of the threshold is a few hundred KiB: below free run, for the whole machine."""
    limits = dict(line.split() for line in (fuse / "limits").read_text().splitlines())
    assert limits["max_ratio"] == "1"
    assert limits.get("strict_limit", "1") == "1"
    rows = [
        row for row in lab.query("stalls_by_task", fuse)
        if row["comm"] == "dd" and row["kind"] == "throttle"
    ]  # fmt: skip
    total = sum(row["total_ns"] for row in rows)
    strict = sum(row["total_ns"] for row in rows if row["cause"] == "strictlimit")
    assert total > 0
    assert strict > 0.5 * total


def _events(lab: Wbscope, run: Path) -> set[str]:
    return {row["event"] for row in lab.query("event_counts", run)}


def _release(run: Path) -> tuple[int, int]:
    major, minor = (run / "uname").read_text().split()[2].split(".")[:2]
    return int(major), int(minor)
