# SPDX-License-Identifier: Apache-2.0
"""Copies of ring-buffer pages when the disk is full for a while, or for good."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.waits import wait_until
from wbscope.record.backends import backend_of
from wbscope.record.choose import Instance
from wbscope.record.pages import PageCopier, Tail
from wbscope.record.register import Plan

_PAGE = 4096
_PAGES = 5
_HEADER_PAGE = (
    "\tfield: local_t commit;\toffset:8;\tsize:8;\n\tfield: char data;\toffset:16;\tsize:4080;\n"
)


@pytest.fixture
def instance(tmp_path: Path) -> Instance:
    """Files in place of those of a kernel: what is read is gone at the end of the file."""
    root = tmp_path / "tracefs"
    made = Instance(root, "own")
    (root / "events").mkdir(parents=True)
    (root / "events/header_page").write_text(_HEADER_PAGE)
    for cpu in range(2):
        folder = made.path / f"per_cpu/cpu{cpu}"
        folder.mkdir(parents=True)
        (folder / "trace_pipe_raw").write_bytes(bytes([cpu + 1]) * _PAGE * _PAGES)
        (folder / "stats").write_text("entries: 0\noverrun: 0\n")
    return made


def _full(monkeypatch: pytest.MonkeyPatch, until: Callable[[int], bool]) -> None:
    """A disk that takes half a page and then has no room, until a call of that number."""
    real, calls = os.splice, iter(range(10**6))

    def splice(source: int, target: int, count: int, **more: int) -> int:
        if "flags" in more:  # from the ring buffer
            return real(source, target, count, **more)
        number = next(calls)
        if until(number):
            return real(source, target, count)
        if number % 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(source, target, min(count, _PAGE // 2))

    monkeypatch.setattr(os, "splice", splice)


def _copier(instance: Instance, folder: Path, told: list[str]) -> PageCopier:
    return PageCopier(instance, lambda cpu: folder / f"cpu{cpu}", told.append)


def test_room_that_somebody_makes(
    instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages are written then, though none has come that would wake the thread."""
    has_room: list[int] = []
    _full(monkeypatch, lambda number: bool(has_room))
    told: list[str] = []
    copier = _copier(instance, tmp_path, told)
    copier.start()
    wait_until(lambda: len(told) == 2, "both CPUs have told of the full disk")
    assert sorted(told) == [f"cpu {cpu}: No space left on device" for cpu in range(2)]
    has_room.append(1)
    size = _PAGE * _PAGES
    wait_until(lambda: (tmp_path / "cpu1").stat().st_size == size, "all pages are written")
    copier.finish()
    assert (copier.failed, sorted(copier.errors)) == ([], sorted(told))
    for cpu in range(2):
        assert (tmp_path / f"cpu{cpu}").read_bytes() == bytes([cpu + 1]) * size


@pytest.mark.parametrize(("kib", "seconds"), [(512, 0.05), (1 << 14, 0.125), (1 << 16, 0.2)])
def test_a_large_buffer_is_looked_at_less_often(
    instance: Instance, tmp_path: Path, kib: int, seconds: float
) -> None:
    """64 MiB/s fill half of it until then."""
    copier = PageCopier(instance, lambda cpu: tmp_path / f"cpu{cpu}", buffer_kib=kib)
    assert copier._sleep == seconds
    copier.close()


def test_disk_that_stays_full(
    instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _full(monkeypatch, lambda number: False)
    told: list[str] = []
    copier = _copier(instance, tmp_path, told)
    copier.finish()
    assert copier.failed == [0, 1]
    assert len(told) == 2
    assert (tmp_path / "cpu0").stat().st_size < _PAGE * _PAGES


def test_cpu_that_never_was_there(
    instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slot for one that can be plugged in: its pages cannot be read, and there are none."""
    real = os.read

    def read(source: int, size: int) -> bytes:
        if os.readlink(f"/proc/self/fd/{source}").endswith("cpu1/trace_pipe_raw"):
            raise OSError(errno.ENODEV, "No such device")
        return real(source, size)

    (instance.path / "per_cpu/cpu1/trace_pipe_raw").write_bytes(b"")
    monkeypatch.setattr(os, "read", read)
    copier = _copier(instance, tmp_path, [])
    copier.finish()
    assert (copier.failed, copier.errors) == ([], [])
    assert (tmp_path / "cpu0").stat().st_size == _PAGE * _PAGES


@pytest.mark.parametrize(("entries", "is_full"), [(0, False), (3, False), (0, True)])
def test_trace_without_all_pages_is_not_whole(
    instance: Instance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    entries: int,
    is_full: bool,
) -> None:
    """Of a CPU that failed, or with events that are still in the ring buffer."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".head").write_bytes(b"\x17\x08\x44tracing6\0\0\x08" + _PAGE.to_bytes(4, "little"))
    for name in ("trace_clock", "buffer_size_kb", "tracing_on", "events/enable"):
        (instance.path / name).parent.mkdir(exist_ok=True)
        (instance.path / name).touch()
    plan = Plan(
        str(folder), str(folder), str(instance.tracefs), "own", "tracefs", "p", (), "boot", 1, 1.0
    )
    if is_full:
        _full(monkeypatch, lambda number: False)
    (instance.path / "per_cpu/cpu1/stats").write_text(f"entries: {entries}\n")
    backend = backend_of(plan, lambda _: None)
    backend.start(0)
    backend.stop(Tail("boot", "Linux", 1))
    assert backend.is_whole == (not entries and not is_full)
    assert (folder / "trace.dat").exists()


def test_a_slow_disk_does_not_hold_who_reads(instance: Instance, tmp_path: Path) -> None:
    """Pages are taken while none is written, until there are as many pipes as may be."""
    data = os.urandom(9 << 20)
    (instance.path / "per_cpu/cpu0/trace_pipe_raw").write_bytes(data)
    copier = PageCopier(instance, lambda cpu: tmp_path / f"cpu{cpu}", most_waiting=4 << 20)
    cpu = copier._cpus[0]
    taken = 0
    while moved := cpu.take():
        taken += moved
    assert taken == 4 << 20
    assert cpu.bytes_count == 0
    assert cpu.write()
    assert cpu.take() > 0  # at once, for the ring buffer has filled meanwhile
    while cpu.write():
        cpu.take()
    copier.finish()
    assert (copier.failed, copier.errors) == ([], [])
    assert (tmp_path / "cpu0").read_bytes() == data


def test_threads_copy_everything_in_order(instance: Instance, tmp_path: Path) -> None:
    data = os.urandom((23 << 20) + _PAGE)
    (instance.path / "per_cpu/cpu1/trace_pipe_raw").write_bytes(data)
    copier = _copier(instance, tmp_path, [])
    copier.start()
    copier.finish()
    assert copier.bytes_count() == 0  # of files that are closed
    assert (tmp_path / "cpu1").read_bytes() == data
