# SPDX-License-Identifier: Apache-2.0
"""Probes on balance_dirty_pages(), against a kernel that is made of files."""

from __future__ import annotations

import errno
import os
import platform
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from wbscope.record import probes
from wbscope.record.choose import Instance
from wbscope.record.probes import (
    Probes,
    filter_of,
    make_probes,
    make_waits,
    missed_count,
    missed_facts,
    orphan_probes,
    remove_probes,
    standard_name,
)

_NAME = "wbscope-999999999-0123abcd"
_GROUP = "wbscope_999999999_0123abcd"
_FOREIGN = (
    "p:kprobes/mine balance_dirty_pages pages=%si:u64",
    "r64:kprobes/mine_return balance_dirty_pages",
    "f:wbscope_mine/balance_dirty_pages_entry balance_dirty_pages",
    "p:wbscope_1_notours0/balance_dirty_pages_entry balance_dirty_pages",
)
_FPROBES = "\t           f[:[<group>/][<event>]] <func-name>[%return] [<args>]\n"
_KALLSYMS, _FTRACE = "proc/kallsyms", "proc/sys/kernel/ftrace_enabled"
_LOCKDOWN, _KPROBES = "sys/kernel/security/lockdown", "sys/kernel/debug/kprobes"
_SYMBOLS = "ffffffff81234560 t balance_dirty_pages\nffffffff81234990 t balance_dirty_pages.cold\n"


class _Kernel:
    """tracefs and what the kernel does with what is written to dynamic_events.

    refuses  a pattern of lines and triggers that it does not take
    busy     events and instances that cannot be removed
    broken   events that cannot be enabled
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.refuses = "^$"
        self.busy: set[str] = set()
        self.broken: set[str] = set()
        self.written: list[str] = []
        self.files: list[tuple[str, str]] = []  # of an instance
        self.log: list[str] = []
        (root / "instances").mkdir()
        (root / "README").write_text("tracing mini-HOWTO:\n" + _FPROBES)
        (root / "kprobe_events").touch()
        self.lines = list(_FOREIGN)
        self._show()

    def write(self, file: str, text: str) -> None:
        """Of a file of tracefs; an instance has all that it needs."""
        if any(file.endswith(f"/events/{event}/enable") for event in self.broken) and text == "1":
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        if file == "dynamic_events":
            self._define(text.rstrip("\n"))
        elif file.endswith("/trigger") and re.search(self.refuses, text):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        else:
            self.files.append((file.removeprefix("instances/"), text))

    def _define(self, line: str) -> None:
        self.written.append(line)
        if line.startswith("-:"):
            event = line.removeprefix("-:")
            if event in self.busy:
                raise OSError(errno.EBUSY, "Device or resource busy")
            self.lines = [one for one in self.lines if f":{event} " not in f"{one} "]
        elif re.search(self.refuses, line):
            self.log.append(
                f"[   12.345678] trace_kprobe: error: Bad argument\n  Command: {line}\n"
            )
            self._show()
            raise OSError(errno.EINVAL, "Invalid argument")
        else:
            self.lines.append(line)
        self._show()

    def _show(self) -> None:
        (self.root / "dynamic_events").write_text("".join(f"{line}\n" for line in self.lines))
        kprobes = [line for line in self.lines if line[0] in "pr"]
        (self.root / "kprobe_events").write_text("".join(f"{line}\n" for line in kprobes))
        (self.root / "error_log").write_text("".join(self.log))


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Kernel:
    root = tmp_path / "tracing"
    root.mkdir()
    made = _Kernel(root)
    real_open, real_write = os.open, os.write

    def open_file(path: Any, flags: int, mode: int = 0o777, **more: int) -> int:
        if not more and Path(path).is_relative_to(
            root / "instances"
        ):  # the kernel makes what is in one
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            flags |= os.O_CREAT
        return real_open(path, flags, mode, **more)

    def write(number: int, data: bytes) -> int:
        path = Path(os.readlink(f"/proc/self/fd/{number}"))
        if not path.is_relative_to(root):
            return real_write(number, data)
        made.write(str(path.relative_to(root)), data.decode())
        return len(data)

    real_rmdir = os.rmdir

    def rmdir(path: Any, **more: int) -> None:
        if Path(path).name in made.busy:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        if Path(path).parent == root / "instances":
            for inside in sorted(Path(path).rglob("*"), reverse=True):
                real_rmdir(inside) if inside.is_dir() else inside.unlink()
        real_rmdir(path, **more)

    monkeypatch.setattr(os, "rmdir", rmdir)
    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    for name, text in (
        (_KALLSYMS, _SYMBOLS),
        (_LOCKDOWN, "[none] integrity confidentiality\n"),
        (_FTRACE, "1\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / _KPROBES).mkdir(parents=True)
    return made


def _instance(kernel: _Kernel) -> Instance:
    return Instance(kernel.root, _NAME)


def _made(kernel: _Kernel, release: str) -> Probes:
    return make_probes(_instance(kernel), release, kernel.root.parent)


def _ours(kernel: _Kernel) -> list[str]:
    assert kernel.lines[: len(_FOREIGN)] == list(_FOREIGN)
    return [line.replace(_GROUP, "G") for line in kernel.lines[len(_FOREIGN) :]]


_ENTRY, _RETURN = "G/balance_dirty_pages_entry", "G/balance_dirty_pages_return"
_VALUE = "ret=$retval:s32"


@pytest.mark.parametrize(
    ("release", "refuses", "kind", "lines"),
    [
        (
            "6.12.117+deb13-cloud-amd64", "^$", "fprobe",
            [f"f:{_ENTRY} balance_dirty_pages wb=wb:x64 pages=pages_dirtied:u64",
             f"f1024:{_RETURN} balance_dirty_pages%return {_VALUE}"],
        ),
        (
            "6.12.1", "pages_dirtied|^f1024", "fprobe",
            [f"f:{_ENTRY} balance_dirty_pages wb=$arg1:x64 pages=$arg2:u64",
             f"f:{_RETURN} balance_dirty_pages%return {_VALUE}"],
        ),
        (
            "6.12.1", "^f", "kprobe",
            [f"p:{_ENTRY} balance_dirty_pages wb=wb:x64 pages=pages_dirtied:u64",
             f"r1024:{_RETURN} balance_dirty_pages {_VALUE}"],
        ),
        (
            "6.1.0-40-cloud-amd64", "^f|[$]arg", "kprobe",
            [f"p:{_ENTRY} balance_dirty_pages wb=%di:x64 pages=%si:u64",
             f"r1024:{_RETURN} balance_dirty_pages {_VALUE}"],
        ),
        (
            "5.10.0-33-amd64", "^f", "kprobe",
            [f"p:{_ENTRY} balance_dirty_pages wb=$arg1:x64 pages=$arg2:u64",
             f"r1024:{_RETURN} balance_dirty_pages"],
        ),
        (
            "8.1.0", "^$", "fprobe",
            [f"f:{_ENTRY} balance_dirty_pages wb=wb:x64 pages=pages_dirtied:u64",
             f"f:{_RETURN} balance_dirty_pages%return {_VALUE}"],
        ),
    ],
)  # fmt: skip
def test_the_best_that_the_kernel_takes(
    kernel: _Kernel, release: str, refuses: str, kind: str, lines: list[str]
) -> None:
    kernel.refuses = refuses
    made = _made(kernel, release)
    assert (made.kind, _ours(kernel)) == (kind, lines)
    assert made.events == (f"{_GROUP}:{probes.RETURN}", f"{_GROUP}:{probes.ENTRY}")
    told = made.about()
    assert told["events"] == [f"wbscope:{probes.ENTRY}", f"wbscope:{probes.RETURN}"]
    assert told["arguments"] in ("wb pages_dirtied", "$arg1 $arg2", "%di %si")


@pytest.mark.parametrize(
    ("machine", "registers"),
    [("aarch64", "%x0 %x1"), ("s390x", "%r2 %r3"), ("ppc64le", "%gpr3 %gpr4"), ("riscv64", None)],
)
def test_registers(
    kernel: _Kernel, monkeypatch: pytest.MonkeyPatch, machine: str, registers: str | None
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    kernel.refuses = r"^f|[$]arg|pages_dirtied"
    made = _made(kernel, "6.1.0")
    assert (made.arguments or None) == registers


def test_a_kind_that_cannot_be_enabled_is_left(kernel: _Kernel) -> None:
    kernel.broken = {f"{_GROUP}/{probes.ENTRY}"}
    made = _made(kernel, "6.12.1")
    assert made.kind is None
    assert made.why.endswith("does not take '1': No such device")
    assert _ours(kernel) == []


def test_fprobes_fail_and_kprobes_do(kernel: _Kernel) -> None:
    kernel.refuses = "^f.*%return"
    made = _made(kernel, "6.12.1")
    assert made.kind == "kprobe"
    assert [line[0] for line in _ours(kernel)] == ["p", "r"]


def _file(kernel: _Kernel, name: str) -> Path:
    return kernel.root.parent / name


def test_reasons(kernel: _Kernel) -> None:
    def why(release: str = "6.1.0") -> str:
        made = _made(kernel, release)
        assert made.kind is None
        assert made.fix
        assert made.about() == {"kind": None, "why": made.why}
        assert _ours(kernel) == []
        return made.why

    assert why("5.4.0-150-generic") == "Linux 5.4.0-150-generic is older than 5.10"
    kernel.refuses = "."
    assert why() == "the kernel refuses the probe: Bad argument"
    _file(kernel, _FTRACE).write_text("0\n")
    assert why() == "kernel.ftrace_enabled is 0"
    (_file(kernel, _KPROBES) / "blacklist").write_text(
        "0xffffffff81234560-0xffffffff81234990\tbalance_dirty_pages\n"
    )
    assert "list of what not to probe" in why()
    _file(kernel, _LOCKDOWN).write_text("none integrity [confidentiality]\n")
    assert "locked down" in why()
    (kernel.root / "README").write_text("nothing")
    (_file(kernel, _KPROBES) / "enabled").write_text("0\n")
    assert "switched off" in why()
    (_file(kernel, _KPROBES) / "enabled").write_text("1\n")
    (kernel.root / "kprobe_events").unlink()
    kernel._show = lambda: None  # type: ignore[method-assign]
    assert "CONFIG_KPROBE_EVENTS" in why()


def test_a_later_kernel_that_does_not_know_the_names_is_not_guessed_at(kernel: _Kernel) -> None:
    kernel.refuses = "pages_dirtied"
    assert _made(kernel, "8.1.0").kind is None
    assert not [line for line in kernel.written if "%si" in line or "$arg" in line]


@pytest.mark.parametrize(
    ("symbols", "name", "why"),
    [
        ("", None, "the compiler has put balance_dirty_pages() into its callers"),
        ("balance_dirty_pages.cold", None, "into its callers"),
        ("balance_dirty_pages.llvm.1234567890", "balance_dirty_pages.llvm.1234567890", ""),
        ("balance_dirty_pages.lto_priv.0", "balance_dirty_pages.lto_priv.0", ""),
        ("balance_dirty_pages.isra.0", None, "changed balance_dirty_pages(): balance_dirty_pages"),
        ("balance_dirty_pages.llvm.1 balance_dirty_pages.llvm.2", None, "changed"),
    ],
)
def test_names_that_compilers_make(
    kernel: _Kernel, symbols: str, name: str | None, why: str
) -> None:
    lines = [f"ffffffff81234560 t {symbol}" for symbol in symbols.split()]
    _file(kernel, _KALLSYMS).write_text("\n".join(["ffffffff81000000 T _text", *lines]) + "\n")
    kernel.refuses = r" balance_dirty_pages(%return)? "
    made = _made(kernel, "6.1.0")
    if name is None:
        assert why in made.why
        assert _ours(kernel) == []
    else:
        assert all(f" {name}" in line for line in _ours(kernel))
        assert made.kind == "fprobe"


def test_only_ours_are_removed(kernel: _Kernel) -> None:
    instance = _instance(kernel)
    other = Instance(kernel.root, "wbscope-999999998-0123abcd")
    (kernel.root / "synthetic_events").touch()
    kernel.lines.append("s:synthetic/wbscope_blocked pid_t pid")
    Instance(kernel.root, "waits-mine").make()
    make_probes(other, "6.1.0", kernel.root.parent)
    make_waits(other)
    theirs = list(kernel.lines)
    make_probes(instance, "6.1.0", kernel.root.parent)
    make_waits(instance)
    kernel.files.clear()
    assert remove_probes(kernel.root, instance.name, 0) == []
    assert kernel.lines == theirs
    assert {file.split("/")[0] for file, _ in kernel.files} == {f"waits-{_NAME}"}
    left = {path.name for path in (kernel.root / "instances").glob("waits-*")}
    assert left == {f"waits-{other.name}", "waits-mine"}


def test_one_that_somebody_has_enabled_stays(kernel: _Kernel) -> None:
    _made(kernel, "6.1.0")
    kernel.busy = {f"{_GROUP}/{probes.ENTRY}"}
    assert remove_probes(kernel.root, _NAME, 0.05) == [f"{_GROUP}:{probes.ENTRY}"]
    assert len(_ours(kernel)) == 1
    kernel.busy = set()
    assert remove_probes(kernel.root, _NAME, 0) == []


def test_orphans_are_of_dead_recorders_without_an_instance(kernel: _Kernel) -> None:
    instance = _instance(kernel)
    make_probes(instance, "6.1.0", kernel.root.parent)
    kernel.lines.append("p:wbscope_1_0123abcd/balance_dirty_pages_entry balance_dirty_pages")
    kernel._show()
    assert orphan_probes(kernel.root) == []  # its instance is there
    shutil.rmtree(instance.path)
    assert orphan_probes(kernel.root) == [_NAME]  # and process 1 lives


_PROFILE = """\
  mine                                                       7               2
  mine_return                                                7               1
  balance_dirty_pages_entry                                  4               3
  balance_dirty_pages_entry                                431               0
  balance_dirty_pages_return                               426               5
"""


def test_hits_that_were_missed(kernel: _Kernel) -> None:
    kernel.refuses = "^f"
    made = _made(kernel, "6.1.0")
    assert missed_count(kernel.root, _NAME) is None
    (kernel.root / "kprobe_profile").write_text(_PROFILE)
    assert missed_count(kernel.root, _NAME) == 5
    facts, problems = missed_facts({"probe": made.about()}, kernel.root, _NAME)
    assert facts["probe"]["missed"] == 5
    assert problems == [
        "5 hits of probes on balance_dirty_pages() were missed: those calls are not known"
    ]
    (kernel.root / "kprobe_profile").write_text(_PROFILE.replace(" 5\n", " 0\n"))
    assert missed_facts({"probe": made.about()}, kernel.root, _NAME)[1] == []
    (kernel.root / "kprobe_profile").write_text("")  # of another moment than the list
    assert missed_count(kernel.root, _NAME) is None
    assert missed_facts({"probe": {"kind": None, "why": ""}}, kernel.root, _NAME) == ({}, [])
    assert missed_facts({}, kernel.root, _NAME) == ({}, [])


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (f"{_GROUP}:balance_dirty_pages_entry", "wbscope:balance_dirty_pages_entry"),
        (f"synthetic:{_GROUP}_blocked", "wbscope:blocked"),
        ("synthetic:mine_blocked", "synthetic:mine_blocked"),
        ("wbscope_12_doctor:x", "wbscope:x"),
        ("wbscope_mine:x", "wbscope_mine:x"),
        ("writeback:balance_dirty_pages", "writeback:balance_dirty_pages"),
    ],
)
def test_names_without_the_recording(event: str, name: str) -> None:
    assert standard_name(event) == name


# The synthetic event of tasks that were blocked.


def _triggers(kernel: _Kernel) -> list[tuple[str, str]]:
    """Written to the instance beside that of the recording."""
    beside = f"waits-{_NAME}/events/sched/"
    return [
        (file.removeprefix(beside), text) for file, text in kernel.files if file.startswith(beside)
    ]


def test_who_wakes_a_blocked_task_is_told_by_triggers_beside(kernel: _Kernel) -> None:
    (kernel.root / "synthetic_events").touch()
    made = make_waits(_instance(kernel))
    event = f"{_GROUP}_blocked"
    assert made.events == (f"synthetic:{event}",)
    assert (made.about()["kind"], made.about()["events"]) == ("synthetic", ["wbscope:blocked"])
    assert kernel.written == [f"s:synthetic/{event} pid_t pid; long state; u64 blocked_ns"]
    (kept, first), (told, second) = _triggers(kernel)
    assert (kept, told) == ("sched_switch/trigger", "sched_waking/trigger")
    assert first.startswith("hist:keys=prev_pid:t0=common_timestamp,st=prev_state:")
    assert first.endswith(" if prev_state & 131")
    assert second.endswith(f":onmatch(sched.sched_switch).{event}(pid,$s,$ns)")
    assert filter_of(made.events[0]) == "blocked_ns >= 1000000 && state == 2"
    assert filter_of("sched:sched_waking") is None
    kernel.files.clear()
    assert remove_probes(kernel.root, _NAME, 0) == []
    # The one that the other needs is the last; then nothing uses the event.
    assert _triggers(kernel) == [(told, f"!{second}"), (kept, f"!{first}")]
    assert not [line for line in kernel.lines if _GROUP in line]


def test_an_orphan_of_its_own_is_found(kernel: _Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    (kernel.root / "synthetic_events").touch()
    make_waits(_instance(kernel))
    assert orphan_probes(kernel.root) == [_NAME]
    kernel.busy = {f"synthetic/{_GROUP}_blocked"}
    assert remove_probes(kernel.root, _NAME, 0) == [f"synthetic:{_GROUP}_blocked"]
    kernel.busy = {f"waits-{_NAME}"}  # somebody has it open
    make_waits(_instance(kernel))
    monkeypatch.setattr(probes, "_REMOVE_SECONDS", 0)
    assert remove_probes(kernel.root, _NAME, 0) == [f"waits-{_NAME}"]
    assert orphan_probes(kernel.root) == [_NAME]
    kernel.busy = set()
    assert remove_probes(kernel.root, _NAME, 0) == orphan_probes(kernel.root) == []


@pytest.mark.parametrize("refused", [None, "^s:", "^hist:keys=prev_pid", "^hist:keys=pid"])
def test_without_the_event_only_probes_stay(refused: str | None, kernel: _Kernel) -> None:
    why = r"this kernel has no synthetic events \(CONFIG_SYNTH_EVENTS, CONFIG_HIST_TRIGGERS\)"
    _made(kernel, "6.1.0")
    theirs = _ours(kernel)
    if refused:
        (kernel.root / "synthetic_events").touch()
        kernel.refuses, why = refused, r"the kernel refuses it: .*Invalid argument"
    made = make_waits(_instance(kernel))
    assert re.fullmatch(why, made.about()["why"])
    assert (made.kind, made.events, bool(made.fix)) == (None, (), True)
    assert _ours(kernel) == theirs != []
    assert not (kernel.root / "instances" / f"waits-{_NAME}").exists()


def test_wake_ups_of_more_tasks_than_there_is_room_for(kernel: _Kernel) -> None:
    (kernel.root / "synthetic_events").touch()
    made = make_waits(_instance(kernel))
    for event, dropped in (("sched_switch", 3), ("sched_waking", 4)):
        path = kernel.root / "instances" / f"waits-{_NAME}" / "events/sched" / event
        (path / "hist").write_text(
            f"Totals:\n    Hits: 9\n    Entries: 2\n    Dropped: {dropped}\n"
        )
    facts, problems = missed_facts({"waits": made.about()}, kernel.root, _NAME)
    assert facts["waits"]["missed"] == 7
    assert problems == [
        "7 wake-ups of more tasks than there is room for: those waits are not known"
    ]
