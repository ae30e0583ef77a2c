# SPDX-License-Identifier: Apache-2.0
"""Where runs are made: what is missing is said first, and nothing runs on afterwards."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from support.runs import REPOSITORY
from support.waits import GUARD_SECONDS, wait_until
from wbscope.base.errors import InputError, SetupError, UsageError
from wbscope.lab import emulator, guest, places
from wbscope.lab.kernels import Setup
from wbscope.lab.matrix import read_matrix
from wbscope.lab.places import Failure, Places
from wbscope.library.library import load_library

_SHELL = Path(guest.__file__).with_name("workload.sh")


def _setup(folder: Path, text: str) -> Setup:
    path = folder / "matrix.toml"
    path.write_text(f'[setup]\nworkload = "true"\n{text}')
    return read_matrix(path).cells[0].setup


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """An image that nothing boots: everything but virtio_blk is a module that it lacks."""
    modules = tmp_path / "kernel/lib/modules/6.1"
    modules.mkdir(parents=True)
    (tmp_path / "kernel/vmlinuz").touch()
    (modules / "modules.dep").write_text("kernel/none.ko:\n")
    (modules / "modules.builtin").write_text(
        "kernel/virtio_pci.ko\nkernel/virtio_blk.ko\nkernel/ext4.ko\n"
    )
    return tmp_path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of programs that are missing; others have nothing to say, such as ldd of a library."""
    missing: set[str] = set()
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    def which(name: str, path: str | None = None) -> str | None:
        del path
        return None if name in missing else str(program)

    monkeypatch.setattr(shutil, "which", which)
    return missing


_GUEST = 'kernel.folder = "kernel"\nprograms = ["memcached"]\n'


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("qemu-system-x86_64", "qemu-system-x86"),
        ("busybox", "busybox-static"),
        ("cpio", "cpio"),
        ("mkfs.ext4", "e2fsprogs"),
        ("memcached", "memcached"),
    ],
)
def test_missing_programs(
    kernel: Path, machine: set[str], monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    where = Places(load_library(REPOSITORY / "sql"), print)
    where.check(_setup(kernel, _GUEST))
    machine.add(name)
    with pytest.raises(SetupError) as caught:
        Places(load_library(REPOSITORY / "sql"), print).check(_setup(kernel, _GUEST))
    assert (caught.value.slug, caught.value.subject) == ("missing-program", name)
    assert caught.value.fix == f"apt install {package}"


def test_a_kernel_without_the_file_system(kernel: Path, machine: set[str]) -> None:
    assert not machine
    text = 'kernel.folder = "kernel"\ndisk = [{ filesystem = "btrfs" }]\n'
    with pytest.raises(InputError, match="has no module btrfs") as caught:
        Places(load_library(REPOSITORY / "sql"), print).check(_setup(kernel, text))
    assert caught.value.slug == "no-module"
    # Debian's packages of 7.2 do not list what is built in: only a boot can tell.
    (kernel / "kernel/lib/modules/6.1/modules.builtin").unlink()
    Places(load_library(REPOSITORY / "sql"), print).check(_setup(kernel, text))


def test_an_image_that_is_not_built(tmp_path: Path, machine: set[str]) -> None:
    del machine
    setup = _setup(tmp_path, 'kernel.image = "bzImage"\n')
    with pytest.raises(InputError, match="does not exist") as error:
        Places(load_library(REPOSITORY / "sql"), lambda _: None).check(setup)
    assert error.value.subject == str(tmp_path / "bzImage")


def test_a_profile_that_is_none(kernel: Path, machine: set[str]) -> None:
    assert not machine
    with pytest.raises(UsageError, match="profile"):
        Places(load_library(REPOSITORY / "sql"), print).check(
            _setup(kernel, f'{_GUEST}profile = "nothing"\n')
        )


def test_here_needs_a_folder(tmp_path: Path) -> None:
    text = f'kernel.here = true\ndata = "{tmp_path}/nowhere"\n'
    with pytest.raises(SetupError, match="cannot be written on this machine") as caught:
        Places(load_library(REPOSITORY / "sql"), print).check(_setup(tmp_path, text))
    assert caught.value.slug == "no-place"


@pytest.mark.parametrize("answer", ["/", "/etc", "", "/tmp/x y/wbscope-lab.123456", "../.."])
def test_only_a_new_folder_is_removed(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host may answer anything, such as what its profile prints."""
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\ncat >> {tmp_path}/asked\necho {shlex.quote(answer)}\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(Failure), places._folder_there("host"):
        pytest.fail("not reached")
    asked = (tmp_path / "asked").read_text()
    assert "mktemp" in asked
    assert "rm " not in asked


def test_a_new_folder_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "mine").touch()
    with places._folder_there(None) as folder:
        assert sorted(os.listdir(folder)) == ["lab", "out"]
        assert Path(folder).parent == tmp_path
    assert os.listdir(tmp_path) == ["mine"]


@pytest.mark.parametrize("shell", [("sh",), ("busybox", "sh")])
@pytest.mark.parametrize("end", ["exit 3", "kill -9 $$"])
def test_samples_end_with_the_workload(tmp_path: Path, shell: tuple[str, ...], end: str) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip("no busybox")
    (tmp_path / "out").mkdir()
    sampling = "sample 0.1 /proc/loadavg\nsample 0.11 /proc/uptime"
    begun = '[ -s "$OUT/proc_loadavg.samples" ] && [ -s "$OUT/proc_uptime.samples" ]'
    counted = 'sleep() { echo "$1" >> "$OUT/sleeps"; command sleep "$1"; }'
    parts = [_SHELL.read_text(), counted, sampling, f"until {begun}; do sleep 0.02; done", "wait"]
    text = "\n".join([*parts, end, ""])
    env = dict(os.environ, OUT=str(tmp_path / "out"), WBSCOPE_MARK=str(tmp_path))
    done = subprocess.run(
        [*shell, "-s"],
        input=text,
        env=env,
        text=True,
        capture_output=True,
        check=False,
        timeout=GUARD_SECONDS,
    )
    assert done.returncode == (3 if end == "exit 3" else -9), done.stderr
    sampled = (tmp_path / "out/proc_loadavg.samples").read_text()
    wait_until(lambda: not _running(tmp_path), "the end of the samplers")
    slept = (tmp_path / "out/sleeps").read_text().splitlines().count("0.1")
    assert 1 <= sampled.count("# uptime=") <= slept


def _running(mark: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"WBSCOPE_MARK={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("console", "told"),
    [
        ("[1] Initramfs unpacking failed: write error\n[2] Kernel panic", "memory is too small"),
        ("[1] Kernel panic - not syncing: x\n[2] Kernel Offset: 0", "last line: [1] Kernel panic"),
        ("[1] booting\n\n", "last line: [1] booting"),
        ("", "last line: nothing"),
    ],
)
def test_why_a_guest_stopped(console: str, told: str) -> None:
    assert told in guest._last_words(console)


@pytest.mark.parametrize(
    ("qemu", "works"),
    [("exit 0", True), ("exit 1", False), (f"exec sleep {GUARD_SECONDS}", False)],
)
def test_kvm_has_to_bring_a_kernel_to_its_end(
    qemu: str, works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "qemu"
    program.write_text(f"#!/bin/sh\n{qemu}\n")
    program.chmod(0o755)
    monkeypatch.setattr(os, "access", lambda *_: True)
    seconds = 0.1 if "sleep" in qemu else GUARD_SECONDS
    assert emulator._has_kvm(str(program), "q35", tmp_path / "vmlinuz", seconds) is works
