# SPDX-License-Identifier: Apache-2.0
"""record --unpack: the archive may be a stranger's."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import tarfile
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.faults import memory_disk, no_file_above
from support.texttrace import sent_archive
from support.waits import wait_until
from wbscope.base.errors import InputError, SetupError
from wbscope.record.probes import DROPPED
from wbscope.record.recorder import Request
from wbscope.record.remote import unpack, unpack_file

Cli = Callable[..., Any]
_FORMAT = 'name: one\nID: 7\nformat:\n\nprint fmt: ""\n'


def _archive(**more: str) -> io.BytesIO:
    return io.BytesIO(sent_archive(**more))


def _file(folder: Path, **more: str) -> Path:
    path = folder / "run.tar"
    path.write_bytes(sent_archive(**more))
    return path


def test_what_the_script_sends(tmp_path: Path) -> None:
    facts = unpack(_archive(), tmp_path)
    assert (facts["events"], facts["lost"]["overwritten_count"]) == (["xhci-hcd:one"], 3)
    assert facts["waits"]["missed"] == 2
    assert facts["problems"] == [f"2 {DROPPED}"]
    trace = (tmp_path / "trace.dat").read_bytes()
    assert _FORMAT.encode() in trace
    assert trace[-2 * 4096 :] == b"0" * 4096 + b"2" * 4096


@pytest.mark.parametrize("number", ["16384", "1000000", "9" * 200, "x", "-1", "\u0663"])
@pytest.mark.parametrize("kind", ["pages", "stats"])
def test_cpu_that_no_machine_has(tmp_path: Path, number: str, kind: str) -> None:
    """The trace.dat has a place for each CPU up to the last."""
    with pytest.raises(InputError, match=f"cpu.*{kind} is of no CPU below 16384"):
        unpack(_archive(**{f"cpu{number}.{kind}": ""}), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_last_cpu_that_is_read(tmp_path: Path) -> None:
    unpack(_archive(**{"cpu16383.pages": ""}), tmp_path)
    assert (tmp_path / "trace.dat").stat().st_size < 1 << 20


@pytest.mark.parametrize("event", ["x:{}", "..:..", "{}:x", "one", "a:b:c", "a:b/../../c", ":"])
def test_event_is_no_path(tmp_path: Path, event: str) -> None:
    """Else a format would be a file of this machine."""
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/format").write_text("of this machine")
    events = event.format(tmp_path / "secret") + "\n"
    with pytest.raises(InputError, match="is no name of an event"):
        unpack(_archive(events=events), folder)
    assert list(folder.iterdir()) == []


def test_trace_of_the_archive_is_not_taken(tmp_path: Path) -> None:
    more = {"run/trace.dat": "another", "run/vmstat.before": "pgpgin 1\n"}
    unpack(_archive(**more), tmp_path)
    assert (tmp_path / "trace.dat").read_bytes().startswith(b"\x17\x08Dtracing6\0")
    assert (tmp_path / "vmstat.before").read_text() == "pgpgin 1\n"


def _bomb(header: bytes) -> io.BytesIO:
    return io.BytesIO(gzip.compress(header, 9))


def _pax(size: int) -> bytes:
    """A header that describes a member, and goes on and on."""
    member = tarfile.TarInfo("./PaxHeaders/x")
    member.type = tarfile.XHDTYPE
    member.size = size
    return member.tobuf(tarfile.USTAR_FORMAT) + bytes(size)


def _members(count: int, size: int = 0) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for number in range(count):
            member = tarfile.TarInfo(f"./{number}")
            member.size = size
            tar.addfile(member, io.BytesIO(bytes(size)))
    return made.getvalue()


def test_archives_that_grow_are_refused(tmp_path: Path) -> None:
    """As other archives are: nothing of them is kept, and little memory is taken."""
    tracemalloc.start()
    for archive, told in (
        (_bomb(_pax(96 << 20)), "has headers of more than 1 MiB"),
        (_bomb(_members(1, 96 << 20)), "grows to more than 200 times its size"),
        (_bomb(_members(20_001)), "has more than 20000 members"),
    ):
        tracemalloc.reset_peak()
        with pytest.raises(InputError, match=told) as caught:
            unpack(archive, tmp_path)
        assert (caught.value.slug, caught.value.subject) == ("too-large", "the archive")
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
        assert list(tmp_path.iterdir()) == []
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["../out", "/out", "run/../../out"])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    made.seek(0)
    with pytest.raises(InputError, match="leads out of the archive"):
        unpack(made, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_links_are_refused(tmp_path: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        link = tarfile.TarInfo("./facts")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    made.seek(0)
    with pytest.raises(InputError, match="is a link"):
        unpack(made, tmp_path)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_archives_from_a_pipe(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    reading, writing = os.pipe()
    data = pack(sent_archive())

    def write() -> None:
        with open(writing, "wb") as pipe:
            pipe.write(data)

    thread = threading.Thread(target=write)
    thread.start()
    with open(reading, "rb") as pipe:
        assert unpack(pipe, tmp_path)["events"] == ["xhci-hcd:one"]
    thread.join()


def test_a_swapped_folder_of_the_run(tmp_path: Path) -> None:
    """Whoever can write to the folder above it puts a link in its place."""
    victim, home = tmp_path / "victim", tmp_path / "home"
    for folder in (victim, home):
        folder.mkdir()
    (victim / "uname").write_text("precious")
    archive = tmp_path / "run.tar"
    os.mkfifo(archive)
    data = _archive().getvalue()

    def swap() -> None:
        with archive.open("wb") as pipe:
            pipe.write(data[: len(data) // 2])
            pipe.flush()
            wait_until(lambda: list(home.glob(".run.*/*")), "what is unpacked into")
            (private,) = home.iterdir()
            private.rename(home / "moved")
            private.symlink_to(victim)
            pipe.write(data[len(data) // 2 :])

    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    with pytest.raises(SetupError, match="another program has put something in the place"):
        unpack_file(archive, Request(output=home / "run"))
    thread.join()
    assert {path.name: path.read_text() for path in victim.iterdir()} == {"uname": "precious"}
    assert sorted(path.name for path in home.iterdir() if not path.is_symlink()) == ["moved"]


def test_archive_on_a_disk_without_room(cli: Cli, tmp_path: Path) -> None:
    """It is not the archive that is wrong."""
    archive = _file(tmp_path, **{"cpu0.pages": "0" * (1 << 20)})
    with memory_disk("size=512k") as disk:
        ran = cli("record", "--unpack", archive, "-o", disk / "run")
        assert ran.code == 5
        assert ran.err.startswith(f"error[cannot-write]: {disk}/run: ")
        assert list(disk.iterdir()) == []


def test_archive_under_a_limit_of_files(cli: Cli, tmp_path: Path) -> None:
    """Nor is it with `ulimit -f`."""
    archive = _file(tmp_path, **{"cpu0.pages": "0" * (1 << 20)})
    with no_file_above(512 << 10):
        ran = cli("record", "--unpack", archive, "-o", tmp_path / "run")
    assert (ran.code, ran.err.startswith("error[cannot-write]")) == (5, True), ran.err


def test_archive_replaces_an_older_run_only_when_it_is_whole(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    old = '{"schema": "wbscope.record/1", "source": "old"}'
    (run / "meta.json").write_text(old)

    remove = os.unlink

    def interrupted(path: Path | str, **more: Any) -> None:
        if Path(path).name == "meta.json":
            raise KeyboardInterrupt
        remove(path, **more)

    words = ("record", "--unpack", _file(tmp_path), "--no-report", "-o", run, "--force")
    with monkeypatch.context() as broken:
        broken.setattr(os, "unlink", interrupted)
        assert cli(*words).code == 130
    kept = [path.read_text() for path in tmp_path.glob("*/meta.json")]
    assert old in kept
    assert (run / "trace.dat").exists()


def test_archive_into_a_long_name(cli: Cli, tmp_path: Path) -> None:
    words = ("record", "--unpack", _file(tmp_path), "--no-report", "-o")
    run = tmp_path / ("x" * 255)
    assert cli(*words, run).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.tar", run.name]
    assert cli(*words, tmp_path / ("y" * 256)).code == 5


def test_a_machine_that_only_records_needs_no_library_for_archives() -> None:
    code = (
        "import sys; sys.modules['backports'] = sys.modules['compression'] = None\n"
        "import wbscope.cli.record, wbscope.record.remote, wbscope.record.supervisor"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
