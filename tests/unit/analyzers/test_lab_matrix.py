# SPDX-License-Identifier: Apache-2.0
"""A matrix of experiments: what it makes of a file, and what it says of a wrong one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.runs import REPOSITORY
from wbscope.base.errors import InputError
from wbscope.lab.matrix import Matrix, interleaved, read_matrix

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
