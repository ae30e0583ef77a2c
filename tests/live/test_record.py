# SPDX-License-Identifier: Apache-2.0
"""wbscope record on this machine: known workloads in prime sizes, counted exactly."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import wbscope
from support.live import (
    Recorder,
    program_of_ours,
    report_counts,
    sysctls_of_machine,
    wait_while_it_runs,
    watching,
)
from support.verdicts import faults
from support.waits import GUARD_SECONDS
from wbscope.library.catalog import profile_of

_WRITES, _WRITERS, _SYNCS = 31, 3, 7
_KIB = 1 << 10
_PSI = ("psi",) if Path("/proc/pressure/io").exists() else ()
_LOW = ("--sysctl", "vm.dirty_bytes=16M", "--sysctl", "vm.dirty_background_bytes=8M")
# Queries that have rows when something was written and synced; with throttled writers, too.
_ANSWERED = {
    "block_latency", "copy_and_sync", "event_counts", "fingerprint", "mmtests_vmstat",
    "run_summary", "stalls", "stalls_by_task", "throttle_summary", "throughput",
    "throughput_by_device", "writeback_work",
}  # fmt: skip
_THROTTLED = ("throttle_by_task", "throttle_windows", "fairness_tasks", "pause_distribution",
              "bdi_dirty", "dirty_position")  # fmt: skip
_WORKLOAD = f"""
for i in {" ".join(map(str, range(_WRITERS)))}; do
  dd if=/dev/zero of=$1/file-$i bs=64k count={_WRITES} 2>/dev/null &
done
wait
i=0
while [ $i -lt {_SYNCS} ]; do
  dd if=/dev/zero of=$1/log bs=4k count=1 conv=fsync 2>/dev/null
  i=$((i + 1))
done
"""


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory, disk: Path) -> Recorder:
    """One run of the deep profile that several tests look at."""
    before = sysctls_of_machine()
    recorder = Recorder(tmp_path_factory.mktemp("deep"))
    script = recorder.folder / "workload"
    script.write_text(_WORKLOAD)
    done = recorder.record(
        *("--profile", "deep", "--backend", "tracefs", "--sync", "--no-report", "-o", "run"),
        *(*_LOW, "--", "sh", script, disk),
    )
    assert done.returncode == 0, done.stderr
    assert (recorder.left(), sysctls_of_machine()) == ([], before)
    return recorder


def _children(recorder: Recorder) -> str:
    """Of the shell of the workload: others on this machine run dd, too."""
    shell = recorder.meta("run")["command_pid"]
    return f"(SELECT child_pid FROM ev_sched_process_fork WHERE parent_pid = {shell})"


def test_writes_are_counted_exactly(deep: Recorder) -> None:
    rows = deep.sql(
        "run",
        "SELECT t.comm, COUNT(*) AS calls, SUM(w.ret) AS bytes FROM ev_sys_exit_write AS w"
        " JOIN task AS t USING (tid)"
        f" WHERE w.tid IN {_children(deep)} AND w.ret = {64 * _KIB} GROUP BY t.tid",
    )
    wanted = {"comm": "dd", "calls": _WRITES, "bytes": _WRITES * 64 * _KIB}
    assert rows == [wanted] * _WRITERS


def test_fsyncs_are_counted_exactly(deep: Recorder) -> None:
    for table, key in (("ev_sys_exit_fsync", "ret"), ("ev_ext4_sync_file_exit", "ret")):
        rows = deep.sql(
            "run",
            f"SELECT COUNT(*) AS n FROM {table} WHERE tid IN {_children(deep)} AND {key} = 0",
        )
        assert rows == [{"n": _SYNCS}], table


def test_processes_are_counted_exactly(deep: Recorder) -> None:
    shell = deep.meta("run")["command_pid"]
    rows = deep.sql(
        "run", f"SELECT COUNT(*) AS n FROM ev_sched_process_fork WHERE parent_pid = {shell}"
    )
    assert rows == [{"n": _WRITERS + _SYNCS}]


def test_trace_cmd_reads_the_same_events(deep: Recorder) -> None:
    if shutil.which("trace-cmd") is None:
        pytest.skip("trace-cmd is not installed")
    ours = {event.partition(":")[2]: n for event, n in deep.counts("run").items()}
    assert dict(report_counts(deep.folder / "run/trace.dat")) == ours


def test_every_query_answers(deep: Recorder) -> None:
    ours = {row["child_pid"] for row in deep.sql("run", _children(deep)[1:-1])}
    with wbscope.open(str(deep.folder / "run")) as run:
        recorded = run.recorded()
        for query in run.library.queries():
            # Events of 2011 and such are in no profile.
            if profile_of(query.events, run.library.profiles) is not None:
                rows = run.query(query.name).records()
                assert rows or query.name not in _ANSWERED, query.name
        written = {
            row["tid"]: row["written_bytes"]
            for row in run.query("throttle_by_task", task="dd").records()
            if row["tid"] in ours
        }
    assert recorded
    assert set(written.values()) <= {_WRITES * 64 * _KIB, 4 * _KIB}


def test_timeline_is_written(deep: Recorder) -> None:
    done = deep.wbscope("timeline", "run", "-o", "run.pftrace")
    assert done.returncode == 0, done.stderr
    assert (deep.folder / "run.pftrace").stat().st_size > _KIB


@pytest.mark.usefixtures("cgroups")
def test_cgroups_have_names(deep: Recorder) -> None:
    assert (deep.folder / "run/cgroups").stat().st_size > 0


def test_run_folder_is_whole(deep: Recorder) -> None:
    names = {path.name for path in (deep.folder / "run").iterdir()}
    wanted = {"trace.dat", "meta.json", "uname", "mounts", "sysctls", "zoneinfo", "meminfo"}
    wanted |= {"vmstat.before", "vmstat.after", "zoneinfo.after", "block.samples"}
    wanted |= {
        f"{kind}.{when}" for kind in ("bdi", *_PSI) for when in ("before", "after", "samples")
    }
    assert wanted <= names
    assert not [name for name in names if name.startswith(".") or ".cpu" in name]
    meta = deep.meta("run")
    assert meta["ended"] == "complete"
    assert meta["command_exit_code"] == 0
    assert meta["sync_duration_ns"] > 0
    assert meta["lost"] == dict.fromkeys(meta["lost"], 0)
    began, ended = meta["command_started_ts_ns"], meta["command_ended_ts_ns"]
    assert meta["started_ts_ns"] < began < ended < meta["ended_ts_ns"]
    sysctls = (deep.folder / "run/sysctls").read_text()
    assert f"vm.dirty_bytes = {16 << 20}\n" in sysctls


def test_sidecars_are_loaded(deep: Recorder) -> None:
    files = deep.sql("run", "SELECT name, status FROM sidecar_file WHERE status != 'loaded'")
    assert files == []
    rows = deep.sql(
        "run", "SELECT DISTINCT source, sample FROM sidecar_sample ORDER BY source, sample"
    )
    found = {(row["source"], row["sample"]) for row in rows}
    samples = ("before", "after", "sampled")
    assert {(kind, sample) for kind in ("block", "bdi", *_PSI) for sample in samples} <= found
    # What the loop device of the workload has, and values that can be checked against others.
    values = deep.sql(
        "run",
        "SELECT sample, object, name, value, unit FROM sidecar_sample WHERE source = 'bdi'"
        " AND name IN ('BdiDirtyThresh', 'DirtyThresh', 'BdiWritten', 'state')",
    )
    assert {row["name"] for row in values} >= {"BdiDirtyThresh", "DirtyThresh"}
    assert {row["unit"] for row in values if row["name"] == "DirtyThresh"} == {"kB"}
    limits = {row["value"] for row in values if row["name"] == "DirtyThresh"}
    assert max(limits) <= (16 << 20) // _KIB  # of vm.dirty_bytes
    disks = deep.sql(
        "run",
        "SELECT object, MAX(CASE WHEN name = 'dev_major' THEN value END) AS major,"
        " MAX(CASE WHEN name = 'dev_minor' THEN value END) AS minor"
        " FROM sidecar_sample WHERE source = 'block' AND sample = 'before' GROUP BY object",
    )
    looked_at = 0
    for disk in disks:
        path = Path("/sys/block", disk["object"], "dev")
        if path.exists():  # loop devices of others come and go
            assert f"{disk['major']}:{disk['minor']}" == path.read_text().strip()
            looked_at += 1
    assert looked_at > 0
    if _PSI:
        totals = deep.sql(
            "run",
            "SELECT object, MIN(value) AS low, MAX(value) AS high, MIN(unit) AS unit"
            " FROM sidecar_sample WHERE source = 'psi' AND name = 'some_total' GROUP BY object",
        )
        assert {row["object"] for row in totals} == {"cpu", "io", "memory"}
        assert all(0 <= row["low"] <= row["high"] and row["unit"] == "us" for row in totals)
    ranges = deep.sql(
        "run",
        "SELECT MIN(ts) AS first, MAX(ts) AS last FROM sidecar_vmstat WHERE sample = 'sampled'",
    )[0]
    meta = deep.meta("run")
    assert meta["started_ts_ns"] <= ranges["first"] <= ranges["last"] <= meta["ended_ts_ns"]


def test_throttled_writers_are_seen(recorder: Recorder, disk: Path) -> None:
    """They write until one was: that takes as much as the disk takes in no time."""
    dd, enough = program_of_ours(recorder.folder, "dd"), recorder.folder / "enough"
    command = (
        "for i in 1 2 3; do while :; do $1 if=/dev/zero of=$0/t$i bs=1M count=23 conv=notrunc"
        " 2>/dev/null; [ ! -e $2 ] || break; done & done; wait"
    )
    with watching("writeback:balance_dirty_pages", f'comm == "{dd.name}" && pause > 0') as seen:
        process = recorder.start(
            *("--backend", "tracefs", "-o", "run", *_LOW),
            *("--", "sh", "-c", command, disk, dd, enough),
        )
        wait_while_it_runs(process, seen, "a writer is throttled")
    enough.touch()
    printed, said = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0, said
    # Which tables come first depends on the findings; all have this one.
    folder = recorder.folder / "run"
    short, full = (recorder.wbscope("report", folder, *more) for more in ((), ("--full",)))
    assert "Who was throttled" in full.stdout
    page, told = short.stdout.rsplit("All tables and columns:", 1)
    assert page in printed
    assert told.split() == ["--full;", "other", "tables:", "--section", "NAME"]
    last = " ".join(printed.rsplit("All tables and columns:", 1)[1].split())
    assert last.startswith(f"wbscope report {folder} --full;")
    query = recorder.wbscope("query", "throttle_by_task", "run", "--task", dd.name, "--json")
    rows = json.loads(query.stdout)["rows"]
    assert len(rows) > 0
    with wbscope.open(str(recorder.folder / "run")) as run:
        for name in _THROTTLED:
            assert run.query(name).records(), name
    for row in rows:  # a lower bound: what was dirtied before the limit was near is not in it
        assert 0 <= row["dirtied_bytes"] <= 23 << 20


def test_sampler_leaves_no_event(recorder: Recorder) -> None:
    until = "until [ $(cat .run.*/vmstat.samples | grep -ac '^# ts=') -ge 5 ]; do sleep 0.1; done"
    done = recorder.record(
        *("--backend", "tracefs", "--sample", "50ms", "--no-report", "-o", "run"),
        *("--", "sh", "-c", until),
    )
    assert done.returncode == 0, done.stderr
    assert (recorder.folder / "run/vmstat.samples").read_text().count("# ts=") >= 5
    sampler = recorder.meta("run")["sampler_tid"]
    rows = recorder.sql(
        "run", f"SELECT COUNT(*) AS n FROM ev_global_dirty_state WHERE tid = {sampler}"
    )
    assert rows == [{"n": 0}]


# Write so often while the recorder is stopped.
_UNREAD = 40_009


def _lose_events(recorder: Recorder, *options: str) -> str:
    """Its recorder does not read while more is written than the buffer holds; what record says."""
    go, dd = recorder.folder / "go", program_of_ours(recorder.folder, "dd")
    command = (
        ": > $0.begun; until [ -e $0 ]; do sleep 0.05; done;"
        f" $1 if=/dev/zero of=/dev/null bs=1 count={_UNREAD} status=none; : > $0.done;"
        " until [ -e $0.read ]; do sleep 0.05; done"
    )
    process = recorder.start(
        *("--backend", "tracefs", "--profile", "custom", "-e", "syscalls:sys_exit_write"),
        *(*options, "-o", "run", "--", "sh", "-c", command, go, dd),
    )
    wait_while_it_runs(process, go.with_suffix(".begun").exists, "the workload begins")
    (supervisor,) = recorder.supervisors(process.pid)
    os.kill(supervisor, signal.SIGSTOP)
    try:
        go.touch()
        wait_while_it_runs(process, go.with_suffix(".done").exists, "all is written")
    finally:
        os.kill(supervisor, signal.SIGCONT)
    go.with_suffix(".read").touch()
    told, said = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0, said
    return told


def _writes_of_dd(recorder: Recorder) -> int:
    (row,) = recorder.sql(
        "run", "SELECT COUNT(*) AS n FROM ev_sys_exit_write JOIN task USING (tid)"
        f" WHERE comm = 'dd-{os.getpid()}' AND ret = 1",
    )  # fmt: skip
    return int(row["n"])


def test_lost_events_are_told(recorder: Recorder) -> None:
    """A buffer of two pages."""
    _lose_events(recorder, "--buffer-size", "8K", "--no-report")
    lost = recorder.meta("run")["lost"]["overwritten_count"]
    assert lost > 0
    rows = recorder.sql("run", "SELECT SUM(count) AS n, COUNT(*) AS gaps FROM lost_events")
    assert rows[0]["gaps"] > 0
    # Pages without room for the count tell of a gap only.
    assert rows[0]["n"] is None or rows[0]["n"] <= lost


def test_fio_writes_its_json_into_the_run(recorder: Recorder, disk: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    size = 13 << 20
    done = recorder.record(
        *("--backend", "tracefs", "--no-report", "-o", "run", "--", "fio", "--name=job"),
        *(f"--filename={disk}/fio", "--rw=write", "--bs=64k", f"--size={size}", "--ioengine=psync"),
    )
    assert done.returncode == 0, done.stderr
    rows = recorder.sql(
        "run", """SELECT value FROM sidecar_fio WHERE path = '$.jobs[0].write."io_bytes"'"""
    )
    assert rows == [{"value": size}]


def test_two_recordings_do_not_change_sysctls_at_a_time(recorder: Recorder) -> None:
    options = ("--backend", "tracefs", "--no-report", "--sysctl", "vm.dirty_bytes=32M")
    go = recorder.folder / "go"
    until = "until [ -e $0 ]; do sleep 0.05; done"
    first = recorder.start(*options, "-o", "first", "--", "sh", "-c", until, go)
    assert first.stderr is not None
    while not first.stderr.readline().startswith("recording"):
        assert first.poll() is None
    second = recorder.record(*options, "-o", "second", "--", "true")
    assert second.returncode == 5
    assert "error[sysctls-in-use]: --sysctl: " in second.stderr
    assert "--sysctl" in second.stderr.partition("fix: ")[2]
    third = recorder.record(*options[:3], "-o", "third", "--", "true")
    assert third.returncode == 0, third.stderr
    go.touch()
    assert first.wait(GUARD_SECONDS) == 0


def test_command_that_fails_is_told(recorder: Recorder) -> None:
    done = recorder.record(
        "--backend", "tracefs", "--no-report", "-o", "run", "--", "sh", "-c", "exit 3"
    )
    assert done.returncode == 0
    assert "warning[command-failed]: " in done.stderr
    assert recorder.meta("run")["command_exit_code"] == 3
    report = recorder.wbscope("report", "run")
    assert "warning[command-failed]" in report.stdout + report.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--", "true"],
        ["--", "sh", "-c", "exit 3"],
        ["--", "sh", "-c", "kill -9 $$"],
        ["--duration", "200ms"],
        ["--profile", "deep", "--sysctl", "vm.dirty_expire_centisecs=2900", "--", "true"],
    ],
)
def test_the_document_is_as_its_schema_says(recorder: Recorder, words: list[str]) -> None:
    done = recorder.record("-o", "run", "--force", "--json", *words)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "wbscope.record/1"
    assert faults(document) == []


def test_output_on_the_disk_under_test(recorder: Recorder, disk: Path) -> None:
    done = recorder.record(
        *("--backend", "tracefs", "--no-report", "-o", disk / "run", "--"),
        *("dd", "if=/dev/zero", f"of={disk}/same", "bs=4k", "count=1"),
    )
    assert done.returncode == 0, done.stderr
    assert "warning[output-on-tested-disk]" in done.stderr
    shutil.rmtree(disk / "run")


def test_full_disk_leaves_nothing_behind(recorder: Recorder, tmpfs: Callable[..., Path]) -> None:
    """Less room than the files of /proc need: an error, and a machine as before."""
    small = tmpfs("small", "size=48k")
    done = recorder.record("--backend", "tracefs", "-o", small / "run", "--", "sleep", "0.2")
    assert done.returncode == 5, done.stderr
    assert "No space left" in done.stderr


def test_older_run_is_kept_and_replaced(recorder: Recorder) -> None:
    options = ("--backend", "tracefs", "--no-report", "-o", "run")
    assert recorder.record(*options, "--", "true").returncode == 0
    first = recorder.meta("run")["started_ts_ns"]
    again = recorder.record(*options, "--", "true")
    assert again.returncode == 2
    assert "error[output-exists]" in again.stderr
    assert recorder.record(*options, "--force", "--", "/nonexistent").returncode == 2
    assert recorder.meta("run")["started_ts_ns"] == first
    assert recorder.record(*options, "--force", "--", "true").returncode == 0
    assert recorder.meta("run")["started_ts_ns"] > first


def test_duration_and_reclaim(recorder: Recorder) -> None:
    done = recorder.record(
        *("--backend", "tracefs", "--profile", "reclaim", "--duration", "300ms"),
        *("--sample", "100ms", "--no-report", "-o", "run"),
    )
    assert done.returncode == 0, done.stderr
    meta = recorder.meta("run")
    assert (meta["ended"], meta["command"]) == ("complete", [])
    assert "command_exit_code" not in meta
    assert meta["ended_ts_ns"] - meta["started_ts_ns"] >= 300 * 10**6
    assert "vmscan:mm_vmscan_direct_reclaim_begin" in meta["events"]
    recorder.counts("run")


def test_clock_mono(recorder: Recorder, disk: Path) -> None:
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    done = recorder.record(
        *("--backend", "tracefs", "--clock", "mono", "--no-report", "-o", "run", "--"),
        *("dd", "if=/dev/zero", f"of={disk}/m", "bs=64k", "count=3", "conv=fsync"),
    )
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert done.returncode == 0, done.stderr
    assert recorder.meta("run")["clock"] == "mono"
    (row,) = recorder.sql(
        "run",
        "SELECT (SELECT value FROM meta WHERE key = 'clock') AS clock,"
        " (SELECT value FROM meta WHERE key = 'first_ts') AS first,"
        " (SELECT value FROM meta WHERE key = 'last_ts') AS last",
    )
    assert row["clock"] == "mono"
    assert before < row["first"] <= row["last"] < after


def test_lost_events_are_told_by_record(recorder: Recorder) -> None:
    told = _lose_events(recorder, "--buffer-size", "64K", "--json")
    warnings = {w["slug"]: w["message"] for w in json.loads(told)["warnings"]}
    lost = sum(recorder.meta("run")["lost"].values())
    assert lost > 0
    assert warnings["lost-events"].startswith(f"{lost} events did not fit")
    assert "--buffer-size" in warnings["lost-events"]
    assert _writes_of_dd(recorder) < _UNREAD


def test_sysctls_of_several_words_and_those_that_are_no_setting(recorder: Recorder) -> None:
    path = Path("/proc/sys/vm/lowmem_reserve_ratio")
    before = path.read_text()
    words = before.split()
    wanted = " ".join([str(int(words[0]) * 2), *words[1:]])
    done = recorder.record(
        *("--backend", "tracefs", "--sysctl", f"vm.lowmem_reserve_ratio={wanted}"),
        *("--no-report", "-o", "run", "--", "cat", path),
    )
    assert done.returncode == 0, done.stderr
    assert wanted.split() in [line.split() for line in done.stderr.splitlines()]
    assert path.read_text() == before
    for name in ("vm.drop_caches=3", "vm.compact_memory=1"):
        refused = recorder.record("--sysctl", name, "-o", "other", "--", "true")
        assert refused.returncode == 2
        assert "error[not-a-setting]" in refused.stderr


def test_run_of_system_calls_is_for_its_owner(deep: Recorder) -> None:
    """From Linux 6.19 on it has bytes of what was written."""
    assert (deep.folder / "run").stat().st_mode & 0o777 == 0o700
    assert (deep.folder / "run/trace.dat").stat().st_mode & 0o777 == 0o600


def test_without_debugfs(recorder: Recorder) -> None:
    """record mounts it, as it does tracefs: bdi statistics are in the run."""
    done = recorder.apart(
        "mount --make-rprivate / && umount -l /sys/kernel/debug; ! [ -e /sys/kernel/debug/bdi ]",
        "record",
        *("--backend", "tracefs", "--no-report", "-o", "run", "--", "true"),
    )
    assert done.returncode == 0, done.stderr
    assert (recorder.folder / "run/bdi.before").stat().st_size > 0
