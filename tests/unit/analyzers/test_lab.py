# SPDX-License-Identifier: Apache-2.0
"""A lab: its matrix, kernels, results and words."""

from __future__ import annotations

import errno
import json
import os
import shlex
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from support.cli import line_of
from support.runs import REPOSITORY
from support.texttrace import sent_archive
from support.waits import GUARD_SECONDS, wait_until
from wbscope.base.errors import InputError
from wbscope.lab.kernels import Image, Kernel, Setup, find_image
from wbscope.lab.matrix import Matrix, interleaved, read_matrix
from wbscope.record.recorder import Request

# The words behind `wbscope lab`, and what it prints and tells.

Cli = Callable[..., Any]
_MATRIX = """
runs = 1
[setup]
kernel.ssh = "board"
data = "/tmp"
workload = "true"
[axis.place]
a = {}
[axis.run]
b = {}
"""
# The script that records is not run: what it would send is in a file.
_SSH = """#!/bin/sh
if [ "$1" = -- ]; then exec cat {0}/sent.tar; fi
shift 4
exec "$@"
"""
_SCP = """#!/bin/sh
exec cp -r "${{2#*:}}" "$3"
"""


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host that ssh reaches: this machine. Returns where what it records is to be put."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in (("ssh", _SSH), ("scp", _SCP)):
        (programs / name).write_text(text.format(programs))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(programs))
    monkeypatch.delenv("WBSCOPE_SQL_DIR")  # what is recorded is in the whole library
    return programs / "sent.tar"


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "it's a matrix.toml"
    path.write_text(_MATRIX)
    return path


@pytest.mark.parametrize(
    "words", [("lab", "@", "--list"), ("lab", "--list", "@"), ("lab", "run", "@", "--list")]
)
def test_a_first_word_that_is_no_command_is_a_matrix(
    cli: Cli, matrix: Path, words: tuple[str, ...]
) -> None:
    ran = cli(*(matrix if word == "@" else word for word in words))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("   1  a,b/run-1  (")


def test_names_of_axes_hide_nothing_in_json(cli: Cli, matrix: Path) -> None:
    (row,) = cli("lab", matrix, "--list", "--json").json()["rows"]
    assert (row["place"], row["run"]) == (1, "a,b/run-1")
    assert row["values"] == {"place": "a", "run": "b"}


def test_wrong_words(cli: Cli) -> None:
    for words in (["lab"], ["lab", "m.toml", "-o"], ["lab", "a", "b"]):
        ran = cli(*words)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("error[usage]: wbscope lab")
        assert ran.err.splitlines()[-1].startswith("  fix: wbscope lab")


def test_the_remedy_can_be_pasted(cli: Cli, board: Path, matrix: Path, tmp_path: Path) -> None:
    """The fix of failed runs is the command that makes them again."""
    failed = cli("lab", matrix, "-o", tmp_path / "a lab")
    assert failed.code == 5
    fix = failed.err.splitlines()[-1].removeprefix("  fix: ")
    words = shlex.split(fix, comments=True)
    assert words[0] == "wbscope"
    board.write_bytes(sent_archive())
    again = cli(*words[1:])
    assert again.code == 0, again.err
    assert (tmp_path / "a lab/a,b/run-1/trace.dat").exists()


@pytest.mark.usefixtures("board")
def test_a_dry_run_prints_its_result(cli: Cli, matrix: Path) -> None:
    ran = cli("lab", matrix, "--dry-run")
    assert (ran.code, ran.out, ran.err) == (0, "1 cell, 1 run of each: nothing is missing\n", "")
    (row,) = cli("lab", matrix, "--dry-run", "--json").json()["rows"]
    assert (row["place"], row["run"]) == (1, "a,b/run-1")


# Kernels that a lab fetches: kept for the next one.

_KERNEL = Kernel(debian="bookworm", package="linux-image-test")
# apt-get and apt-cache have one package, which dpkg unpacks; the first dpkg waits to be let go.
_PROGRAMS = {
    "apt-get": 'case "$*" in *download*) : > linux.deb;; esac',
    "apt-cache": ":",
    "dpkg": """
mkdir -p "$3/boot"
echo "of $$" > "$3/boot/vmlinuz"
mkdir {0}/first 2>/dev/null && until [ -e {0}/go ]; do sleep 0.02; done
exit 0
""",
}


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the programs of a Debian are; its packages go into a cache beside them."""
    for name, text in _PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text.format(tmp_path)}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def _found() -> Image:
    return find_image(_KERNEL, lambda _: None)


def test_two_labs_fetch_one_kernel(debian: Path) -> None:
    """The second one to be ready finds the other's, and takes that."""
    late: list[Image] = []
    thread = threading.Thread(target=lambda: late.append(_found()), daemon=True)
    thread.start()
    wait_until((debian / "first").exists, "the first lab unpacks")
    image = _found()
    told = image.vmlinuz.read_text()
    (debian / "go").touch()
    thread.join(GUARD_SECONDS)
    assert late == [image] == [_found()]
    assert image.vmlinuz.read_text() == told
    assert [path.name for path in image.vmlinuz.parents[2].iterdir()] == [
        image.vmlinuz.parents[1].name
    ]


def test_a_cache_that_is_full_is_told(debian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (debian / "go").touch()
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        _found()


# A matrix of experiments: what it makes of a file, and what it says of a wrong one.

_GOOD = """
runs = 3
seed = 5
limit = "2m"
[setup]
kernel.folder = "."
workload = "true"
sysctl = { "vm.dirty_bytes" = "16M", "vm.swappiness" = 10 }
cgroup.slow = { "memory.high" = "64M", "io.max" = "data wbps=3M" }
disk = [{ bytes_per_s = "20M" }, { filesystem = "xfs", at = "logs" }]
[axis.limit]
free = {}
low = { sysctl = { "vm.dirty_bytes" = "8M" }, memory = "1G" }
[axis.cpus]
one = { cpus = 1 }
four = { cpus = 4 }
"""


def _read(folder: Path, text: str) -> Matrix:
    path = folder / "matrix.toml"
    path.write_text(text)
    return read_matrix(path)


def test_cells_are_all_combinations(tmp_path: Path) -> None:
    matrix = _read(tmp_path, _GOOD)
    assert [cell.name for cell in matrix.cells] == ["free,one", "free,four", "low,one", "low,four"]
    assert (matrix.runs, matrix.limit_s) == (3, 120.0)
    low = matrix.cells[3].setup
    assert low.sysctls == {"vm.dirty_bytes": str(8 << 20), "vm.swappiness": "10"}
    assert (low.memory_kib, low.cpus) == (1 << 20, 4)
    assert low.cgroups == {"slow": {"memory.high": str(64 << 20), "io.max": "data wbps=3145728"}}
    assert [(disk.at, disk.filesystem, disk.bytes_per_s) for disk in low.disks] == [
        ("data", "ext4", 20 << 20),
        ("logs", "xfs", 0),
    ]
    assert low.kernel.folder == str(tmp_path)


def test_the_example_is_a_matrix() -> None:
    for path in sorted((REPOSITORY / "examples/lab").glob("*/matrix.toml")):
        matrix = read_matrix(path)
        assert len(matrix.cells) * matrix.runs > 1


def test_the_profile_is_that_of_record() -> None:
    assert Setup.profile == Request.profile


def test_digest_does_not_depend_on_the_place(tmp_path: Path) -> None:
    digests = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        digests.add(_read(tmp_path / name, _GOOD).digest)
        digests.add(_read(tmp_path / name, _GOOD.replace('folder = "."', 'image = "x"')).digest)
    assert len(digests) == 2


def test_digest_is_of_what_the_cells_are(tmp_path: Path) -> None:
    digest = _read(tmp_path, _GOOD).digest
    assert _read(tmp_path, _GOOD.replace("runs = 3", "runs = 9 # more")).digest == digest
    for changed in ('"20M"', '"8M"', "cpus = 4", '"true"'):
        other = changed.replace("2", "3").replace("8M", "9M").replace("4", "5")
        other = other.replace("true", "false")
        assert other != changed
        assert _read(tmp_path, _GOOD.replace(changed, other)).digest != digest


def test_runs_are_interleaved(tmp_path: Path) -> None:
    matrix = _read(tmp_path, _GOOD.replace("runs = 3", "runs = 6"))
    names = [job.name for job in interleaved(matrix)]
    assert len(set(names)) == len(names) == 24
    assert names == [job.name for job in interleaved(matrix)]
    rounds = [[job.cell.name for job in interleaved(matrix)][i : i + 4] for i in range(0, 24, 4)]
    for first, second in zip(rounds[::2], rounds[1::2], strict=True):
        assert second == first[::-1]
    # So a steady drift meets each cell alike.
    places: Counter[str] = Counter()
    for place, job in enumerate(interleaved(matrix)):
        places[job.cell.name] += place
    assert len(set(places.values())) == 1
    other = _read(tmp_path, _GOOD.replace("seed = 5", "seed = 6").replace("runs = 3", "runs = 6"))
    assert [job.name for job in interleaved(other)] != names


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("runs = 3", "rums = 3"), "unknown key 'rums'"),
        (("runs = 3", "runs = 0"), "runs is 0, wanted 1 to 1000"),
        (('"2m"', '"2"'), "limit = '2' has no unit"),
        (('workload = "true"', ""), "there is no workload"),
        (('kernel.folder = "."', ""), "no kernel is named"),
        (('folder = "."', 'folder = "nowhere"'), "nowhere does not exist"),
        (('kernel.folder = "."', 'kernel = { folder = ".", debian = "sid" }'), "debian and folder"),
        (('kernel.folder = "."', "kernel.here = true"), "is for guests, and the kernel is this"),
        (('filesystem = "xfs"', 'filesystem = "zfs"'), "'zfs' is none of ext4, xfs, btrfs, none"),
        (('at = "logs"', 'at = "data"'), "two disks are mounted at the same place"),
        (('at = "logs"', 'at = "../etc"'), "is no name of a folder"),
        (('"20M"', '"fast"'), "bytes_per_s = 'fast' is no size"),
        (("\nlow = {", '\n"a/b" = {'), "'a/b' cannot name a folder"),
        (("cpus = 4", "cpu = 4"), "axis.cpus.four has the unknown key 'cpu'"),
        (('"vm.swappiness" = 10', '"../x" = 10'), "is no name in quotes with a value"),
        (('"memory.high" = "64M"', '"../../x" = 1'), "is no file of a cgroup"),
        (('workload = "true"', 'workload = "true"\nfiles = ["nothing"]'), "nothing is no file"),
        (('workload = "true"', 'workload = "true"\nfiles = ["workload"]'), "is there already"),
        (("[axis.limit]", "[axis.limit"), "is no TOML"),
    ],
)
def test_a_wrong_matrix_gets_one_clear_error(
    tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    assert change[0] in _GOOD
    with pytest.raises(InputError) as caught:
        _read(tmp_path, _GOOD.replace(*change))
    assert told in caught.value.message
    assert caught.value.slug == "bad-matrix"
    assert caught.value.fix


def test_cgroups_are_made_in_guests_only(tmp_path: Path) -> None:
    """Elsewhere the key would be without effect, and nobody told."""
    text = """
[setup]
kernel.here = true
data = "/tmp"
workload = "true"
cgroup.slow = { "memory.high" = "64M" }
"""
    with pytest.raises(InputError, match="cgroup is for guests, and the kernel is this machine"):
        _read(tmp_path, text)


def test_files_that_repeat_a_name(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "job.fio").write_text(folder)
    text = _GOOD.replace(
        'workload = "true"', 'workload = "true"\nfiles = ["a/job.fio", "b/job.fio"]'
    )
    with pytest.raises(InputError, match=r"job\.fio is there already"):
        _read(tmp_path, text)


def test_no_matrix(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_matrix(tmp_path / "none.toml")
    assert caught.value.slug == "no-matrix"


# The numbers of a lab in one file give the same report as its runs.

_RESULTS_MATRIX = """
runs = 6
title = "two limits"
metrics = ["ops.time*", "ops.left"]
[setup]
kernel.here = true
data = "."
workload = "true"
[axis.limit]
free = {}
low = {}
"""
# Run 6 of low is missing, run 5 of it failed.
_VALUES = {"free": (11, 12, 13, 14, 15, 16), "low": (21, 22, 23, 24)}


@pytest.fixture
def real_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WBSCOPE_SQL_DIR", str(Path(__file__).parents[3] / "sql"))


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """Two cells; what ops.txt says besides is not among the metrics of the matrix."""
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "matrix.toml").write_text(_RESULTS_MATRIX)
    cells = [{"name": name, "values": {"limit": name}} for name in _VALUES]
    told = {"schema": 1, "title": "two limits", "digest": "abc", "wbscope_version": "1"}
    told |= {"axes": {"limit": list(_VALUES)}, "cells": cells}
    (folder / "lab.json").write_text(json.dumps(told))
    for cell, values in _VALUES.items():
        for number, value in enumerate(values, 1):
            run = folder / cell / f"run-{number}"
            run.mkdir(parents=True)
            (run / "meta.json").write_text('{"schema": 1}')
            (run / "ops.txt").write_text(f"time {value} s\nleft {value % 3} count\nother 1 count\n")
    failed = folder / "low" / "run-5.failed"
    failed.mkdir()
    (failed / "why.json").write_text('{"why": "the workload exited with code 2"}')
    return folder


def _whole(cli: Cli, *words: str) -> str:
    done = cli("lab", "report", *words)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.usefixtures("real_sql")
@pytest.mark.parametrize("style", [(), ("--style", "lkml"), ("--style", "markdown"), ("--json",)])
def test_the_report_is_the_same(
    cli: Cli, lab: Path, tmp_path: Path, style: tuple[str, ...]
) -> None:
    kept = tmp_path / "results.json"
    told = _whole(cli, str(lab), "--save", str(kept), *style)
    assert "exited with code 2" in told
    assert "other" not in told
    assert _whole(cli, str(kept), *style) == told


@pytest.mark.usefixtures("real_sql")
def test_the_numbers_are_those_of_the_runs(cli: Cli, lab: Path, tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    _whole(cli, str(lab), "--save", str(kept))
    rows = json.loads(_whole(cli, str(kept), "--json", "--metric", "ops.time_ns"))["rows"]
    assert {row["cell"]: row["of_runs"] for row in rows} == {
        cell: [value * 1e9 for value in values] for cell, values in _VALUES.items()
    }
    # It is a baseline besides.
    done = cli("compare", str(kept), "--against", str(kept), "--json")
    assert json.loads(done.out)["rows"], done.err


@pytest.mark.usefixtures("real_sql")
def test_a_cell_without_a_value_has_no_line_in_a_picture(
    cli: Cli, lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in lab.glob("low/*/ops.txt"):
        file.write_text(file.read_text().replace("time", "gone"))
    drawn: dict[str, list[str]] = {}

    def save(figure: Figure, *_: object, **__: object) -> None:
        (axes,) = figure.axes
        drawn[axes.get_title("left").split()[2]] = [
            label.get_text().split()[0] for label in axes.get_yticklabels()
        ]

    monkeypatch.setattr(Figure, "savefig", save)
    _whole(cli, str(lab), "-o", str(tmp_path / "pictures"))
    assert drawn == {"ops.time_ns": ["free"]}


@pytest.mark.usefixtures("real_sql")
def test_wrong_files(cli: Cli, lab: Path, tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    _whole(cli, str(lab), "--save", str(kept))
    again = cli("lab", "report", str(lab), "--save", str(kept))
    assert again.code == 2
    line_of(again.err, "error[output-exists]: ", kept)
    two = cli("lab", "report", str(kept), "--cell", "low", "--against", "free")
    assert two.code == 2
    line_of(two.err, "error[", kept)
    document = json.loads(kept.read_text())
    for wrong in (
        {**document, "lab": {**document["lab"], "cells": []}},
        {key: value for key, value in document.items() if key != "lab"},
        {**document, "lab": []},
    ):
        kept.write_text(json.dumps(wrong))
        done = cli("lab", "report", str(kept))
        assert done.code == 3, done.out
        line_of(done.err, "error[no-lab]: ")
    kept.write_text("no json")
    assert cli("lab", "report", str(kept)).code == 3


@pytest.mark.usefixtures("real_sql")
def test_an_output_that_cannot_be(cli: Cli, lab: Path, tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    kept.write_text("mine")
    for option in ("-o", "--save"):
        done = cli("lab", "report", str(lab), option, "x" * 5000)
        assert done.code == 5
        line_of(done.err, "error[cannot-write]: ", "File name too long")
        line_of(done.err, "  fix: ", option)
    for output, code in ((kept, 2), (kept / "pictures", 5), ("/proc/pictures", 5)):
        done = cli("lab", "report", str(lab), "-o", str(output))
        assert done.code == code, done.err
    assert kept.read_text() == "mine"


@pytest.mark.usefixtures("real_sql")
def test_pairs_can_be_left_out(cli: Cli, lab: Path) -> None:
    assert "limit: low against free" in _whole(cli, str(lab), "--pairs", "1")
    assert "against" not in _whole(cli, str(lab), "--pairs", "0")
    done = cli("lab", "report", str(lab), "--pairs", "0", "--json")
    assert (done.code, "--pairs" in done.err) == (2, True)
