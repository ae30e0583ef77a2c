# SPDX-License-Identifier: Apache-2.0
"""A matrix of experiments: read from TOML, checked whole before anything is booted.

runs = 6
[setup]                       what all runs have
workload = "dd if=/dev/zero of=$DATA/file bs=1M count=200"
[axis.kernel]                 each axis: names, and what each changes in the setup
"6.1" = { kernel.debian = "bookworm" }
"7.2" = { kernel.debian = "sid" }
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

from wbscope.base.errors import InputError, UsageError
from wbscope.base.system import read_toml, starting_file
from wbscope.base.units import parse_duration, parse_kib
from wbscope.lab.kernels import Disk, Kernel, Setup
from wbscope.record.settings import is_sysctl_name

_KEYS = ("runs", "seed", "limit", "boots", "title", "metrics", "setup", "axis")
_SETUP_KEYS = ("kernel", "memory", "cpus", "disk", "swap", "data", "sysctl", "cgroup", "prepare",
               "workload", "programs", "files", "modules", "append", "profile", "events", "sync",
               "buffer")  # fmt: skip
_DISK_KEYS = ("at", "size", "filesystem", "bytes_per_s", "iops", "read_bytes_per_s", "read_iops",
              "mkfs", "options")  # fmt: skip
# What an axis changes piece by piece; other keys it replaces.
_MERGED = ("sysctl", "cgroup")
_FILESYSTEMS = ("ext4", "xfs", "btrfs", "none")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
MOST_RUNS, _MOST_CELLS, _MOST_JOBS = 1000, 10_000, 100_000
_MOST_KIB = 64 << 30  # a disk of 64 TiB
_MOST_SECONDS = 7 * 24 * 3600
_NS_PER_S = 10**9
_GUEST_ONLY = ("memory", "cpus", "disk", "swap", "cgroup", "modules", "append", "programs")
_EXAMPLES = {"metrics": "throttle_summary.*"}
_EXAMPLE = """\
runs = 6
[setup]
kernel.debian = "bookworm"
disk = [{ bytes_per_s = "20M" }]
workload = "dd if=/dev/zero of=$DATA/file bs=1M count=200"
[axis.limit]
free = {}
low.sysctl = { "vm.dirty_bytes" = "16M" }
"""
# Files of the lab's own in $LAB.
_TAKEN = ("main", "record", "prepare", "workload")


@dataclass(frozen=True)
class Cell:
    """One combination: a name for each axis, and the setup that they make together."""

    values: dict[str, str]
    setup: Setup

    @property
    def name(self) -> str:
        """As its folder is called."""
        return ",".join(self.values.values()) or "all"


@dataclass(frozen=True)
class Matrix:
    """All cells, and how their runs are made.

    limit_s  one run may take so long, from boot to end
    boots    a guest that does not come up, or dies, is booted so often
    digest   of what the cells mean: runs of another digest are other experiments
    """

    path: Path
    title: str
    runs: int
    seed: int
    limit_s: float
    boots: int
    axes: dict[str, tuple[str, ...]]
    cells: tuple[Cell, ...]
    digest: str


def read_matrix(path: Path) -> Matrix:
    """Raises: InputError with the key that is wrong, what was wanted, and an example."""
    try:
        document = read_toml(path)
    except OSError as error:
        raise InputError(
            "no-matrix", str(path), f"cannot be read: {error.strerror or error}",
            fix=starting_file(path, _EXAMPLE),
        ) from error  # fmt: skip
    except ValueError as error:
        raise InputError(
            "bad-matrix", str(path), f"is no TOML: {error}", fix="runs = 6    # NAME = VALUE"
        ) from error
    return _Reader(path).matrix(document)


class _Reader:
    """Knows the file, for errors."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def matrix(self, document: Mapping[str, Any]) -> Matrix:
        self._check_keys("the matrix", document, _KEYS)
        base = self._table("setup", document.get("setup", {}))
        axes = self._axes(document.get("axis", {}))
        cells = []
        for names in product(*axes.values()):
            chosen = dict(zip(axes, names, strict=True))
            where = ", ".join(f"{axis} {name}" for axis, name in chosen.items()) or "setup"
            table = dict(base)
            for axis, name in chosen.items():
                table = _merged(table, axes[axis][name])
            cells.append(Cell(chosen, self._setup(where, table)))
        runs = self._count(document, "runs", 1, most=MOST_RUNS)
        if runs * len(cells) > _MOST_JOBS:
            told = f"runs is {runs} of {len(cells)} cells, wanted {_MOST_JOBS} together at most"
            self._fail(told, "runs = 6")
        limit = self._duration(document, "limit", "5m")
        if limit > _MOST_SECONDS:
            told = f"limit is {limit:g} s, wanted {_MOST_SECONDS} at most"
            self._fail(told, 'limit = "5m"')
        self._texts("the matrix", document, "metrics")  # those that a report tells
        return Matrix(
            path=self._path,
            title=self._text("the matrix", document, "title", self._path.stem),
            runs=runs,
            seed=self._count(document, "seed", 0, least=0),
            limit_s=limit,
            boots=self._count(document, "boots", 3, most=10),
            axes={axis: tuple(names) for axis, names in axes.items()},
            cells=tuple(cells),
            digest=_digest(cells, self._path.parent),
        )

    def _axes(self, value: Any) -> dict[str, dict[str, Mapping[str, Any]]]:
        axes: dict[str, dict[str, Mapping[str, Any]]] = {}
        cells = 1
        for axis, names in self._table("axis", value).items():
            self._check_name("axis", axis)
            table = self._table(f"axis.{axis}", names)
            if not table:
                self._fail(f"axis.{axis} is empty", f"axis.{axis}.default = {{}}")
            for name, change in table.items():
                self._check_name(f"axis.{axis}", name)
                where = f"axis.{axis}.{name}"
                self._check_keys(where, self._table(where, change), _SETUP_KEYS)
            axes[axis] = table
            cells *= len(table)
        if cells > _MOST_CELLS:
            self._fail(f"makes {cells} cells, wanted {_MOST_CELLS} at most", "runs = 1")
        return axes

    def _setup(self, where: str, table: Mapping[str, Any]) -> Setup:
        self._check_keys(where, table, _SETUP_KEYS)
        kernel = self._kernel(where, table.get("kernel"))
        if not kernel.is_guest:
            for key in _GUEST_ONLY:
                if key in table:
                    told = f"{where}: {key} is for guests, and the kernel is {kernel}"
                    self._fail(told, 'kernel.debian = "bookworm"')
            if "data" not in table:
                told = f"{where}: data is missing, where the workload writes on {kernel}"
                self._fail(told, 'data = "/mnt/test"')
        elif "data" in table:
            self._fail(
                f"{where}: data is not for guests, which have disks", 'disk = [{at = "data"}]'
            )
        workload = self._text(where, table, "workload", "")
        if not workload.strip():
            fix = 'workload = "dd if=/dev/zero of=$DATA/file bs=1M count=200"'
            self._fail(f"{where}: there is no workload", fix)
        return Setup(
            kernel=kernel,
            workload=workload,
            prepare=self._text(where, table, "prepare", ""),
            memory_kib=self._size(where, table, "memory", "512M"),
            cpus=self._count(table, "cpus", 2, most=64),
            disks=self._disks(where, table.get("disk", [{}])) if kernel.is_guest else (),
            swap_kib=self._size(where, table, "swap", "0"),
            data=table.get("data"),
            sysctls=self._sysctls(where, table.get("sysctl", {})),
            cgroups=self._cgroups(where, table.get("cgroup", {})),
            programs=self._texts(where, table, "programs"),
            files=tuple(self._files(where, self._texts(where, table, "files"))),
            modules=self._texts(where, table, "modules"),
            append=self._text(where, table, "append", ""),
            profile=self._text(where, table, "profile", Setup.profile),
            events=self._texts(where, table, "events"),
            sync=self._truth(where, table, "sync"),
            buffer_kib=self._size(where, table, "buffer", "0") or None,
        )

    def _kernel(self, where: str, value: Any) -> Kernel:
        example = 'kernel.debian = "bookworm"'
        if value is None:
            self._fail(f"{where}: no kernel is named", example)
        table = self._table(f"{where}: kernel", value)
        self._check_keys(f"{where}: kernel", table, [one.name for one in fields(Kernel)])
        sources = [key for key in ("debian", "folder", "image", "here", "ssh") if table.get(key)]
        if len(sources) != 1:
            told = f"{where}: kernel has {' and '.join(sources) or 'no source'}"
            self._fail(f"{told}, wanted one of debian, folder, image, here, ssh", example)
        for key, text in table.items():
            if not isinstance(text, bool if key == "here" else str):
                self._fail(f"{where}: kernel.{key} is {text!r}", example)
        for key in ("folder", "image", "modules"):
            if key in table:
                there = (self._path.parent / table[key]).resolve()
                # An image may have to be built first; the check before the first run tells.
                if key != "image" and not there.exists():
                    self._fail(f"{where}: kernel.{key}: {there} does not exist", example)
                table = {**table, key: str(there)}
        return Kernel(**table)

    def _disks(self, where: str, value: Any) -> tuple[Disk, ...]:
        if not isinstance(value, list):
            self._fail(f"{where}: disk is no list of tables", 'disk = [{bytes_per_s = "20M"}]')
        disks = []
        for number, entry in enumerate(value, 1):
            named = f"{where}: disk {number}"
            table = self._table(named, entry)
            self._check_keys(named, table, _DISK_KEYS)
            kind = self._text(named, table, "filesystem", "ext4")
            if kind not in _FILESYSTEMS:
                told = f"{named}: filesystem {kind!r} is none of {', '.join(_FILESYSTEMS)}"
                self._fail(told, 'filesystem = "ext4"')
            usual = "" if kind == "none" else f"data{number if number > 1 else ''}"
            at = self._text(named, table, "at", usual)
            if at and _NAME.fullmatch(at) is None:
                self._fail(f"{named}: at = {at!r} is no name of a folder", 'at = "data"')
            disks.append(
                Disk(
                    at=at,
                    size_kib=self._size(named, table, "size", "2G"),
                    filesystem=kind,
                    bytes_per_s=self._size(named, table, "bytes_per_s", "0") << 10,
                    iops=self._count(table, "iops", 0, least=0),
                    read_bytes_per_s=self._size(named, table, "read_bytes_per_s", "0") << 10,
                    read_iops=self._count(table, "read_iops", 0, least=0),
                    mkfs=self._texts(named, table, "mkfs"),
                    options=self._text(named, table, "options", ""),
                )
            )
        places = [disk.at for disk in disks if disk.at]
        if len(set(places)) < len(places):
            self._fail(f"{where}: two disks are mounted at the same place", 'at = "data2"')
        return tuple(disks)

    def _sysctls(self, where: str, value: Any) -> dict[str, str]:
        found = {}
        for name, number in self._table(f"{where}: sysctl", value).items():
            if not is_sysctl_name(name) or isinstance(number, dict):
                told = f"{where}: sysctl {name} is no name in quotes with a value"
                self._fail(told, 'sysctl = { "vm.dirty_bytes" = "16M" }')
            found[name] = _plain(number)
        return found

    def _cgroups(self, where: str, value: Any) -> dict[str, dict[str, str]]:
        found = {}
        for name, limits in self._table(f"{where}: cgroup", value).items():
            self._check_name(f"{where}: cgroup", name)
            table = self._table(f"{where}: cgroup.{name}", limits)
            for file, text in table.items():
                if re.fullmatch(r"[a-z]+\.[a-z_.]+", file) is None or isinstance(text, dict):
                    told = f"{where}: cgroup.{name}: {file} is no file of a cgroup in quotes"
                    self._fail(told, f'cgroup.{name} = {{ "memory.high" = "64M" }}')
            found[name] = {file: _plain(text) for file, text in table.items()}
        return found

    def _files(self, where: str, names: Iterable[str]) -> Iterable[str]:
        known = set(_TAKEN)
        for name in names:
            path = (self._path.parent / name).resolve()
            if path.name in known:
                told = f"{where}: files: {path.name} is there already, in $LAB"
                self._fail(f"{told} (with {', '.join(_TAKEN)})", 'files = ["job.fio"]')
            known.add(path.name)
            if not path.is_file():
                self._fail(f"{where}: files: {path} is no file", 'files = ["job.fio"]')
            yield str(path)

    def _table(self, where: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._fail(f"{where} is no table", "[setup]")
        return value

    def _text(self, where: str, table: Mapping[str, Any], key: str, usual: str) -> str:
        value = table.get(key, usual)
        if not isinstance(value, str):
            self._fail(f"{where}: {key} is {value!r}, wanted a text", f'{key} = "{usual}"')
        if "\0" in value:
            self._fail(f"{where}: {key} has a byte 0", f'{key} = "{usual}"')
        return value

    def _texts(self, where: str, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            example = _EXAMPLES.get(key, "fio")
            self._fail(f"{where}: {key} is no list of texts", f'{key} = ["{example}"]')
        return tuple(value)

    def _truth(self, where: str, table: Mapping[str, Any], key: str) -> bool:
        value = table.get(key, False)
        if not isinstance(value, bool):
            self._fail(f"{where}: {key} is {value!r}, wanted true or false", f"{key} = true")
        return value

    def _count(
        self, table: Mapping[str, Any], key: str, usual: int, *, least: int = 1, most: int = 1 << 40
    ) -> int:
        value = table.get(key, usual)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self._fail(f"{key} is {value!r}, wanted {least} to {most}", f"{key} = {usual}")
        return value

    def _size(self, where: str, table: Mapping[str, Any], key: str, usual: str) -> int:
        value = self._text(where, table, key, usual)
        if value == "0":
            return 0
        try:
            size = parse_kib(key, value)
        except UsageError as error:
            self._fail(f"{where}: {key} = {value!r} {error.message}", f'{key} = "64M"')
        if size > _MOST_KIB:
            most = f"{_MOST_KIB >> 20}G"
            self._fail(f"{where}: {key} = {value!r}, wanted {most} at most", f'{key} = "64M"')
        return size

    def _duration(self, table: Mapping[str, Any], key: str, usual: str) -> float:
        value = self._text("the matrix", table, key, usual)
        try:
            return parse_duration(key, value, positive=True) / _NS_PER_S
        except UsageError as error:
            self._fail(f"{key} = {value!r} {error.message}", f'{key} = "{usual}"')

    def _check_name(self, where: str, name: str) -> None:
        if _NAME.fullmatch(name) is None:
            told = f"{where}: {name!r} cannot name a folder, wanted letters, digits and ._+-"
            self._fail(told, '"no-limit" = {}')

    def _check_keys(self, where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
        known = list(known)
        for key in table:
            if key not in known:
                close = difflib.get_close_matches(key, known, 1) or known[:1]
                told = f"{where} has the unknown key {key!r}, wanted one of {', '.join(known)}"
                self._fail(told, f"{close[0]} = ...")

    def _fail(self, message: str, example: str) -> NoReturn:
        raise InputError("bad-matrix", str(self._path), message, fix=f"{example}    # in the file")


def _merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The setup with what a name of an axis changes."""
    made = dict(base)
    for key, value in change.items():
        if key in _MERGED and isinstance(value, dict) and isinstance(made.get(key), dict):
            value = _joined(made[key], value)
        made[key] = value
    return made


def _joined(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(base)
    for key, value in change.items():
        both = isinstance(value, dict) and isinstance(made.get(key), dict)
        made[key] = _joined(made[key], value) if both else value
    return made


def _plain(value: object) -> str:
    """As the kernel reads it: 16M is a number of bytes, in "data wbps=16M" too."""
    text = str(int(value)) if isinstance(value, bool) else str(value)
    shift = {"K": 10, "M": 20, "G": 30}
    return re.sub(
        r"(?<![^=])([0-9]{1,9})([KMG])(?!\S)",
        lambda match: str(int(match[1]) << shift[match[2]]),
        text,
    )


def _digest(cells: Iterable[Cell], folder: Path) -> str:
    """Of what the cells are; with the content of files, without the folder's own name."""
    base = folder.resolve()
    told = []
    for cell in cells:
        made = {one.name: getattr(cell.setup, one.name) for one in fields(Setup)}
        kernel = cell.setup.kernel
        path = kernel.folder or kernel.image
        made["kernel"] = os.path.relpath(path, base) if path else str(kernel)
        made["disks"] = [vars(disk) for disk in cell.setup.disks]
        made["files"] = [
            [Path(name).name, hashlib.sha256(Path(name).read_bytes()).hexdigest()]
            for name in cell.setup.files
        ]
        told.append([cell.values, made])
    text = json.dumps(told, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Job:
    """One run: its cell, and its number in the cell from 1 on."""

    cell: Cell
    number: int

    @property
    def name(self) -> str:
        """As its folder is called below the lab's."""
        return f"{self.cell.name}/run-{self.number}"


def interleaved(matrix: Matrix) -> Iterator[Job]:
    """A B C, C B A, and so on: each round is shuffled and the next one is its reverse.

    Every cell is as early in two rounds together as any other, so a drift that is
    steady falls out of a difference of two cells.  The seed makes it the same again.
    """
    chance = random.Random(matrix.seed)
    order: list[Cell] = []
    for number in range(1, matrix.runs + 1):
        if number % 2:
            order = list(matrix.cells)
            chance.shuffle(order)
        else:
            order.reverse()
        for cell in order:
            yield Job(cell, number)
