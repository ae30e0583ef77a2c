# SPDX-License-Identifier: Apache-2.0
"""Small files of a recording: nobody waits for their disk, and nothing of them is lost."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

from support.faults import no_file_above
from support.waits import wait_until
from wbscope.record.settings import SmallFiles


def test_lines_of_many_threads(tmp_path: Path) -> None:
    files = SmallFiles(tmp_path)
    files.start()

    def tell(number: int) -> None:
        for line in range(307):
            files.append(f"file{number % 2}", f"{number} {line} \udcff\n")

    threads = [threading.Thread(target=tell, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files.finish()
    for name in range(2):
        lines = (tmp_path / f"file{name}").read_bytes().splitlines()
        for number in (name, name + 2):  # in the order of each thread
            own = [line for line in lines if line.startswith(b"%d " % number)]
            assert own == [b"%d %d \xff" % (number, line) for line in range(307)]


def test_written_while_it_goes_on(tmp_path: Path) -> None:
    """For the one who finds the recorder killed."""
    files, told = SmallFiles(tmp_path), []
    files.start()
    files.append("file", "line\n")
    files.put("call", lambda: told.append(1))
    wait_until(lambda: told, "the call after the line")
    assert (tmp_path / "file").read_bytes().rstrip(b"\0") == b"line\n"
    files.finish()


def test_a_disk_that_is_full_for_a_while(tmp_path: Path) -> None:
    full, calls = [True], []

    def call() -> None:
        calls.append(full[0])
        if full[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    first = "first\n" * 50_000
    with no_file_above(64 << 10):
        files = SmallFiles(tmp_path)
        files.append("file", first)
        files.put("call", lambda: calls.append(None))
        files.put("call", call)  # stands for the one before
        files.start()
        wait_until(lambda: calls, "the call after the line")
    full[0] = False
    files.append("file", "second\n")
    files.finish()
    assert (tmp_path / "file").read_text() == f"{first}second\n"
    assert calls[-1] is False
    assert set(calls[:-1]) == {True}


def test_memory_has_a_limit(tmp_path: Path) -> None:
    """Of 32 MiB that are not written yet."""
    files = SmallFiles(tmp_path)
    first = f"{'1' * (20 << 20)}\n"
    for text in (first, "123\n", first, "45\n"):
        files.append("file", text)
    assert files.left_out == 1
    files.start()
    wait_until(lambda: files.append("file", first), "room for the next one")
    files.finish()
    assert (tmp_path / "file").read_text() == f"{first}123\n45\n{first}"


def test_a_file_with_nothing_in_it_goes(tmp_path: Path) -> None:
    files = SmallFiles(tmp_path)
    files.create("empty")
    files.finish()
    assert not list(tmp_path.iterdir())
