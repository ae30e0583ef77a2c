# SPDX-License-Identifier: Apache-2.0
"""What record asks a kernel for: events by the names it has, buffers, sysctls, commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from support.runs import REPOSITORY
from wbscope.base.errors import EvidenceError, SetupError, UsageError
from wbscope.cli.output import error_in_options
from wbscope.doctor.checks import Check, Status
from wbscope.doctor.doctor import examine
from wbscope.doctor.tracing import event_checks, event_states
from wbscope.ingest.program import captured
from wbscope.library.library import load_library
from wbscope.record import choose, settings
from wbscope.record.machine import cgroup_paths, shared_disks
from wbscope.record.remote import remote_script
from wbscope.record.settings import parse_settings, saved_values, split_settings

_PROFILES = load_library(REPOSITORY / "sql").profiles
_MIB = 1 << 20


def _events_of(kernel: str) -> frozenset[str]:
    """As available_events has them."""
    return frozenset(found.event for found in captured() if found.kernel == kernel)


@pytest.mark.parametrize(
    ("kernel", "renamed"),
    [
        ("5.10.43-arm64", "vmscan:mm_vmscan_writepage"),
        ("6.1.192-x86_64", None),
        ("7.2.13-x86_64", None),
    ],
)
def test_events_by_the_names_of_the_kernel(kernel: str, renamed: str | None) -> None:
    available = _events_of(kernel)
    profile = choose.choose_profile("reclaim", _PROFILES)
    chosen = choose.choose_events(profile, available)
    assert set(chosen.events) <= available
    assert "writeback:balance_dirty_pages" in chosen.events
    assert [here for _, here in chosen.renamed] == ([renamed] if renamed else [])
    assert not set(chosen.missing) & available


def test_kernel_without_any_event() -> None:
    with pytest.raises(EvidenceError, match="none of its"):
        choose.choose_events(_PROFILES[0], frozenset(["sched:sched_switch"]))
    with pytest.raises(UsageError, match="is no profile"):
        choose.choose_profile("everything", _PROFILES)


def test_patterns_of_events() -> None:
    available = frozenset(["block:block_rq_issue", "block:block_rq_complete", "sched:sched_switch"])
    assert choose.matching_events(["block"], available) == (
        "block:block_rq_complete",
        "block:block_rq_issue",
    )
    assert choose.matching_events(["sched:*"], available) == ("sched:sched_switch",)
    assert choose.matching_events(["sched_s*"], available) == ("sched:sched_switch",)
    with pytest.raises(EvidenceError, match="matches none"):
        choose.matching_events(["ext4:*"], available)


@pytest.mark.parametrize(
    ("pattern", "near"),
    [
        ("sched:sched_swich", "sched:sched_switch"),
        ("sched_swich", "sched:sched_switch"),
        ("shced", "sched"),
        ("bloc:*", "block"),
    ],
)
def test_an_event_that_there_is_not(pattern: str, near: str) -> None:
    available = frozenset(["block:block_rq_issue", "sched:sched_switch", "sched:sched_waking"])
    with pytest.raises(EvidenceError) as caught:
        choose.matching_events([pattern], available)
    assert str(caught.value.have).split(", ")[0] == near
    assert caught.value.fix == f"event={near!r}"
    assert choose.matching_events([near], available)


def test_clock(tmp_path: Path) -> None:
    clocks = tmp_path / "trace_clock"
    clocks.write_text("[local] global counter mono mono_raw boot x86-tsc\n")
    assert choose.choose_clock(None, tmp_path) == "boot"
    assert choose.choose_clock("mono", tmp_path) == "mono"
    clocks.write_text("[local] global mono\n")
    assert choose.choose_clock(None, tmp_path) == "mono"
    with pytest.raises(SetupError, match="no clock boot"):
        choose.choose_clock("boot", tmp_path)
    with pytest.raises(UsageError):
        choose.choose_clock("x86-tsc", tmp_path)


@pytest.mark.parametrize(
    ("profile", "cpus", "available_mib", "wanted_kib"),
    [
        ("writeback", 2, 480, 10240),  # a guest: 1/24 of the memory
        ("deep", 2, 480, 20480),  # twice that
        ("writeback", 2, 65536, 65536),  # never more than 64 MiB
        ("writeback", 256, 1024, 512),  # never less than 512 KiB
    ],
)
def test_buffer_size(profile: str, cpus: int, available_mib: int, wanted_kib: int) -> None:
    assert choose.buffer_kib(profile, cpus, available_mib << 10) == wanted_kib


def test_sysctls() -> None:
    assert parse_settings(["vm.dirty_bytes=16M", "vm.swappiness=60"]) == {
        "vm.dirty_bytes": str(16 * _MIB),
        "vm.swappiness": "60",
    }
    assert parse_settings(["vm.lowmem_reserve_ratio=256 256  32"]) == {
        "vm.lowmem_reserve_ratio": "256 256  32"
    }
    for text in (
        "vm.dirty_bytes", "no.such=1", "../../etc/passwd=1", "vm.dirty_bytes=",
        "vm.drop_caches=3", "vm.compact_memory=1", "vm=1", ".vm.swappiness=1", "vm..swappiness=1",
        "vm.swappiness.=1", "vm/swappiness=1",
    ):  # fmt: skip
        with pytest.raises(UsageError):
            parse_settings([text])
    # Of a pair the kernel keeps one; the other reads 0 and cannot be written back.
    size = Path("/proc/sys/vm/dirty_bytes").read_text().strip()
    saved = saved_values(["vm.dirty_bytes"])
    assert list(saved) == ["vm.dirty_ratio" if size == "0" else "vm.dirty_bytes"]


def test_a_sysctl_that_this_kernel_has_not() -> None:
    """The value stays as it was typed."""
    for text in ("vm.dirty_byte=64M", "vm/dirty_bytes=64M", "vm.dirty_bytes = 64M"):
        with pytest.raises(UsageError) as caught:
            parse_settings([text])
        told = error_in_options(caught.value)
        assert told.subject == f"--sysctl {shlex.quote(text)}"
        assert told.fix == "--sysctl vm.dirty_bytes=64M"
    with pytest.raises(UsageError) as caught:
        parse_settings(["vm.dirty_bytes"])
    assert str(caught.value.fix).startswith("cat /proc/sys/vm/dirty_bytes ")


def test_sysctls_are_below_proc_sys(tmp_path: Path) -> None:
    """The name of a sysctl leads to no other file."""
    victim = tmp_path / "victim"
    victim.write_text("old")
    name = str(victim).replace("/", ".")
    assert name.startswith(".")
    for text in (f"{name}=new", f"vm.{name}=new"):
        with pytest.raises(UsageError, match="is no NAME=VALUE of a sysctl"):
            parse_settings([text])
        with pytest.raises(UsageError):
            split_settings([text])  # for the script of another machine
    assert victim.read_text() == "old"


def test_sysctl_that_is_a_link(tmp_path: Path) -> None:
    root = tmp_path / "sys"
    (tmp_path / "sys/vm").mkdir(parents=True)
    (tmp_path / "victim").write_text("old")
    (tmp_path / "sys/vm/own").write_text("1")
    (tmp_path / "sys/vm/link").symlink_to(tmp_path / "victim")
    assert parse_settings(["vm.own=2"], root) == {"vm.own": "2"}
    with pytest.raises(UsageError, match="that this kernel has"):
        parse_settings(["vm.link=2"], root)


def test_pair_that_is_not_as_it_was_is_told(tmp_path: Path) -> None:
    """Plain files: no write of one clears the other, as a kernel that refuses to."""
    (tmp_path / "vm").mkdir()
    (tmp_path / "vm/dirty_ratio").write_text("0\n")
    (tmp_path / "vm/dirty_bytes").write_text("16777216\n")
    assert settings.restore({"vm.dirty_ratio": "0"}, tmp_path) == ["vm.dirty_ratio"]
    (tmp_path / "vm/dirty_bytes").write_text("0\n")
    assert settings.restore({"vm.dirty_ratio": "20"}, tmp_path) == []
    assert (tmp_path / "vm/dirty_ratio").read_text() == "20"


@pytest.mark.parametrize("name", ["vm.dirty_bytes", "vm.dirty_ratio"])
def test_the_one_of_a_pair_that_is_set_is_saved(tmp_path: Path, name: str) -> None:
    """64 MiB: the ratio reads 0, and to write that back would leave what the recording had set."""
    (tmp_path / "vm").mkdir()
    (tmp_path / "vm/dirty_bytes").write_text("67108864\n")
    (tmp_path / "vm/dirty_ratio").write_text("0\n")
    saved = saved_values([name], tmp_path)
    assert saved == {"vm.dirty_bytes": "67108864"}
    settings.change({"vm.dirty_bytes": "16777216"}, tmp_path)
    assert settings.restore(saved, tmp_path) == []
    assert (tmp_path / "vm/dirty_bytes").read_text() == "67108864"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """/a and /b are disks, /o is an overlay whose upper folder is on /a, /m is in memory."""
    mounts = "".join(
        f"{number} 1 0:{number} / {place} rw - {kind} {source} {options}\n"
        for number, (place, kind, source, options) in enumerate(
            [
                (tmp_path / "a", "btrfs", tmp_path / "sda", "rw"),
                (tmp_path / "b", "btrfs", tmp_path / "sdb", "rw"),
                (tmp_path / "o", "overlay", "overlay", f"rw,upperdir={tmp_path}/a/up,workdir=/x"),
                (tmp_path / "hidden", "overlay", "overlay", "rw,upperdir=/out/of/sight"),
                (tmp_path / "m", "tmpfs", "none", "rw"),
            ]
        )
    )
    (tmp_path / "mountinfo").write_text(mounts)
    for name in ("a/up", "b", "o", "m", "hidden"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(os, "major", lambda _: 0)  # every device is anonymous
    return tmp_path


@pytest.mark.parametrize(
    ("output", "command", "cwd", "shared"),
    [
        ("a", "dd of={a}/x", "b", {"{sda}"}),
        ("a", "dd of={b}/x", "a", set()),  # it says where, and that is not where it runs
        ("a", "dd if=/dev/zero of=x", "a", {"{sda}"}),
        ("a", "dd if={b}/x of=x", "a", {"{sda}"}),
        ("a", "fio --directory={b} job", "a", set()),
        ("a", "sleep 1", "b", set()),
        ("a", "sleep 1", "a", {"{sda}"}),
        ("o", "dd of={a}/x", "m", {"{sda}"}),
        ("hidden", "dd of={hidden}/x", "m", {"overlay {hidden}"}),
        ("m", "dd of={m}/x", "m", set()),
        ("b", "sh -c 'dd of={b}/x; sync'", "a", {"{sdb}"}),
        ("b", "", "a", {"{sdb}"}),  # anything may write there
        ("m", "", "a", set()),
    ],
)
def test_disk_of_output_and_command(
    machine: Path, output: str, command: str, cwd: str, shared: set[str]
) -> None:
    places = {name: machine / name for name in ("a", "b", "m", "hidden", "sda", "sdb")}
    words = shlex.split(command.format(**places))
    found = shared_disks(machine / output, words, machine / cwd, machine / "mountinfo")
    wanted = {disk.format(**places) for disk in shared}
    assert wanted <= set(found)
    assert bool(found) == bool(wanted)


def test_disk_here() -> None:
    """proc has no disk."""
    assert shared_disks(Path("/proc"), ["dd", "of=/x"], Path("/")) == ()
    assert shared_disks(Path("/proc"), [], Path("/")) == ()


def test_settings_that_are_still_ours(tmp_path: Path) -> None:
    (tmp_path / "vm").mkdir()
    values = {"dirty_bytes": "16777216", "swappiness": "7", "reserve": "1\t2\t3"}
    for name, value in values.items():
        (tmp_path / "vm" / name).write_text(f"{value}\n")
    saved = {"vm.dirty_ratio": "20", "vm.swappiness": "60", "vm.reserve": "4\t5\t6"}
    ours = {"vm.dirty_bytes": "16777216", "vm.swappiness": "5", "vm.reserve": "1 2 3"}
    still = settings.still_ours(saved, ours, tmp_path)
    assert still == {"vm.dirty_ratio": "20", "vm.reserve": "4\t5\t6"}
    (tmp_path / "vm/dirty_bytes").write_text("0\n")  # somebody has set dirty_ratio
    assert settings.still_ours(saved, ours, tmp_path) == {"vm.reserve": "4\t5\t6"}


def test_trace_cmd_that_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trace-cmd").write_bytes(b"\0 of another machine")
    (tmp_path / "trace-cmd").chmod(0o755)
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/ftrace_enabled").write_bytes(b"1\n")
    (tmp_path / "kallsyms").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    problem = choose.trace_cmd_problem(proc=tmp_path)
    assert str(problem).endswith("trace-cmd cannot be run: Exec format error")


@pytest.mark.parametrize(
    ("mounts", "hierarchy"),
    [
        ("cgroup {0}/cpu cgroup rw,cpu 0 0\ncgroup {0}/memory cgroup rw,memory 0 0\n"
         "cgroup2 {0}/unified cgroup2 rw 0 0\n", "memory"),
        ("cgroup {0}/cpu cgroup rw,cpu,memory_x 0 0\ncgroup2 {0}/unified cgroup2 rw 0 0\n",
         "unified"),
        ("cgroup {0}/cpu cgroup rw,cpu 0 0\n", None),
    ],
)  # fmt: skip
def test_cgroups_of_writeback(tmp_path: Path, mounts: str, hierarchy: str | None) -> None:
    """Each hierarchy numbers its own: names of another one would be wrong."""
    for name in ("cpu/a", "memory/a", "unified/a"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mounts").write_text(mounts.format(tmp_path))
    folders = [] if hierarchy is None else [tmp_path / hierarchy, tmp_path / hierarchy / "a"]
    assert cgroup_paths(tmp_path) == {folder.stat().st_ino: str(folder) for folder in folders}


def test_script_for_another_machine() -> None:
    script = remote_script(_PROFILES[0], ["block:block_rq_*"], ["dd", "of=a b"], None, 512, True)
    assert "add writeback:bdi_dirty_ratelimit writeback:dirty_ratelimit\n" in script
    assert "add_all 'block/block_rq_*'\n" in script
    assert "then exec setsid dd 'of=a b'; else exec dd 'of=a b'; fi; }\n" in script
    assert "BUFFER_KIB=512\nSYNC=1\n" in script
    assert "\n@" not in script
    for shell in (["sh"], ["busybox", "sh"]):
        subprocess.run([*shell, "-n"], input=script, text=True, check=True)


def test_doctor_names_what_is_missing_and_renamed() -> None:
    available = _events_of("5.10.43-arm64")
    states = {state.event: state.name_here for state in event_states(_PROFILES, available)}
    assert states["vmscan:mm_vmscan_write_folio"] == "vmscan:mm_vmscan_writepage"
    assert states["vmscan:mm_vmscan_throttled"] is None
    checks = {check.name: check for check in event_checks(_PROFILES, available)}
    assert "older name" in checks["profile reclaim"].found
    assert checks["events vmscan"].status is Status.missing
    assert all(check.fix for check in checks.values() if check.status is not Status.ok)


def test_doctor_knows_a_patched_kernel() -> None:
    available = _events_of("6.1.192-x86_64")
    patched = available | {"writeback:balance_dirty_pages_done"}
    found = {check.name: check.found for check in event_checks(_PROFILES, patched)}
    assert found["patched kernel"] == "balance_dirty_pages_done"
    plain = {check.name: check.found for check in event_checks(_PROFILES, available)}
    assert plain["patched kernel"].startswith("no")


def test_doctor_offers_patches_where_they_fit() -> None:
    """The folders of the series say for which kernels there are patches."""
    series = {path.name for path in (REPOSITORY / "kernel-tracepoints/series").iterdir()}
    releases = {
        "6.1.0-30-amd64": "6.1", "6.12.107+deb13-cloud-amd64": "6.12", "7.2.13": "7.2",
        "7.2-rc3": "7.2", "6.18.44": "6.18", "6.10.2": "6.10", "7.3.4": "7.3", "5.10.43": "5.10",
    }  # fmt: skip
    for release, name in releases.items():
        checks = event_checks(_PROFILES, _events_of("6.1.192-x86_64"), release, can_probe=True)
        fix = next(check.fix for check in checks if check.name == "patched kernel") or ""
        assert ("README.md has the patches" in fix) == (name in series), release
        assert (f"no patches for {name}:" in fix) == (name not in series), release
        assert ("record --probe" in fix) == (name not in series), release


@pytest.mark.parametrize("can_probe", [True, False, None])
def test_doctor_offers_probes_where_there_are_any(can_probe: bool | None) -> None:
    """Nor scripts that were tried on other kernels only."""
    table = (REPOSITORY / "kernel-tracepoints/bpf/README.md").read_text()
    assert "6.18" not in "".join(re.findall(r"^\| `\w.*", table, re.MULTILINE))
    available = _events_of("6.1.192-x86_64")
    checks = event_checks(_PROFILES, available, "6.18.44", can_probe=can_probe)
    fix = next(check.fix for check in checks if check.name == "patched kernel") or ""
    assert fix.startswith("no patches for 6.18")
    assert "bpf" not in fix
    assert ("record --probe" in fix) == (can_probe is True)
    assert ("sudo wbscope doctor" in fix) == (can_probe is None)


def test_the_page_tells_of_probes_once(tmp_path: Path) -> None:
    """What the line of the patches offers, the line of the probes does not deny."""
    (tmp_path / "instances").mkdir()
    (tmp_path / "available_events").write_text("writeback:balance_dirty_pages\n")
    for status in (Status.ok, Status.missing):
        probes = Check("bytes and waits", status, "found", "fix")
        found = examine(_PROFILES, tmp_path, lambda _, check=probes: [check])
        checks = {check.name: check for check in found}
        assert checks["bytes and waits"] is probes
        fix = checks["patched kernel"].fix or ""
        if "no patches" in fix:  # of the kernel that runs here
            assert ("record --probe" in fix) == (status is Status.ok)
