# SPDX-License-Identifier: Apache-2.0
"""Folders and archives of runs as sides: none left out without a word, no copy counted twice."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from support.cli import check_error
from support.opsruns import ops_runs
from support.runs import REPOSITORY
from wbscope.base.errors import InputError
from wbscope.compare.load import Loader, expand
from wbscope.source.archives import is_archive, unpacked

# Archives of runs on the sides of compare: what is read, and what is refused.

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


# A folder that the user may not read is an input that cannot be read, and no bug.

_NOBODY = 65534


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """Of somebody else; root reads all, so that it is another user for a while."""
    folder = tmp_path / "closed"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "trace.dat").write_bytes(b"")
    folder.chmod(0)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(_NOBODY)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o700)


@pytest.mark.parametrize("inside", ["", "1", "1/trace.dat", "1/trace.dat#part"])
def test_it_cannot_be_read(closed: Path, inside: str) -> None:
    name = str(closed / inside)
    assert expand(name) == [name]
    with pytest.raises(InputError) as caught:
        Loader().side("A", [name])
    assert (caught.value.slug, caught.value.exit_code) == ("cannot-read", 3)


# Folders of runs: none is left out without a word, and a copy is no second run.

POLICY = '[metrics."ops.stall_ns"]\nmargin = "5%"\n'


@pytest.fixture
def part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ten runs in part, of which 9 and 10 left nothing; ten in partb; a policy."""
    monkeypatch.chdir(tmp_path)
    ops_runs(tmp_path / "part", TEN)
    ops_runs(tmp_path / "partb", [value + 0.001 for value in TEN], later=100)
    for name in ("9", "10"):
        (tmp_path / "part" / name / "ops.txt").unlink()
    (tmp_path / "p.toml").write_text(POLICY)
    return tmp_path


COMMANDS = [
    ["gate", "--policy", "p.toml", "part", "--against", "partb"],
    ["gate", "--policy", "p.toml", "partb", "--against", "part"],
    ["gate", "--policy", "p.toml", "partb", "--baseline", "part"],
    ["gate", "--policy", "p.toml", "part", "--self-check"],
    ["gate", "part", "--budget", "ops.stall_ns <= 100s"],
    ["compare", "part", "--against", "partb"],
    ["compare", "--side", "old=partb", "--side", "new=part"],
    ["baseline", "save", "part", "-o", "new.json"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_empty_sub_folder_is_an_error(cli: Cli, part: Path, words: list[str]) -> None:
    ran = cli(*words)
    assert (ran.code, ran.out) == (3, "")
    check_error(ran.err, "no-trace", "part/9: ", "mv part/9 OTHER-FOLDER")
    assert "10" in ran.err.splitlines()[1]
    assert not (part / "new.json").exists()


def test_the_glob_and_the_folder_end_alike(cli: Cli, part: Path) -> None:
    runs = sorted(str(run.relative_to(part)) for run in (part / "part").iterdir())
    globbed = cli("gate", "--policy", "p.toml", *runs, "--against", "partb")
    folder = cli("gate", "--policy", "p.toml", "part", "--against", "partb")
    assert (globbed.code, folder.code) == (3, 3)
    assert all("error[no-trace]: part/" in ran.err for ran in (globbed, folder))


@pytest.mark.parametrize("broken", ["two traces", "a database", "damaged"])
def test_what_cannot_be_read_is_an_error(cli: Cli, part: Path, broken: str) -> None:
    for name in ("9", "10"):
        (part / "part" / name).rmdir()
    if broken == "two traces":
        (part / "part/9").mkdir()
        (part / "part/9/trace.pftrace").write_bytes(b"\n\x01x")
        (part / "part/9/trace.pftrace.gz").write_bytes(b"\n\x01x")
    elif broken == "a database":
        (part / "part/9.db").write_bytes(b"")
    else:
        (part / "part/9").mkdir()
        (part / "part/9/trace.dat").write_bytes(b"\x17\x08\x44tracing6\0")
    ran = cli("gate", "--policy", "p.toml", "part", "--against", "partb")
    assert ran.code == 3
    assert "part/9" in ran.err.splitlines()[0]


def test_what_is_no_folder_of_a_run_is_left_alone(cli: Cli, part: Path) -> None:
    for name in ("9", "10"):
        (part / "part" / name).rmdir()
    (part / "part/notes.txt").write_text("warm-up done\n")
    (part / "part/.git").mkdir()
    ran = cli("gate", "--policy", "p.toml", "part", "--against", "partb")
    assert ran.code == 0
    assert "n 8+10" in " ".join(ran.out.split())


def test_a_run_without_the_number_is_no_pass(cli: Cli, part: Path) -> None:
    for name in ("9", "10"):
        (part / "part" / name / "ops.txt").write_text("other 1 s\n")
    ran = cli("gate", "--policy", "p.toml", "part", "--against", "partb")
    assert ran.code == 4
    assert "known in 18 of 20 runs" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("expected", "code", "told"),
    [
        (10, 4, "A has 8 runs, the policy expects 10"),
        (8, 4, "B has 10 runs, the policy expects 8"),
        (9, 4, "A has 8 runs, the policy expects 9"),
    ],
)
def test_the_policy_counts_the_runs(
    cli: Cli, part: Path, expected: int, code: int, told: str
) -> None:
    for name in ("9", "10"):
        (part / "part" / name).rmdir()
    (part / "p.toml").write_text(f"expect_runs = {expected}\n{POLICY}")
    ran = cli("gate", "--policy", "p.toml", "part", "--against", "partb")
    assert ran.code == code
    assert told in " ".join(ran.out.split())
    assert ran.out.startswith("gate: REFUSED")
    assert f"expect_runs = {8 if '8 runs' in told else 10}" in " ".join(ran.out.split())


def test_as_many_runs_as_expected(cli: Cli, part: Path) -> None:
    (part / "p.toml").write_text(f"expect_runs = 10\ndrop_first = 2\n{POLICY}")
    ops_runs(part / "part", TEN)
    ran = cli("gate", "--policy", "p.toml", "part", "--against", "partb", "--json")
    assert (ran.code, json.loads(ran.out)["status"]) == (0, "PASS")
    assert cli("gate", "--policy", "p.toml", "part", "--self-check").code == 0
    assert cli("baseline", "save", "part", "--policy", "p.toml", "-o", "b.json").code == 0
    assert cli("gate", "--policy", "p.toml", "partb", "--baseline", "b.json").code == 0


def test_a_baseline_of_too_few_runs_is_not_saved(cli: Cli, part: Path) -> None:
    (part / "p.toml").write_text(f"expect_runs = 11\n{POLICY}")
    ran = cli("baseline", "save", "partb", "--policy", "p.toml", "-o", "b.json")
    assert ran.code == 4
    check_error(ran.err, "number-of-runs", "p.toml", "11", "10")
    assert not (part / "b.json").exists()


# What a recording is known by.


def _gate(cli: Cli, new: str, old: str) -> Any:
    return cli("gate", "--policy", "p.toml", new, "--against", old)


def test_recorded_again_in_the_same_folders(cli: Cli, part: Path) -> None:
    """Run 3 of both says 13 s: by chance, as whole seconds often do."""
    ops_runs(part / "runs", [12, 11, 13, 14, 12, 11])
    assert cli("baseline", "save", "runs", "-o", "base.json").code == 0
    ops_runs(part / "runs", [21, 22, 13, 20, 23, 21], later=1000)
    ran = _gate(cli, "runs", "base.json")
    assert (ran.code, ran.out.splitlines()[0]) == (1, "gate: FAIL: 1 FAIL of 1 metric")
    assert "same-recording" not in ran.out


def test_the_same_folders_are_the_same_recordings(cli: Cli, part: Path) -> None:
    ops_runs(part / "runs", [12, 11, 13, 14, 12, 11])
    assert cli("baseline", "save", "runs", "-o", "base.json").code == 0
    for words in (("runs", "base.json"), ("runs", "runs"), ("runs/1", "base.json")):
        ran = _gate(cli, *words)
        assert ran.code == 4
        assert "refused[same-recording]" in ran.out


@pytest.mark.parametrize("keep_times", [True, False])
@pytest.mark.parametrize("values", [[12, 11, 13, 14, 16, 15], [value * 1.0123 for value in TEN]])
def test_a_copy_of_the_folder(cli: Cli, part: Path, values: list[float], keep_times: bool) -> None:
    ops_runs(part / "runs", values)
    shutil.copytree(part / "runs", part / "copy/x", copy_function=shutil.copy2)
    if not keep_times:
        for file in (part / "copy").rglob("ops.txt"):
            os.utime(file, ns=(1, 1))
    shutil.move(part / "copy/x/1", part / "copy/x/77")
    assert cli("baseline", "save", "runs", "-o", "base.json").code == 0
    for old in ("runs", "base.json"):
        ran = _gate(cli, "copy/x", old)
        assert ran.code == 4
        assert "are among the runs of B: nothing can differ" in " ".join(ran.out.split())
    told = cli("compare", "copy/x", "--against", "runs")
    assert "is the same recording as one of B" in " ".join(told.out.split())


def test_one_copied_run_is_found_by_its_digits(cli: Cli, part: Path) -> None:
    ops_runs(part / "old", [value * 1.01234567 for value in TEN])
    ops_runs(part / "new", [value * 1.02345678 for value in TEN], later=100)
    assert _gate(cli, "new", "old").code == 0
    shutil.copy(part / "old/3/ops.txt", part / "new/7/ops.txt")
    ran = _gate(cli, "new", "old")
    assert ran.code == 4
    assert "7 (3) of A are among the runs of B" in " ".join(ran.out.split())


def test_what_is_the_same_in_every_run_is_no_copy(cli: Cli, part: Path) -> None:
    """123456789 requests in all runs, and whole seconds."""
    for folder, values in (("old", [12, 11, 13, 12, 11, 12]), ("new", [12, 11, 13, 12, 12, 11])):
        ops_runs(part / folder, values)
        for run in (part / folder).iterdir():
            with (run / "ops.txt").open("a") as file:
                file.write("requests 123456789 count\n")
    (part / "p.toml").write_text('[metrics."ops.stall_ns"]\nmargin = "50%"\n')
    assert _gate(cli, "new", "old").code == 0


def test_copies_on_a_side_are_refused(cli: Cli, part: Path) -> None:
    ops_runs(part / "old", TEN)
    ops_runs(part / "new", [value * 1.001 for value in TEN[:5]], later=100)
    for number in range(1, 6):
        shutil.copytree(part / f"new/{number}", part / f"new/{number + 5}")
    ran = _gate(cli, "new", "old")
    assert ran.code == 4
    assert "1, 6 of A are one recording: it counts as one run" in " ".join(ran.out.split())


def test_a_file_that_says_when_it_was_made_is_the_recording(cli: Cli, part: Path) -> None:
    """Whole seconds, but the recorder's mark is beside them."""
    for folder in ("old", "new"):
        ops_runs(part / folder, [12, 12, 12, 13, 12, 12])
        for number, run in enumerate((part / folder).iterdir()):
            began = number + (1000 if folder == "new" else 0)
            (run / "meta.json").write_text(f'{{"started_ts_ns": {began}}}')
    (part / "p.toml").write_text('[metrics."ops.stall_ns"]\nmargin = "50%"\n')
    assert _gate(cli, "new", "old").code == 0
    shutil.copy(part / "old/2/meta.json", part / "new/5/meta.json")
    ran = _gate(cli, "new", "old")
    assert ran.code == 4
    assert "5 (2) of A are among the runs of B" in " ".join(ran.out.split())
