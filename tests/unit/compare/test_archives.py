# SPDX-License-Identifier: Apache-2.0
"""Archives of runs on the sides of compare: what is read, and what is refused."""

from __future__ import annotations

import io
import os
import shutil
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from support.opsruns import ops_runs
from support.runs import REPOSITORY
from wbscope.base.errors import InputError
from wbscope.source.archives import is_archive, unpacked

Cli = Callable[..., Any]
TEN = [10 + number / 100 for number in range(10)]
RUN = REPOSITORY / "examples/gate/runs/before-2"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders old and new of ten runs, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    ops_runs(tmp_path / "old", TEN)
    ops_runs(tmp_path / "new", [value * 2 for value in TEN], later=100)
    return tmp_path


def zipped(name: str, folder: str) -> None:
    shutil.make_archive(name, "zip", ".", folder)


def tarred(name: str, folder: str) -> None:
    """A tar, packed as the end of its name says."""
    kind = name.rpartition(".")[2]
    data = io.BytesIO()
    mode = kind if kind in ("gz", "xz", "bz2") else ""
    with tarfile.open(fileobj=data, mode=f"w:{mode}") as archive:  # type: ignore[call-overload]
        archive.add(folder)
    packed = data.getvalue()
    if kind == "zst":
        packed = pyarrow.compress(packed, codec="zstd", asbytes=True)
    Path(name).write_bytes(packed)


def left(place: Path) -> list[Path]:
    return [path for path in (place / "cache").rglob("*") if "scratch" in path.name]


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tar.xz", "tar.zst", "tar.bz2"])
def test_archives_are_folders(cli: Cli, place: Path, suffix: str) -> None:
    tarred(f"b.{suffix}", "old")
    zipped("a", "new")
    packed = cli("compare", "a.zip", "--against", f"b.{suffix}", "--json")
    plain = cli("compare", "new", "--against", "old", "--json")
    assert packed.code == 0, packed.err
    assert packed.document()["rows"] == plain.document()["rows"]
    names = [run["name"] for run in packed.document()["sides"][0]["runs"]]
    assert names == [f"b/{number}" for number in range(1, 11)]
    assert left(place) == []


def test_one_archive_on_both_sides_is_one_recording(cli: Cli, place: Path) -> None:
    zipped("a", "new")
    (place / "p.toml").write_text('[metrics."ops.stall_ns"]\nmargin = "5%"\n')
    ran = cli("gate", "--policy", "p.toml", "a.zip", "--against", "a.zip")
    assert (ran.code, "same-recording" in ran.out + ran.err) == (4, True)


def test_runs_with_traces_and_files_of_measurements(cli: Cli, place: Path) -> None:
    with tarfile.open("traces.tar.gz", "w:gz") as archive:
        archive.add(RUN, "artefact/runs/1")
    ran = cli("baseline", "save", "traces.tar.gz", "-o", "t.json")
    assert ran.code == 0, ran.err
    with zipfile.ZipFile("logs.zip", "w") as archive_zip:
        for number in range(6):
            text = f"real 1{number}.00\nuser 1.00\nsys 1.00\n"
            archive_zip.writestr(f"logs/{number}.log", text)
    ran = cli("compare", "logs.zip", "--against", "logs.zip", "--json")
    assert len(ran.document()["sides"][0]["runs"]) == 6


def test_a_bad_run_in_an_archive_is_named(cli: Cli, place: Path) -> None:
    (place / "new/3/ops.txt").write_text("stall ten s\n")
    zipped("a", "new")
    error = cli("compare", "a.zip", "--against", "old", "--json").error()
    assert (error["slug"], error["object"]) == ("bad-measurement", "a.zip:3/ops.txt")
    (place / "new/3/ops.txt").unlink()
    zipped("b", "new")
    error = cli("compare", "b.zip", "--against", "old", "--json").error()
    assert (error["slug"], error["object"]) == ("no-trace", "b.zip:3")
    assert str(place / "cache") not in str(error)
    assert left(place) == []


def test_an_archive_without_runs(cli: Cli, place: Path) -> None:
    (place / "x").mkdir()
    (place / "x/readme.md").write_text("hello\n")
    zipped("x", "x")
    error = cli("compare", "x.zip", "--against", "old", "--json").error()
    assert (error["slug"], error["object"], error["have"]) == ("no-runs", "x.zip", "readme.md")


def tar_with(member: tarfile.TarInfo, data: bytes = b"") -> Path:
    member.size = len(data)
    with tarfile.open("bad.tar.gz", "w:gz") as archive:
        archive.addfile(member, io.BytesIO(data))
    return Path("bad.tar.gz")


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("../ops.txt", tarfile.REGTYPE, "leads out"),
        ("/tmp/ops.txt", tarfile.REGTYPE, "leads out"),
        ("runs/../../ops.txt", tarfile.REGTYPE, "leads out"),
        ("runs/1", tarfile.SYMTYPE, "is a link"),
        ("runs/1", tarfile.LNKTYPE, "is a link"),
        ("runs/1", tarfile.CHRTYPE, "is no regular file"),
        ("runs/1", tarfile.FIFOTYPE, "is no regular file"),
    ],
)
def test_members_that_are_refused(place: Path, name: str, kind: bytes, said: str) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    path = tar_with(member)
    assert is_archive(path)
    with pytest.raises(InputError, match=said) as caught, unpacked(path):
        pass
    assert caught.value.subject == f"bad.tar.gz:{name}"
    assert left(place) == []
    assert not (place / "ops.txt").exists()


@pytest.mark.parametrize("name", ["../ops.txt", "/ops.txt", "a\\..\\ops.txt"])
def test_names_in_a_zip_that_lead_out(place: Path, name: str) -> None:
    with zipfile.ZipFile("bad.zip", "w") as archive:
        archive.writestr(name, "a 1 s\n")
    with pytest.raises(InputError, match="leads out"), unpacked(Path("bad.zip")):
        pass


def test_a_link_in_a_zip(place: Path) -> None:
    link = zipfile.ZipInfo("runs/1")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile("bad.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(InputError, match="is a link or a device"), unpacked(Path("bad.zip")):
        pass


def test_a_member_that_is_there_twice(place: Path) -> None:
    with tarfile.open("bad.tar", "w") as archive:
        for _ in range(2):
            archive.add("old/1/ops.txt")
    with pytest.raises(InputError, match="is there twice"), unpacked(Path("bad.tar")):
        pass


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.xz", "tar.zst"])
def test_a_bomb(place: Path, kind: str) -> None:
    """70 MiB of zeros in some 100 KiB."""
    (place / "bomb").mkdir()
    with (place / "bomb/ops.txt").open("wb") as file:
        os.truncate(file.fileno(), 70 << 20)
    if kind == "zip":
        zipped("bomb", "bomb")
    else:
        tarred(f"bomb.{kind}", "bomb")
    path = Path(f"bomb.{kind}")
    with pytest.raises(InputError, match="more than 200 times") as caught, unpacked(path):
        pass
    assert (caught.value.slug, "bomb/ops.txt" in str(caught.value)) == ("too-large", True)
    assert left(place) == []


def test_more_members_than_any_runs_have(place: Path) -> None:
    """20,001 times the same folder, in a list that is made of one entry."""
    count = 20_001
    with zipfile.ZipFile("a.zip", "w") as archive:
        archive.writestr("runs/", "")
    packed = Path("a.zip").read_bytes()
    start = packed.index(b"PK\x01\x02")
    entries = packed[start : packed.index(b"PK\x05\x06")] * count
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, count, count, len(entries), start, 0)
    Path("a.zip").write_bytes(packed[:start] + entries + end)
    with pytest.raises(InputError, match="20000 members") as caught, unpacked(Path("a.zip")):
        pass
    assert caught.value.slug == "too-large"
    assert left(place) == []


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tar.xz", "tar.zst"])
def test_an_archive_that_is_cut_off(cli: Cli, place: Path, kind: str) -> None:
    if kind == "zip":
        zipped("cut", "new")
    else:
        tarred(f"cut.{kind}", "new")
    path = place / f"cut.{kind}"
    data = path.read_bytes()
    for share in (0.3, 0.6):  # the rest of a tar may be zeros
        path.write_bytes(data[: int(len(data) * share)])
        ran = cli("compare", path.name, "--against", "old", "--json")
        assert (ran.code, ran.out) == (3, "")
        assert ran.error()["slug"] in ("damaged-archive", "no-runs", "no-trace", "not-a-trace")
    assert left(place) == []


@pytest.mark.parametrize("name", ["trace.dat", "ops.txt"])
def test_what_is_no_archive(name: str) -> None:
    assert not is_archive(RUN / name)


@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize(("depth", "code"), [(90, 0), (100, 3), (2000, 3)])
def test_folders_in_folders(cli: Cli, place: Path, kind: str, depth: int, code: int) -> None:
    name, text = "d/" * depth + "ops.txt", b"stall 1 s\n"
    if kind == "zip":
        with zipfile.ZipFile("deep", "w") as packed:
            packed.writestr(name, text)
    else:
        with tarfile.open("deep", "w") as archive:
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    ran = cli("compare", "deep", "--against", "old")
    assert ran.code == code, ran.err
    if code:
        told = f"error[bad-archive]: deep:{name[:40]}...: lies in {depth} folders, wanted fewer"
        assert ran.err.startswith(told), ran.err
    assert left(place) == []
