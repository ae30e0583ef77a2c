# SPDX-License-Identifier: Apache-2.0
"""The names of tasks are kept while a recording goes on: also when its disk is full."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from support.faults import no_file_above
from wbscope.record.tasks import (
    EndedNames,
    NameFile,
    add_names,
    ended_task_names,
    read_names,
    reserve_names,
    task_names,
)

_PROGRAM = {11: "dd", 12: "kworker/u4:1-ext4", 13: 'odd "comm"\\\n'}


def test_later_names_replace_earlier_ones(tmp_path: Path) -> None:
    add_names(tmp_path, _PROGRAM)
    reserve_names(tmp_path)
    add_names(tmp_path, {11: "dd-2"})
    add_names(tmp_path, {14: "fio"})
    assert read_names(tmp_path) == _PROGRAM | {11: "dd-2", 14: "fio"}


def test_without_a_file(tmp_path: Path) -> None:
    assert read_names(tmp_path) == {}
    add_names(tmp_path, {})
    assert not list(tmp_path.iterdir())


def test_names_fit_into_the_room(tmp_path: Path) -> None:
    reserve_names(tmp_path)
    (file,) = tmp_path.iterdir()
    before = os.stat(file)
    add_names(tmp_path, dict.fromkeys(range(1000), "fifteen letters"))
    after = os.stat(file)
    assert after.st_size == before.st_size
    assert after.st_blocks == before.st_blocks
    assert before.st_blocks * 512 >= before.st_size
    assert len(read_names(tmp_path)) == 1000


def test_cut_short_at_any_byte(tmp_path: Path) -> None:
    """What was there stays, and what comes after it is read."""
    add_names(tmp_path, {11: "dd"})
    (name,) = tmp_path.iterdir()
    first = name.read_bytes().rstrip(b"\0")
    second = b"\n" + json.dumps({12: "fio"}).encode()
    for length in range(len(second)):
        name.write_bytes(first + second[:length] + b"\0" * 9)
        assert read_names(tmp_path) == {11: "dd"}
        add_names(tmp_path, {13: "cp"})
        assert read_names(tmp_path) == {11: "dd", 13: "cp"}


def test_written_in_part_is_an_error(tmp_path: Path) -> None:
    """So that they are added again when there is room."""
    add_names(tmp_path, {11: "dd"})
    file = NameFile(tmp_path)
    file.add({12: "cp"})
    full = pytest.raises(OSError, match=os.strerror(errno.EFBIG))
    with no_file_above(64 << 10), full:
        file.add(dict.fromkeys(range(10_000), "fifteen letters"))
    assert read_names(tmp_path) == {11: "dd", 12: "cp"}
    file.add({13: "sh"})
    file.leave()
    assert read_names(tmp_path) == {11: "dd", 12: "cp", 13: "sh"}


def test_of_tasks_that_live() -> None:
    assert task_names()[os.getpid()] == Path("/proc/self/comm").read_text().rstrip("\n")


def test_a_thread_that_ends_meanwhile(tmp_path: Path) -> None:
    """Of its process the others are named, whichever of them was listed first."""
    for tid in (11, 12, 13, 14):
        task = tmp_path / "11/task" / str(tid)
        task.mkdir(parents=True)
        (task / "comm").write_text(f"thread {tid}\n")
    first = next((tmp_path / "11/task").iterdir())
    (first / "comm").unlink()
    (tmp_path / "15").mkdir()  # one that ended as a whole
    named = {11, 12, 13, 14} - {int(first.name)}
    assert task_names(tmp_path) == {tid: f"thread {tid}" for tid in named}


def test_of_tasks_that_ended(tmp_path: Path) -> None:
    (tmp_path / "saved_cmdlines").write_bytes(b"11 dd\n12 <...>\n13 two words\nnonsense\n14 \xff\n")
    assert ended_task_names(tmp_path) == {11: "dd", 13: "two words", 14: "\udcff"}
    assert ended_task_names(tmp_path / "nothing") == {}


def test_of_tasks_that_ended_since(tmp_path: Path) -> None:
    """A name that was told is told again when it stands anew in the kernel's list."""
    ended = EndedNames(tmp_path)
    told = []
    texts = (
        *("11 sh\n12 cp\n", "11 dd\n12 cp\n", "11 dd\n12 cp\n"),
        *("", "11 dd\n13 <...>\n", "11 dd\n13 x\n14 y\n"),
    )
    for text in texts:
        (tmp_path / "saved_cmdlines").write_text(text)
        told.append(ended.read())
    assert told == [{11: "sh", 12: "cp"}, {11: "dd"}, {}, {}, {11: "dd"}, {13: "x", 14: "y"}]
