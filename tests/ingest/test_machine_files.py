# SPDX-License-Identifier: Apache-2.0
"""Settings, mounts, devices and swap beside a trace: what the files say, however they were left."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest
import wbscope
from support.runs import example
from support.tools import ingester_path, run

_MOUNT = "25 31 254:0 / /da\\040ta rw - ext4 /dev/vda rw"
_FILES = {
    "sysctls": ("vm.dirty_ratio = 20", ("vm.dirty_ratio", "20", 20)),
    "mounts": (_MOUNT, ("254:0", "/da ta", "ext4", "/dev/vda", "rw")),
    "bdis": ("254:0 vda /da\\040ta ext4", ("254:0", "vda", "/da ta", "ext4")),
    "swaps": ("/swap\\040file file 8 0 -2", ("/swap file", "file", 8, 0, -2)),
    "stacks": ("253:0 254:0", ("253:0", "254:0")),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a trace and nothing else."""
    made = tmp_path / "run"
    made.mkdir()
    shutil.copy(example("four-equal-writers").trace, made)
    return made


def _ingested(folder: Path, name: str) -> tuple[list[tuple[object, ...]], tuple[object, ...], str]:
    """The rows of the file without their lines, what is said of it, and stderr."""
    database = folder.parent / "run.db"
    done = run([ingester_path(), "sqlite", folder, "-o", database])
    assert done.returncode == 0, done.stderr
    with contextlib.closing(sqlite3.connect(database)) as db:
        cursor = db.execute(f"SELECT * FROM sidecar_{name}")
        kept = [place for place, (column, *_) in enumerate(cursor.description) if column != "line"]
        rows = [tuple(row[place] for place in kept) for row in cursor]
        (told,) = db.execute("SELECT status, message FROM sidecar_file WHERE name = ?", (name,))
    return rows, told, done.stderr


@pytest.mark.parametrize("name", _FILES)
def test_bad_lines_take_no_good_ones_with_them(folder: Path, name: str) -> None:
    """One of 1 MB, of NULs, of bytes that are no text, cut short; no line feed at the end."""
    line, row = _FILES[name]
    bad = (b"x" * 1_000_000, b"\0" * 4096, b"\xff\xfe", b"9", b"-")
    good = line.encode()
    (folder / name).write_bytes(b"".join(good + b"\n" + each + b"\n" for each in bad) + good)
    rows, told, stderr = _ingested(folder, name)
    assert rows == [row] * 6
    assert told == ("partial", "5 lines not understood, the first is line 2")
    assert "warning[sidecar-partial]" in stderr
    with wbscope.open(folder) as opened:
        opened.sql("SELECT * FROM _swap_area")
        assert any(one.slug == "sidecar-partial" for one in opened.warnings())


@pytest.mark.parametrize("name", _FILES)
def test_whole_and_empty_files_are_not_told_of(folder: Path, name: str) -> None:
    line, row = _FILES[name]
    for text, rows in (("", []), (f"{line}\r\n\n{line}\n", [row, row])):
        (folder / name).write_text(text)
        assert _ingested(folder, name)[:2] == (rows, ("loaded", None))
        (folder.parent / "run.db").unlink()


def test_a_file_that_is_too_long_to_be_kept_is_read(folder: Path) -> None:
    """100,000 lines of pods come first: the text is over 1 MiB."""
    pod = "1 31 0:300 / /var/lib/kubelet/pods/p rw,relatime - tmpfs tmpfs rw\n"
    (folder / "mounts").write_text(pod * 100_000 + _MOUNT)
    rows, told, _ = _ingested(folder, "mounts")
    assert len(rows) == 100_001
    assert told == ("loaded", None)
    with wbscope.open(folder) as opened:
        devices = [
            tuple(row) for row in opened.sql("SELECT bdi, device, mount FROM wb_device").rows
        ]
        assert opened.names().label("bdi", "254:0") == "vda (/da ta)"
        assert opened.texts(["mounts"]) == {}
    assert devices == [("254:0", "vda", "/da ta")]


def test_a_setting_below_zero_is_none(folder: Path) -> None:
    """No limit of the kernel is: vm.dirty_bytes = -5 was written by somebody else."""
    (folder / "sysctls").write_text("vm.dirty_bytes = -5\nvm.dirty_ratio = 20\nvm.x = y\n")
    with wbscope.open(folder) as opened:
        rows = [
            tuple(row)
            for row in opened.sql("SELECT name, number FROM raw_sysctl WHERE number >= 0").rows
        ]
    assert rows == [("vm.dirty_ratio", 20)]
