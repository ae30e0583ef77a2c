# SPDX-License-Identifier: Apache-2.0
"""Run folders: strange files, machine files, and what was not recorded."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import sqlite3
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import wbscope
from support.archives import unpacked
from support.cli import Wbscope
from support.report import report_lines
from support.runs import REPOSITORY, example
from support.tools import ingester_path, run
from support.waits import GUARD_SECONDS
from wbscope.base.errors import InputError
from wbscope.base.held_folder import SIDECAR_NAMES
from wbscope.record.machine import save_after, save_before
from wbscope.source import plain_files
from wbscope.source.source import find_source

# Run folders with FIFOs, sockets, devices and links out of them: refused, never waited for.

_TRACE = REPOSITORY / "examples" / "four-equal-writers" / "trace.dat"


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        place = Path.cwd()
        os.chdir(path.parent)  # the name of a socket is short
        server.bind(path.name)
        os.chdir(place)


def _device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        path.symlink_to("/dev/zero")


def _link_out(path: Path) -> None:
    outside = path.parent.parent / "outside"
    outside.write_text("secret\n")
    path.symlink_to(outside)


def _link_up(path: Path) -> None:
    (path.parent.parent / "outside").write_text("secret\n")
    path.symlink_to("../outside")


def _link_to_fifo(path: Path) -> None:
    os.mkfifo(path.parent / "other")
    path.symlink_to("other")


def _link_to_nothing_outside(path: Path) -> None:
    path.symlink_to("/nowhere/at/all")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


_KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "fifo": (_fifo, "a FIFO"),
    "socket": (_socket, "a socket"),
    "device": (_device, "device|outside of the folder"),
    "link out": (_link_out, "outside of the folder"),
    "link up": (_link_up, "outside of the folder"),
    "link to a fifo": (_link_to_fifo, "a FIFO"),
    "link to nothing": (_link_to_nothing_outside, "outside of the folder"),
    "loop": (_loop, "leads to itself"),
}
_NAMES = ("trace.dat", "vmstat.before", "time.txt", "meta.json", "uname", "trace.dat.cpu0", "bdis")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    made.mkdir()
    shutil.copy(_TRACE, made / "trace.dat")
    return made


def _put(folder: Path, name: str, kind: str) -> str:
    (folder / name).unlink(missing_ok=True)
    make, words = _KINDS[kind]
    make(folder / name)
    return words


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("kind", _KINDS)
def test_ingester(folder: Path, kind: str, name: str) -> None:
    words = _put(folder, name, kind)
    output = folder.parent / "out"
    for job in (["sqlite", folder, "-o", output], ["convert", folder, "-o", output]):
        done = subprocess.run(
            [ingester_path(), *job, "--json-lines"],
            capture_output=True,
            text=True,
            timeout=GUARD_SECONDS,
            check=False,
        )
        assert done.returncode == 3, done.stderr
        (line,) = done.stderr.splitlines()
        said = json.loads(line)
        assert said["slug"] == "strange-file"
        assert said["object"] == str(folder / name)
        assert any(word in said["message"] for word in words.split("|")), said
        assert said["fix"].startswith("mv ")
    assert not output.exists()


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("kind", _KINDS)
def test_front_end(folder: Path, kind: str, name: str) -> None:
    words = _put(folder, name, kind)
    with pytest.raises(InputError) as caught:
        find_source(str(folder))
    assert caught.value.subject == str(folder / name)
    assert any(word in caught.value.message for word in words.split("|"))


def test_both_refuse_the_same() -> None:
    """Files beside a trace, by name: here and in the ingester, which a test cannot ask."""
    source = (REPOSITORY / "ingest/src/sidecar/sidecars.cc").read_text()
    lists = re.findall(
        r"static const std::set<std::string> k(?:Names|Texts)\{(.*?)\};", source, re.DOTALL
    )
    assert len(lists) == 2
    assert set(re.findall(r'"([^"]+)"', "".join(lists))) == set(SIDECAR_NAMES)


def test_what_is_recorded_is_refused_where_it_is_strange(tmp_path: Path) -> None:
    save_before(tmp_path)
    save_after(tmp_path)
    found = {path.name for path in tmp_path.iterdir()}
    assert {"mounts", "sysctls", "vmstat.before", "zoneinfo.after"} <= found
    assert found - plain_files._READ == set()


@pytest.mark.parametrize("name", sorted(SIDECAR_NAMES))
def test_each_name(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(InputError, match="is a FIFO"):
        find_source(str(folder))
    done = run([ingester_path(), "sqlite", folder, "-o", folder.parent / "out", "--json-lines"])
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stderr)["object"] == str(folder / name)


_VERBS = (
    ("query", "fairness", "RUN"),
    ("sql", "RUN", "SELECT 1"),
    ("report", "RUN"),
    ("ingest", "RUN", "-o", "OUT"),
    ("timeline", "RUN", "-o", "OUT"),
    ("convert", "RUN", "-o", "OUT"),
    ("compare", "RUN", "--against", "RUN"),
    ("gate", "RUN", "--budget", "throttle_summary.pause_p99_ns <= 1s"),
    ("open", "RUN"),
)


@pytest.mark.parametrize("verb", _VERBS, ids=lambda verb: verb[0])
def test_every_verb(wbscope: Wbscope, folder: Path, verb: tuple[str, ...]) -> None:
    _put(folder, "trace.dat", "fifo")
    words = {"RUN": str(folder), "OUT": str(folder.parent / "out")}
    done = subprocess.run(
        [wbscope._program, *(words.get(word, word) for word in verb)],
        capture_output=True,
        text=True,
        env=wbscope.env,
        timeout=GUARD_SECONDS,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "strange-file" in done.stderr
    assert f"{folder / 'trace.dat'}" in done.stderr.replace("\n", "")
    assert not (folder.parent / "out").exists()


def test_fix_works(folder: Path) -> None:
    _put(folder, "vmstat.before", "fifo")
    with pytest.raises(InputError) as caught:
        find_source(str(folder))
    fix = caught.value.fix
    assert fix is not None
    subprocess.run(fix, shell=True, check=True)
    assert find_source(str(folder)).trace == folder / "trace.dat"


@pytest.mark.parametrize("is_absolute", [False, True])
def test_link_within_the_folder(folder: Path, is_absolute: bool) -> None:
    (folder / "before").write_text("nr_dirty 23\n")
    (folder / "vmstat.before").symlink_to(folder / "before" if is_absolute else "before")
    (folder / "real.dat").write_bytes((folder / "trace.dat").read_bytes())
    (folder / "trace.dat").unlink()
    (folder / "trace.dat").symlink_to("real.dat")
    assert find_source(str(folder)).trace == folder / "trace.dat"
    done = run([ingester_path(), "sqlite", folder, "-o", folder.parent / "run.db"])
    assert done.returncode == 0, done.stderr
    with contextlib.closing(sqlite3.connect(folder.parent / "run.db")) as db:
        rows = db.execute("SELECT name, value FROM sidecar_vmstat").fetchall()
    assert rows == [("nr_dirty", 23)]


def test_folder_that_is_a_link(folder: Path) -> None:
    (folder / "vmstat.before").write_text("nr_dirty 23\n")
    link = folder.parent / "link"
    link.symlink_to(folder)
    assert find_source(str(link)).folder == link
    done = run([ingester_path(), "sqlite", link, "-o", folder.parent / "run.db"])
    assert done.returncode == 0, done.stderr
    assert "outside" not in done.stderr


@pytest.mark.parametrize("kind", _KINDS)
def test_other_strange_files_do_not_matter(folder: Path, kind: str) -> None:
    """Nobody reads a file of that name; a link out of the folder is not followed."""
    _put(folder, "notes", kind)
    assert find_source(str(folder)).inputs()
    database = folder.parent / "run.db"
    done = subprocess.run(
        [ingester_path(), "sqlite", folder, "-o", database],
        capture_output=True,
        text=True,
        timeout=GUARD_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with contextlib.closing(sqlite3.connect(database)) as db:
        assert db.execute("SELECT * FROM sidecar_text WHERE text GLOB '*secret*'").fetchall() == []


# Settings, mounts, devices and swap beside a trace: what the files say, however they were left.

_MOUNT = "25 31 254:0 / /da\\040ta rw - ext4 /dev/vda rw"
_FILES = {
    "sysctls": ("vm.dirty_ratio = 20", ("vm.dirty_ratio", "20", 20)),
    "mounts": (_MOUNT, ("254:0", "/da ta", "ext4", "/dev/vda", "rw")),
    "bdis": ("254:0 vda /da\\040ta ext4", ("254:0", "vda", "/da ta", "ext4")),
    "swaps": ("/swap\\040file file 8 0 -2", ("/swap file", "file", 8, 0, -2)),
    "stacks": ("253:0 254:0", ("253:0", "254:0")),
}


@pytest.fixture
def machine_folder(tmp_path: Path) -> Path:
    """With a trace and nothing else."""
    made = tmp_path / "run"
    made.mkdir()
    shutil.copy(example("four-equal-writers").trace, made)
    return made


def _ingested(
    machine_folder: Path, name: str
) -> tuple[list[tuple[object, ...]], tuple[object, ...], str]:
    """The rows of the file without their lines, what is said of it, and stderr."""
    database = machine_folder.parent / "run.db"
    done = run([ingester_path(), "sqlite", machine_folder, "-o", database])
    assert done.returncode == 0, done.stderr
    with contextlib.closing(sqlite3.connect(database)) as db:
        cursor = db.execute(f"SELECT * FROM sidecar_{name}")
        kept = [place for place, (column, *_) in enumerate(cursor.description) if column != "line"]
        rows = [tuple(row[place] for place in kept) for row in cursor]
        (told,) = db.execute("SELECT status, message FROM sidecar_file WHERE name = ?", (name,))
    return rows, told, done.stderr


@pytest.mark.parametrize("name", _FILES)
def test_bad_lines_take_no_good_ones_with_them(machine_folder: Path, name: str) -> None:
    """One of 1 MB, of NULs, of bytes that are no text, cut short; no line feed at the end."""
    line, row = _FILES[name]
    bad = (b"x" * 1_000_000, b"\0" * 4096, b"\xff\xfe", b"9", b"-")
    good = line.encode()
    (machine_folder / name).write_bytes(
        b"".join(good + b"\n" + each + b"\n" for each in bad) + good
    )
    rows, told, stderr = _ingested(machine_folder, name)
    assert rows == [row] * 6
    assert told == ("partial", "5 lines not understood, the first is line 2")
    assert "warning[sidecar-partial]" in stderr
    with wbscope.open(machine_folder) as opened:
        opened.sql("SELECT * FROM _swap_area")
        assert any(one.slug == "sidecar-partial" for one in opened.warnings())


@pytest.mark.parametrize("name", _FILES)
def test_whole_and_empty_files_are_not_told_of(machine_folder: Path, name: str) -> None:
    line, row = _FILES[name]
    for text, rows in (("", []), (f"{line}\r\n\n{line}\n", [row, row])):
        (machine_folder / name).write_text(text)
        assert _ingested(machine_folder, name)[:2] == (rows, ("loaded", None))
        (machine_folder.parent / "run.db").unlink()


def test_a_file_that_is_too_long_to_be_kept_is_read(machine_folder: Path) -> None:
    """100,000 lines of pods come first: the text is over 1 MiB."""
    pod = "1 31 0:300 / /var/lib/kubelet/pods/p rw,relatime - tmpfs tmpfs rw\n"
    (machine_folder / "mounts").write_text(pod * 100_000 + _MOUNT)
    rows, told, _ = _ingested(machine_folder, "mounts")
    assert len(rows) == 100_001
    assert told == ("loaded", None)
    with wbscope.open(machine_folder) as opened:
        devices = [
            tuple(row) for row in opened.sql("SELECT bdi, device, mount FROM wb_device").rows
        ]
        assert opened.names().label("bdi", "254:0") == "vda (/da ta)"
        assert opened.texts(["mounts"]) == {}
    assert devices == [("254:0", "vda", "/da ta")]


def test_a_setting_below_zero_is_none(machine_folder: Path) -> None:
    """No limit of the kernel is: vm.dirty_bytes = -5 was written by somebody else."""
    (machine_folder / "sysctls").write_text("vm.dirty_bytes = -5\nvm.dirty_ratio = 20\nvm.x = y\n")
    with wbscope.open(machine_folder) as opened:
        rows = [
            tuple(row)
            for row in opened.sql("SELECT name, number FROM raw_sysctl WHERE number >= 0").rows
        ]
    assert rows == [("vm.dirty_ratio", 20)]


# What a trace does not have: because it did not happen, or because it was not recorded.

_SAMPLES = unpacked("data") / "traces"
_RUN = REPOSITORY / "examples/four-equal-writers/trace.dat"


def _ids(wbscope: Wbscope, source: Path) -> set[str]:
    return {str(row["id"]) for row in wbscope.query("findings", source)}


@pytest.mark.parametrize(
    "name",
    [
        "6.1-amd64-v7-extract",
        "6.1-amd64-v7-function",
        "6.1-amd64-v7-graph",
        "7.2-amd64-v7-function-args",
        "6.1-s390x-v7-graph",
    ],
)
def test_formats_of_all_events_tell_nothing(wbscope: Wbscope, name: str) -> None:
    """trace-cmd writes them where it records none by name."""
    found = wbscope.run("query", "throttle_by_task", _SAMPLES / name)
    assert found.returncode == 4
    assert "missing-event" in found.stderr
    ids = _ids(wbscope, _SAMPLES / name)
    assert "not_recorded" in ids
    assert "nothing_wrong" not in ids


@pytest.mark.parametrize("name", ["6.1-amd64-v7-all", "7.2-amd64-v7-all"])
def test_all_events_were_on(wbscope: Wbscope, name: str) -> None:
    """trace-cmd record -e all: throttling would be there."""
    lines = report_lines(_SAMPLES / name / "trace.dat")
    assert not any("balance_dirty_pages" in line for line in lines)
    assert wbscope.query("throttle_by_task", _SAMPLES / name) == []
    ids = _ids(wbscope, _SAMPLES / name)
    assert "not_recorded" not in ids
    assert "nothing_wrong" in ids


def test_events_left_out_were_not_recorded(wbscope: Wbscope, tmp_path: Path) -> None:
    """Of what convert writes: else 53 s of waits were none."""
    for name, made in {
        "convert.pftrace": ("convert", _RUN, "-e", "block:*"),
        "timeline.pftrace": ("timeline", _RUN, "--events", "block:*"),
    }.items():
        part = tmp_path / name
        assert wbscope.run(*made, "-o", part).returncode == 0
        ids = _ids(wbscope, part)
        assert "not_recorded" in ids
        assert "nothing_wrong" not in ids
        budget = "throttle_summary.slept_total_ns <= 1ms"
        assert wbscope.run("gate", part, "--budget", budget).returncode == 4


def test_a_part_says_that_it_is_one(wbscope: Wbscope, tmp_path: Path) -> None:
    for name, options in {"part": ("--time-range", "0s..300ms"), "whole": ()}.items():
        made = tmp_path / f"{name}.pftrace"
        assert wbscope.run("convert", _RUN, *options, "-o", made).returncode == 0
        document = wbscope.document("query", "event_counts", made)
        slugs = {warning["slug"] for warning in document["warnings"]}
        assert ("part-of-trace" in slugs) == (name == "part")


def test_a_text_does_not_tell_what_was_on(wbscope: Wbscope, tmp_path: Path) -> None:
    text = tmp_path / "trace.txt"
    text.write_text("dd-1 [000] 8.000001: mm_vmscan_kswapd_sleep: nid=0\n")
    (one,) = (row for row in wbscope.query("findings", text) if row["id"] == "not_recorded")
    assert one["confidence"] == "inferred"
    assert "or no task was" in str(one["text"])


def test_a_moment_does_not_tell_much(wbscope: Wbscope) -> None:
    rows = wbscope.query("findings", _SAMPLES / "7.2-amd64-v7-all")
    (one,) = (row for row in rows if row["id"] == "nothing_wrong")
    assert (one["severity"], one["confidence"]) == ("note", "cannot tell")
    assert str(one["text"]).startswith("No all-clear in so short a time: ")
    assert "; the trace is shorter than 2 s" in str(one["text"])
