# SPDX-License-Identifier: Apache-2.0
"""wbscope record of a machine without wbscope: its script run by hand, and over a real sshd."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.live import Recorder, lives, program_of_ours, wait_while_it_runs
from support.waits import GUARD_SECONDS, wait_until
from wbscope.record.machine import cgroup_paths
from wbscope.record.settings import restore, saved_values

_WRITES = 23
_KIB = 1 << 10
_SSHD = "/usr/sbin/sshd"
_PROFILE = ("--profile", "custom", "-e", "syscalls:sys_exit_write")


def _command(recorder: Recorder, disk: Path) -> list[str]:
    """By a dd that nobody else runs."""
    dd = program_of_ours(recorder.folder, "dd")
    return [str(dd), "if=/dev/zero", f"of={disk}/remote", "bs=64k", f"count={_WRITES}"]


def _writes_of_dd(recorder: Recorder) -> int:
    rows = recorder.sql(
        "run",
        "SELECT COUNT(*) AS n FROM ev_sys_exit_write AS w JOIN task AS t USING (tid)"
        f" WHERE t.comm = 'dd-{os.getpid()}' AND w.ret = {64 * _KIB}",
    )
    return int(rows[0]["n"])


@pytest.mark.usefixtures("cgroups")
def test_script_carried_by_hand(recorder: Recorder, disk: Path) -> None:
    printed = recorder.record("--print", *_PROFILE, "--", *_command(recorder, disk))
    assert printed.returncode == 0, printed.stderr
    _unpacked(recorder, printed.stdout)
    assert recorder.meta("run")["command"] == _command(recorder, disk)
    assert recorder.meta("run")["ended"] == "complete"
    assert _writes_of_dd(recorder) == _WRITES
    lines = (recorder.folder / "run/cgroups").read_text().splitlines()
    cgroups = [line.split(None, 1) for line in lines]
    assert len({inode for inode, _ in cgroups}) == len(cgroups)  # of one hierarchy
    assert cgroups[0][1] == cgroup_paths()[int(cgroups[0][0])]


def _unpacked(
    recorder: Recorder, script: str, env: dict[str, str] | None = None, shell: str = "sh"
) -> str:
    """The run of a script; what --unpack said."""
    archive = recorder.script(script, shell, env=env or recorder.env)
    done = recorder.record("--unpack", archive, "--no-report", "-o", "run")
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_its_own_tasks_are_listed(recorder: Recorder) -> None:
    """The sampler's children, and of the script's all but the command."""
    options = ("--profile", "custom", "-e", "sched:sched_process_fork")
    # The folder of the script is the only one where TMPDIR is; two samples are two more each.
    until = "until [ $(cat */run/meminfo.samples | grep -c '^# ts=') -ge 2 ]; do sleep 0.1; done"
    place = recorder.folder / "there"
    place.mkdir()
    printed = recorder.record("--print", *options, "--", "sh", "-c", f"cd {place}; {until}")
    _unpacked(recorder, printed.stdout, recorder.env | {"TMPDIR": str(place)})
    own = {int(tid) for tid in (recorder.folder / "run/recorder_tasks").read_text().split()}
    rows = recorder.sql("run", "SELECT parent_pid, child_pid FROM ev_sched_process_fork")
    children = {row["child_pid"] for row in rows if row["parent_pid"] in own}
    # A sleep and a cat for each sample; the command has no other parent than the script.
    assert len(children & own) >= 4
    assert len(children - own) == 1


def test_probes_there(recorder: Recorder, disk: Path) -> None:
    """Where the kernel takes none, they are not missed; the next script removes what was left."""
    printed = recorder.record("--print", "--", *_command(recorder, disk))
    _unpacked(recorder, printed.stdout)
    meta = recorder.meta("run")
    if meta["probe"]["kind"] is None:
        assert meta["probe"]["why"] == "the kernel there takes none"
        assert not [event for event in meta["events"] if event.startswith("wbscope")]
    else:
        counts = recorder.counts("run")
        entries, returns = (counts[event] for event in meta["probe"]["events"])
        assert entries == returns


def test_command_that_is_killed_there(recorder: Recorder) -> None:
    printed = recorder.record("--print", *_PROFILE, "--", "sh", "-c", "kill -9 $$")
    _unpacked(recorder, printed.stdout)
    meta = recorder.meta("run")
    assert (meta["command_exit_code"], meta["command_signal"]) == (None, signal.SIGKILL)


def test_pages_that_are_slow_to_copy(recorder: Recorder, disk: Path) -> None:
    """The disk of the script may be the one that is throttled: all is waited for."""
    slow = recorder.folder / "bin"
    slow.mkdir()
    real = shutil.which("dd")
    (slow / "dd").write_text(
        f'#!/bin/sh\ncase "$*" in *trace_pipe_raw*) sleep 2 ;; esac\nexec {real} "$@"\n'
    )
    (slow / "dd").chmod(0o755)
    printed = recorder.record("--print", *_PROFILE, "--", *_command(recorder, disk))
    env = recorder.env | {"PATH": f"{slow}:{recorder.env['PATH']}"}
    _unpacked(recorder, printed.stdout, env)
    assert recorder.meta("run")["ended"] == "complete"
    assert _writes_of_dd(recorder) == _WRITES


@pytest.mark.parametrize("shell", ["sh", "busybox sh"])
def test_workload_that_reads_stdin(recorder: Recorder, shell: str) -> None:
    """It must not eat the script, which comes by stdin too."""
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"{shell} is not installed")
    printed = recorder.record("--print", *_PROFILE, "--", "sh", "-c", "cat; exit 3")
    said = _unpacked(recorder, printed.stdout, shell=shell)
    meta = recorder.meta("run")
    assert meta["command_exit_code"] == 3
    assert meta["lost"] == dict.fromkeys(meta["lost"], 0)
    assert "warning[command-failed]" in said


@pytest.mark.parametrize("shell", ["sh", "busybox sh"])
def test_sysctls_there(recorder: Recorder, shell: str) -> None:
    """In force for the run, and as they were afterwards, also when one is refused."""
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"{shell} is not installed")
    paths = [Path("/proc/sys/vm", name) for name in ("dirty_bytes", "dirty_ratio", "swappiness")]
    before = [path.read_text() for path in paths]
    wanted = ("--sysctl", "vm.dirty_bytes=48M", "--sysctl", "vm.swappiness=41")
    command = ("sh", "-c", "cat /proc/sys/vm/dirty_bytes /proc/sys/vm/swappiness >&2")
    for options, code in ((wanted, 0), ((*wanted, "--sysctl", "vm.dirty_bytes=1"), 5)):
        script = recorder.record("--print", *_PROFILE, *options, "--", *command).stdout
        done = recorder.run_script(script, recorder.folder / "run.tar", shell)
        assert done.returncode == code, done.stderr
        assert [path.read_text() for path in paths] == before
        if code == 0:
            assert f"{48 << 20}\n41\n" in done.stderr
            unpacked = recorder.record("--unpack", "run.tar", "--no-report", "-o", "run")
            assert unpacked.returncode == 0, unpacked.stderr
    assert "sysctl vm.dirty_bytes does not take 1" in done.stderr
    told = recorder.meta("run")["sysctls_for_the_run"]
    assert told == {"vm.dirty_bytes": str(48 << 20), "vm.swappiness": "41"}


@pytest.mark.parametrize("shell", ["sh", "busybox sh"])
def test_sysctls_that_somebody_else_sets_meanwhile_stay(recorder: Recorder, shell: str) -> None:
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"{shell} is not installed")
    dirty, swappiness = (Path("/proc/sys/vm", name) for name in ("dirty_bytes", "swappiness"))
    before = [path.read_text() for path in (dirty, swappiness)]
    script = recorder.record(
        "--print", *_PROFILE, "--sysctl", "vm.dirty_bytes=48M", "--sysctl", "vm.swappiness=41",
        "--", "sh", "-c", f"echo 37 > {swappiness}",
    ).stdout  # fmt: skip
    try:
        done = _run_script(recorder, shell, script)
        assert (dirty.read_text(), swappiness.read_text()) == (before[0], "37\n")
        assert f"{swappiness} is not as it was: {before[1]}" in done.stderr
    finally:
        swappiness.write_text(before[1])


_PATTERN = Path("/proc/sys/kernel/core_pattern")


@pytest.mark.parametrize("shell", ["sh", "busybox sh"])
@pytest.mark.parametrize(
    ("old", "new"), [("core.|%p", "core"), (r"core\n* %p", "core.|%p"), ("core", "|/bin/false *")]
)
def test_value_of_any_text_is_put_back_there(
    recorder: Recorder, shell: str, old: str, new: str
) -> None:
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"{shell} is not installed")
    before = _PATTERN.read_text()
    try:
        _PATTERN.write_text(old)
        script = recorder.record(
            "--print", *_PROFILE, "--sysctl", f"kernel.core_pattern={new}", "--", "cat", _PATTERN
        ).stdout
        done = _run_script(recorder, shell, script)
        assert new in done.stderr
        assert "is not as it was" not in done.stderr
        assert _PATTERN.read_text().strip() == old
    finally:
        _PATTERN.write_text(before)


@pytest.mark.parametrize("shell", ["sh", "busybox sh"])
@pytest.mark.parametrize("which", ["dirty", "dirty_background"])
def test_ratio_of_zero_is_put_back_there(recorder: Recorder, shell: str, which: str) -> None:
    """Both of the pair read 0 then: the bytes of the run have to go."""
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"{shell} is not installed")
    before = saved_values([f"vm.{which}_bytes"])
    pair = [Path("/proc/sys/vm", f"{which}_{unit}") for unit in ("ratio", "bytes")]
    script = recorder.record(
        "--print", *_PROFILE, "--sysctl", f"vm.{which}_bytes=33M", "--", "cat", pair[1]
    ).stdout
    try:
        restore({f"vm.{which}_ratio": "0"})
        assert [path.read_text() for path in pair] == ["0\n", "0\n"]
        assert str(33 << 20) in _run_script(recorder, shell, script).stderr
        assert [path.read_text() for path in pair] == ["0\n", "0\n"]
    finally:
        assert restore(before) == []


def _run_script(recorder: Recorder, shell: str, script: str) -> subprocess.CompletedProcess[str]:
    done = recorder.run_script(script, recorder.folder / "run.tar", shell)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("shell", ["sh", "busybox sh"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_script_that_is_killed(recorder: Recorder, shell: str, number: int) -> None:
    """A plain kill ends the workload and removes everything; any kill ends tracing."""
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"{shell} is not installed")
    pids = recorder.folder / "pids"
    command = f"sleep 3601 & echo $! >> {pids}; echo $$ >> {pids}; wait"
    printed = recorder.record("--print", *_PROFILE, "--", "sh", "-c", command)
    script = recorder.folder / "script"
    script.write_text(printed.stdout)
    with (recorder.folder / "run.tar").open("wb") as out:
        nothing = subprocess.DEVNULL
        process = recorder.start_command(
            *(*shell.split(), script), stdout=out, stderr=nothing, stdin=nothing
        )
    wait_while_it_runs(process, lambda: _pids_in(pids), "the workload begins")
    started = _pids_in(pids)
    process.send_signal(number)
    try:
        process.wait(GUARD_SECONDS)
        if number == signal.SIGTERM:
            wait_until(lambda: not any(map(lives, started)), "the workload ends")
            assert recorder.instances() == []
        else:
            on = recorder.instances()[0] / "tracing_on"
            wait_until(lambda: on.read_text().strip() == "0", "the kernel stops tracing")
            wait_until(lambda: not _children_of(script), "all shells of the script end")
    finally:
        for pid in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    # The next one removes what is left of it.
    printed = recorder.record("--print", *_PROFILE, "--", "true")
    _run_script(recorder, "sh", printed.stdout)
    assert recorder.instances() == []


def _pids_in(file: Path) -> list[int]:
    """Both of them, or none yet."""
    found = [int(pid) for pid in file.read_text().split()] if file.exists() else []
    return found if len(found) == 2 else []


def _children_of(script: Path) -> list[str]:
    """Shells of the script that go on."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(script).encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
    return found


def test_damaged_archive(recorder: Recorder) -> None:
    """Facts that are missing, and an archive that is cut."""
    printed = recorder.record("--print", *_PROFILE, "--", "true")
    archive = recorder.script(printed.stdout)
    whole = archive.read_bytes()
    for data in (
        whole.replace(b"buffer_kib ", b"buffer_kob "),
        whole.replace(b"buffer_kib ", b"buffer_kib x"),
        whole[: len(whole) // 2],
        whole[:700],
        b"",
    ):
        archive.write_bytes(data)
        done = recorder.record("--unpack", archive, "--no-report", "-o", "run")
        assert done.returncode == 3, done.stderr
        assert f"error[not-a-recording]: {archive}: " in done.stderr
    assert not (recorder.folder / "run").exists()


@pytest.fixture
def board(tmp_path: Path, recorder: Recorder) -> Iterator[str]:
    """A host of that name for ssh: an sshd of this test on a free port of 127.0.0.1."""
    if not Path(_SSHD).exists() or shutil.which("ssh") is None:
        pytest.skip("no sshd: make installs none, its package starts it (Debian: openssh-server)")
    Path("/run/sshd").mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name in ("host", "id"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True
        )
    server = tmp_path / "sshd_config"
    server.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host\n"
        f"AuthorizedKeysFile {tmp_path}/id.pub\nPidFile {tmp_path}/pid\n"
        "StrictModes no\nPermitRootLogin yes\nUsePAM no\n"
    )
    client = tmp_path / "ssh_config"
    client.write_text(
        f"Host board\n HostName 127.0.0.1\n Port {port}\n User root\n"
        f" IdentityFile {tmp_path}/id\n StrictHostKeyChecking no\n"
        f" UserKnownHostsFile {tmp_path}/known\n"
    )
    programs = tmp_path / "bin"
    programs.mkdir()
    # ssh takes its configuration from the password file's home, not from $HOME.
    (programs / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {client} "$@"\n')
    (programs / "ssh").chmod(0o755)
    recorder.env["PATH"] = f"{programs}:{recorder.env['PATH']}"
    daemon = subprocess.Popen([_SSHD, "-D", "-e", "-f", server], stderr=subprocess.PIPE, text=True)
    try:
        wait_until((tmp_path / "pid").exists, "sshd starts")
        yield "board"
    finally:
        daemon.terminate()
        daemon.communicate()


def test_over_ssh(recorder: Recorder, disk: Path, board: str) -> None:
    done = recorder.record(
        *("--remote", board, *_PROFILE, "--no-report", "-o", "run", "--"), *_command(recorder, disk)
    )
    assert done.returncode == 0, done.stderr
    meta = recorder.meta("run")
    assert (meta["backend"], meta["command_exit_code"]) == ("remote script", 0)
    assert _writes_of_dd(recorder) == _WRITES


def test_ctrl_c_ends_what_goes_on_there(recorder: Recorder, board: str) -> None:
    pids = recorder.folder / "pids"
    command = f"sleep 3601 & echo $! >> {pids}; echo $$ >> {pids}; wait"
    before = _instances_of_scripts()
    process = recorder.start("--remote", board, *_PROFILE, "-o", "run", "--", "sh", "-c", command)
    wait_while_it_runs(process, lambda: _pids_in(pids), "the workload begins")
    started = _pids_in(pids)
    (script,) = _instances_of_scripts() - before
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(GUARD_SECONDS) == 130
    wait_until(lambda: not any(map(lives, started)), "the workload ends")
    wait_until(lambda: script not in _instances_of_scripts(), "its instance is removed")
    assert not (recorder.folder / "run").exists()


def _instances_of_scripts() -> set[str]:
    """Those of sshd's children are not of a process of ours."""
    return {path.name for path in Path("/sys/kernel/tracing/instances").glob("wbscope-*-remote")}


def test_host_that_is_not_there(recorder: Recorder, board: str) -> None:
    done = recorder.record("--remote", f"no-{board}", "-o", "run", "--", "true")
    assert done.returncode == 5
    assert f"error[remote-failed]: --remote no-{board}" in done.stderr
    assert not (recorder.folder / "run").exists()
