# SPDX-License-Identifier: Apache-2.0
"""Tests that trace this machine. Where that cannot be, they are skipped and say why; so are
those that want a mount, a mount namespace or cgroups where the machine refuses them.

Every sysctl, instance, loop device and mount that a test made is gone afterwards; the
fixture `recorder` fails the test otherwise.

They run in any worker, beside other tests and those of a second checkout: one at a time on the
whole machine, and each looks only at what its own processes made.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from support.guest import make_disk
from support.live import (
    Recorder,
    alone_on_the_machine,
    remove_watches_of_the_dead,
    sysctls_of_machine,
)
from wbscope.record.choose import the_tracefs
from wbscope.record.finish import recover_all
from wbscope.record.machine import cgroup_paths

# Of those that boot guests, and do not record on this machine.
_GUESTS = frozenset({"guest", "kernel", "matrix"})
# What make test runs for every commit: a recording that is read and asked, one of a recorder and
# one of all that were killed, a probe, a script for machines without wbscope.
_CORE = frozenset(
    {
        "test_writes_are_counted_exactly",
        "test_processes_are_counted_exactly",
        "test_trace_cmd_reads_the_same_events",
        "test_every_query_answers",
        "test_run_folder_is_whole",
        "test_throttled_writers_are_seen",
        "test_kill[recorder-1]",
        "test_kill[both-1]",
        "test_recovery_later_puts_back_what_is_still_ours",
        "test_the_run_says_by_what_it_tells",
        "test_the_next_recording_removes_what_was_left",
        "test_script_carried_by_hand",
    }
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of all that was collected, also elsewhere."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.name in _CORE:
            item.add_marker("core")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """The one lock of the machine, from the first fixture that is set up to the last torn down."""
    names = getattr(item, "fixturenames", ())
    if os.geteuid() != 0 or _GUESTS.intersection(names):
        return (yield)
    with alone_on_the_machine():
        return (yield)


def _why_not() -> str | None:
    """None when this machine can be traced."""
    if os.geteuid() != 0:
        return f"live tests need root, this is uid {os.geteuid()}"
    made = subprocess.run(
        [sys.executable, "-c", _PROBE], capture_output=True, text=True, check=False
    )
    return made.stderr.strip().splitlines()[-1] if made.returncode else None


_PROBE = """
import os
from wbscope.record.choose import Instance, the_tracefs
instance = Instance(the_tracefs(), f"wbscope-{os.getpid()}-probe")
instance.make()
instance.remove()
"""


@pytest.fixture(scope="session", autouse=True)
def traceable() -> None:
    """Not a failure in CI either: a container may have no tracefs."""
    if reason := _why_not():
        pytest.skip(f"this machine cannot be traced: {reason}")
    # Tests that were killed a moment ago may have left some, which the first recording removes.
    with alone_on_the_machine():
        recover_all(the_tracefs())
        remove_watches_of_the_dead()


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small ext4 file system on a loop device."""
    folder = tmp_path_factory.mktemp("disk")
    image, mount = folder / "image", folder / "mnt"
    mount.mkdir()
    subprocess.run(["truncate", "-s", "512M", image], check=True)
    subprocess.run(["mkfs.ext4", "-qF", image], check=True)
    done = subprocess.run(
        ["mount", "-o", "loop", image, mount], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no loop mount: {done.stderr.strip()}")
    yield mount
    subprocess.run(["umount", mount], check=True)
    image.unlink()


@pytest.fixture(scope="session")
def guest_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The disk of all guests, who read it only."""
    return make_disk(tmp_path_factory.mktemp("guest-disk"))


Mounted = Callable[..., Path]


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Mounted]:
    """tmpfs(name, options): a small disk in memory."""
    mounted: list[Path] = []

    def mount(name: str, options: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot mount a tmpfs here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:  # a test that failed may have left something running in it
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def cgroups() -> None:
    """A hierarchy with the memory controller is mounted: runs have names of cgroups."""
    if not cgroup_paths():
        pytest.skip("no cgroup mount: neither version 2 nor version 1 with memory")


@functools.cache
def _why_not_apart() -> str | None:
    """None when a process can have mounts of its own."""
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip() or f"exit code {done.returncode}" if done.returncode else None


class _Recorder(Recorder):
    def apart(self, setup: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        if reason := _why_not_apart():
            pytest.skip(f"no mount namespace: {reason}")
        return super().apart(setup, *arguments)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    """wbscope record, in a folder of its own; the machine is as before afterwards."""
    before = sysctls_of_machine()
    made = _Recorder(tmp_path)
    yield made
    made.end()
    assert (made.left(), sysctls_of_machine()) == ([], before)
