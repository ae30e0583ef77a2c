# SPDX-License-Identifier: Apache-2.0
"""Files that are written past the page cache have what was given, and leave no page in it."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import random
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import strategies as st
from support.properties import for_all
from wbscope.record.register import DirectFile, cut_zeros, is_direct, open_direct, save

_PAGE = 4096
_SIZES = (0, 1, 4095, 4096, 4097, 12 * 4096, (1 << 20) + 17)


@pytest.fixture(params=["direct", "refused at open", "refused at write"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the file system says to O_DIRECT."""
    name: str = request.param
    real_open, real_write = os.open, os.pwrite

    def refuse_open(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return real_open(path, flags, mode)

    def refuse_write(number: int, data: bytes, at: int) -> int:
        if is_direct(number):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return real_write(number, data, at)

    if name == "refused at open":
        monkeypatch.setattr(os, "open", refuse_open)
    elif name == "refused at write":
        monkeypatch.setattr(os, "pwrite", refuse_write)
    return name


def _bytes(count: int, seed: int = 23) -> bytes:
    return random.Random(seed).randbytes(count)


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("size", _SIZES)
def test_saved_as_given(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    for seed in (1, 2):  # the second one replaces the first
        save(path, _bytes(size, seed))
        assert path.read_bytes() == _bytes(size, seed)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.usefixtures("kind")
@for_all(30, sizes=st.lists(st.sampled_from(_SIZES) | st.integers(0, 3 * _PAGE), max_size=30))
def test_appended_in_any_pieces(tmp_path_factory: pytest.TempPathFactory, sizes: list[int]) -> None:
    data, path = _bytes(sum(sizes)), tmp_path_factory.mktemp("pieces") / "file"
    done = 0
    file = DirectFile(path)
    for size in sizes:
        file.append(data[done : done + size])
        done += size
        told = path.read_bytes()  # by who finds the writer killed
        assert told.rstrip(b"\0") == data[:done].rstrip(b"\0")
    file.close()
    assert path.read_bytes() == data
    with DirectFile(path, is_new=False) as again:
        again.append(b"more")
    assert path.read_bytes() == data + b"more"
    with DirectFile(path, is_new=False, size=len(data) // 2) as again:
        again.append(b"other")
    assert path.read_bytes() == data[: len(data) // 2] + b"other"


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("first", [_PAGE, 2 * _PAGE, 100])
def test_files_put_together(tmp_path: Path, first: int) -> None:
    parts = [_bytes(first), _bytes(300 * _PAGE, 2), _bytes(0), _bytes(_PAGE, 3)]
    with DirectFile(tmp_path / "file") as file:
        file.append(parts[0])
        for number, part in enumerate(parts[1:]):
            source = tmp_path / f"part{number}"
            source.write_bytes(part + b"what is behind it")
            file.append_file(source, len(part))
    assert (tmp_path / "file").read_bytes() == b"".join(parts)


def test_a_short_source_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(bytes(_PAGE))
    with pytest.raises(OSError, match="is shorter"), DirectFile(tmp_path / "file") as file:
        file.append_file(tmp_path / "part", 2 * _PAGE)


def test_a_full_disk_can_be_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = tmp_path / "file", os.pwrite

    def full(number: int, data: bytes, at: int) -> int:
        if at + len(data) > 2 * _PAGE:
            if at >= 2 * _PAGE:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data = data[: 2 * _PAGE - at]
        return real(number, data, at)

    with DirectFile(path) as file:
        file.append(_bytes(5000))
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", full)
            with pytest.raises(OSError, match="No space left"):
                file.append(_bytes(9000, 2))
        file.append(_bytes(9000, 2))
    assert path.read_bytes() == _bytes(5000) + _bytes(9000, 2)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space left"):
            save(path, _bytes(9000))
    assert path.stat().st_size == 14_000
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("zeros", [0, 1, 4095])
@pytest.mark.parametrize("size", [0, 10, 3 * _PAGE])
def test_zeros_that_a_killed_writer_left(tmp_path: Path, size: int, zeros: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * size + bytes(zeros))
    cut_zeros(path)
    assert path.exists() == bool(size)
    assert not size or path.read_bytes() == b"x" * size


def _in_page_cache(path: Path) -> Iterator[bool]:
    """Of each page, by mincore(2)."""
    size = path.stat().st_size
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) as memory:
        place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        told = (ctypes.c_ubyte * (-(-size // _PAGE)))()
        library = ctypes.CDLL(None, use_errno=True)
        assert library.mincore(ctypes.c_void_p(place), ctypes.c_size_t(size), told) == 0
        yield from (bool(value & 1) for value in told)


def test_nothing_is_in_the_page_cache(tmp_path: Path) -> None:
    number = open_direct(tmp_path / "try", os.O_WRONLY | os.O_CREAT)
    refused = not is_direct(number)
    assert stat.S_ISREG(os.fstat(number).st_mode)
    os.close(number)
    if refused:
        pytest.skip("the file system has no direct writes")
    source = tmp_path / "source"
    save(source, _bytes(64 * _PAGE))
    with DirectFile(tmp_path / "file") as file:
        file.append(_bytes(16 * _PAGE))
        file.append_file(source, 64 * _PAGE)
    assert not any(_in_page_cache(tmp_path / "file"))
    assert not any(_in_page_cache(source))
    (tmp_path / "plain").write_bytes(_bytes(_PAGE))
    assert any(_in_page_cache(tmp_path / "plain"))
