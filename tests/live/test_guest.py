# SPDX-License-Identifier: Apache-2.0
"""wbscope record in QEMU guests with stock kernels: writers here, on NFS and on FUSE."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.cli import Wbscope
from support.guest import boot, guest_kernel
from support.live import Recorder, report_counts
from support.runs import REPOSITORY
from support.sidecars import probed_tasks
from wbscope.library.catalog import profile_of

# wbscope record in a QEMU guest with a stock kernel, where trace-cmd works.
#
# Kernels are fetched, not kept: `make guest-kernels` puts them into build/guests. A test
# without its kernel is skipped and says so. A boot and all recordings in it take about a
# minute on a quiet machine (software emulation, no KVM).

_WRITES, _WRITERS, _SYNCS = 23, 3, 5
_KIB = 1 << 10
_KERNELS = ("5.10", "6.1", "6.12", "7.2")
# Emulation of 6.12 stops in its own code patching with two CPUs.
# 6.1 has room for CPUs that are never plugged in.
_CPUS = {"6.1": "2,maxcpus=4", "6.12": "1"}
_PROBE_KINDS = {"5.10": "kprobe", "6.1": "kprobe", "6.12": "fprobe", "7.2": "fprobe"}
# The last pages of a task, up to 64, are in no call: 0.8 % of the smallest.
_FILES_MIB = (30, 40, 50)
_FIRST_MIB = 4
_SCENARIO = f"""\
T=/sys/kernel/tracing
echo 'p:others/entry balance_dirty_pages' >> $T/dynamic_events
echo 'r:others/return balance_dirty_pages' >> $T/dynamic_events
mkdir $T/instances/others
echo 1 > $T/instances/others/events/others/enable
cat $T/dynamic_events > /out/probes.before
cat > /tmp/workload <<'E'
for i in {" ".join(map(str, range(_WRITERS)))}; do
  dd if=/dev/zero of=/data/file-$i bs=64k count={_WRITES} 2>/dev/null &
done
wait
i=0
while [ $i -lt {_SYNCS} ]; do
  dd if=/dev/zero of=/data/log bs=4k count=1 conv=fsync 2>/dev/null
  i=$((i + 1))
done
E
dirty() {{ cat /proc/sys/vm/dirty_bytes /proc/sys/vm/dirty_ratio | tr '\\n' ' '; }}
left() {{
  ls $T/instances /run/wbscope | grep wbscope-
  grep -o 'wbscope_[^ ]*' $T/dynamic_events
}}
record record --backend trace-cmd --profile deep --sync --no-report -o /out/deep -- sh /tmp/workload
echo "deep rc=$?"
record record --backend tracefs --sysctl vm.dirty_bytes=16M --no-report -o /out/throttled -- \\
  sh -c 'for i in 1 2 3; do dd if=/dev/zero of=/data/t$i bs=1M count=19 2>/dev/null & done; wait'
echo "throttled rc=$?"
cat > /tmp/three <<'E'
# What a task has not paid for when it ends, the next ones on its CPU pay: one begins on each CPU,
# and pays for those of before, and no dd ends before the last one has written all.
size() {{ ls -ln $1 | {{ read -r mode links uid gid size rest; echo $size; }}; }}
write() {{ # FILE MIB [CPU]
  pin= # the taskset of Debian 11's busybox takes no list
  [ -z "${{3-}}" ] || ! taskset -c "$3" true 2>/dev/null || pin="taskset -c $3"
  (
    dd if=/dev/zero bs=64k count=$(($2 * 16)) 2>/dev/null
    until [ "$(size $to/$1)" = $(($2 * {_KIB * _KIB})) ]; do sleep 0.1; done
    : > /tmp/written-$1
    until set -- /tmp/written-*; [ $# = {len(_FILES_MIB) + 2} ]; do sleep 0.1; done
  ) | $pin dd of=$to/$1 bs=64k iflag=fullblock 2>/dev/null
}}
to=$1
read cpus < /sys/devices/system/cpu/online
write first-1 {_FIRST_MIB} ${{cpus%-*}} &
write first-2 {_FIRST_MIB} ${{cpus#*-}} &
until [ -e /tmp/written-first-1 ] && [ -e /tmp/written-first-2 ]; do sleep 0.1; done
for mib in {" ".join(map(str, _FILES_MIB))}; do write probed-$mib $mib & done
wait
E
sizes() {{ ls -ln /p/data/probed-* > $1; rm /p/data/probed-* /tmp/written-*; }}
for backend in tracefs trace-cmd; do
  record record --backend $backend --sysctl vm.dirty_bytes=8M \\
    --sysctl vm.dirty_background_bytes=4M --no-report -o /out/probed-$backend -- sh /tmp/three /data
  echo "probed-$backend rc=$?"
  sizes /out/probed-$backend/ls-files
done
echo 8388608 > /proc/sys/vm/dirty_bytes; echo 4194304 > /proc/sys/vm/dirty_background_bytes
record record --print -- sh /tmp/three /p/data > /tmp/script
sh /tmp/script > /out/remote.tar
echo "remote rc=$? $(left | wc -l)"
sizes /out/remote.files
echo 20 > /proc/sys/vm/dirty_ratio; echo 10 > /proc/sys/vm/dirty_background_ratio
for which in front recorder; do
  rm -f /p/data/started
  record record --backend trace-cmd --sysctl vm.dirty_bytes=32M --no-report \\
    -o /out/killed-$which -- \\
    sh -c 'dd if=/dev/zero of=/data/k bs=1M count=11 2>/dev/null; echo $$ > /data/started;
      exec sleep 3600' &
  until [ -s /p/data/started ]; do sleep 0.2; done
  sleep 1
  case $which in
    front) pattern='wbscope record --backend' ;;
    *) pattern='wbscope.record.supervisor' ;;
  esac
  echo "$which had $(dirty) $(left | wc -l)"
  for pid in $(ps -o pid,args | grep "$pattern" | grep -v grep | awk '{{print $1}}'); do
    kill -9 $pid
  done
  kill $(cat /p/data/started) 2>/dev/null # without its recorder, record waits for the command
  until [ -e /out/killed-$which/meta.json ]; do sleep 0.2; done
  wait
  tries=0 # what is left then is told
  while left | grep -q . && [ $tries -lt 300 ]; do sleep 0.2; tries=$((tries + 1)); done
  echo "$which left $(dirty) $(left | wc -l)"
done
record doctor --json > /out/doctor.json
cat $T/dynamic_events > /out/probes.after
cat $T/instances/others/events/others/*/enable > /out/others.enabled
grep -c ': entry: ' $T/instances/others/trace > /out/others.hits
"""


@pytest.fixture(scope="module", params=_KERNELS)
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """The runs of one kernel."""
    kernel = guest_kernel(request.param)
    disk = request.getfixturevalue("guest_disk")
    out = tmp_path_factory.mktemp(f"guest-{request.param}")
    boot(kernel, disk, _SCENARIO, out, smp=_CPUS.get(request.param, "2"))
    return Recorder(out)


def _log(guest: Recorder) -> str:
    log = guest.folder / "log"
    return log.read_text() if log.exists() else (guest.folder / "console").read_text()


def test_recorded_by_trace_cmd(guest: Recorder) -> None:
    assert "deep rc=0" in _log(guest)
    meta = guest.meta("deep")
    assert (meta["backend"], meta["ended"], meta["problems"]) == ("trace-cmd", "complete", [])
    assert meta["sync_duration_ns"] > 0
    ours = {event.partition(":")[2]: n for event, n in guest.counts("deep").items()}
    assert dict(report_counts(guest.folder / "deep/trace.dat")) == ours


def test_known_workload_is_counted_exactly(guest: Recorder) -> None:
    writes = guest.sql(
        "deep",
        "SELECT COUNT(*) AS n, COUNT(DISTINCT w.tid) AS tasks FROM ev_sys_exit_write AS w"
        f" JOIN task AS t USING (tid) WHERE t.comm = 'dd' AND w.ret = {64 * _KIB}",
    )
    assert writes == [{"n": _WRITES * _WRITERS, "tasks": _WRITERS}]
    syncs = guest.sql(
        "deep",
        "SELECT COUNT(*) AS n FROM ev_sys_exit_fsync AS f JOIN task AS t USING (tid)"
        " WHERE t.comm = 'dd' AND f.ret = 0",
    )
    assert syncs == [{"n": _SYNCS}]


def test_every_query_and_the_timeline(guest: Recorder) -> None:
    with wbscope.open(str(guest.folder / "deep")) as run:
        for query in run.library.queries():
            # There is no server in the guest.
            if query.name != "server_latency" and (
                profile_of(query.events, run.library.profiles) is not None
            ):
                assert run.query(query.name).columns, query.name
    done = guest.wbscope("timeline", "deep", "-o", "deep.pftrace")
    assert done.returncode == 0, done.stderr


def test_recorded_by_tracefs(guest: Recorder) -> None:
    assert "throttled rc=0" in _log(guest)
    assert guest.meta("throttled")["backend"] == "tracefs"
    query = guest.wbscope("query", "throttle_by_task", "throttled", "--task", "dd", "--json")
    rows = json.loads(query.stdout)["rows"]
    # With one CPU writers and flusher take turns, and nobody may be throttled.
    assert len(rows) <= 3
    assert guest.counts("throttled")["writeback:global_dirty_state"] > 0
    assert all(0 <= row["dirtied_bytes"] <= 19 << 20 for row in rows)


@pytest.mark.parametrize("which", ["front", "recorder"])
def test_killed_under_trace_cmd(guest: Recorder, which: str) -> None:
    log = _log(guest)
    # The instance, that of the recorder's own pauses, its entry in the register, two probes; and
    # the instance of waits with its event, which 5.10 does not list.
    had = 5 if guest.meta("deep")["machine"]["kernel_release"].startswith("5.10.") else 7
    assert f"{which} had {32 << 20} 0  {had}\n" in log, log
    assert f"{which} left 0 20  0\n" in log, log
    meta = guest.meta(f"killed-{which}")
    assert meta["ended"] == ("wbscope record killed" if which == "front" else "recorder killed")
    assert guest.counts(f"killed-{which}")
    report_counts(guest.folder / f"killed-{which}/trace.dat")


@pytest.mark.parametrize("backend", ["tracefs", "trace-cmd"])
def test_probes(guest: Recorder, backend: str) -> None:
    run = f"probed-{backend}"
    assert f"{run} rc=0" in _log(guest)
    meta = guest.meta(run)
    assert (meta["backend"], meta["problems"]) == (backend, [])
    assert meta["probe"]["missed"] == (0 if meta["probe"]["kind"] == "kprobe" else None)
    _check_probed(guest, run, guest.folder / run / "ls-files")


def test_probes_of_a_script(guest: Recorder) -> None:
    """Made and removed by a shell without wbscope, here that of busybox."""
    assert "remote rc=0 0\n" in _log(guest)
    done = guest.record("--unpack", "remote.tar", "--no-report", "-o", "remote")
    assert done.returncode == 0, done.stderr
    _check_probed(guest, "remote", guest.folder / "remote.files")


def _check_probed(guest: Recorder, run: str, listed: Path) -> None:
    """Every call is seen to begin and to end; bytes are those of the files."""
    meta = guest.meta(run)
    release = meta["machine"]["kernel_release"]
    (kind,) = (kind for kernel, kind in _PROBE_KINDS.items() if release.startswith(f"{kernel}."))
    assert meta["probe"]["kind"] == kind
    counts = guest.counts(run)
    entries, returns = (counts[event] for event in meta["probe"]["events"])
    assert entries == returns > 100
    tasks = probed_tasks(guest, run)
    assert all(task.unpaired_count == 0 for task in tasks)
    charged = sorted(task.pages_count * 4 * _KIB for task in tasks if task.comm == "dd")[2:]
    sizes = sorted(int(line.split()[4]) for line in listed.read_text().splitlines())
    assert sizes == [mib << 20 for mib in _FILES_MIB]
    # Each leaves less than a pause's pages (128 and some here), which are charged to who is next.
    rest = 160 * 4 * _KIB
    assert all(-rest <= got - size <= 4 * rest for got, size in zip(charged, sizes, strict=True))


def test_probes_of_others(guest: Recorder) -> None:
    """On the same function: there, enabled and hit as before."""
    before, after = ((guest.folder / f"probes.{when}").read_text() for when in ("before", "after"))
    assert before == after
    assert len(before.splitlines()) == 2
    assert (guest.folder / "others.enabled").read_text().split() == ["1", "1"]
    assert int((guest.folder / "others.hits").read_text()) > 100


def test_doctor(guest: Recorder) -> None:
    checks = {
        row["name"]: row for row in json.loads((guest.folder / "doctor.json").read_text())["rows"]
    }
    assert checks["trace-cmd"]["status"] == "ok"
    assert checks["profile writeback"]["found"] == "9 of 9 events"
    assert {checks[name]["status"] for name in ("bytes and waits", "blocked tasks")} == {"ok"}
    assert not [row for row in checks.values() if row["status"] == "fails"]


# Writers on NFS and on FUSE in a guest, against what the client and the server count.
#
# The experiments of examples/lab, shortened: one run each. /proc/self/mountstats has what the NFS
# client counted, `served` what the FUSE server did.

_SERVER_KERNELS = ("6.1", "6.12", "7.2")
_EXAMPLES = REPOSITORY / "examples/lab"
# Request and answer of fuse_request_send are in other threads than the server's clock.
_FUSE_SLACK = 0.02


@dataclass(frozen=True)
class Call:
    """A line of /proc/self/mountstats; times in ms, of all calls together."""

    count: int
    queue_ms: int
    rtt_ms: int


@pytest.fixture(scope="module", params=_SERVER_KERNELS)
def kernel(request: pytest.FixtureRequest) -> Path:
    return guest_kernel(request.param) / "kernel"


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
