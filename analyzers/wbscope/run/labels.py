# SPDX-License-Identifier: Apache-2.0
"""Names of devices, cgroups and runs, and answers of several runs in one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from wbscope.base.errors import Argument, Phrase, UsageError
from wbscope.base.result import Column, Result
from wbscope.base.system import absolute
from wbscope.library.engine import Engine
from wbscope.library.own_sql import cgroup_paths, mounted_devices

# Columns whose values may have names; so may those whose names end in one: holder_bdi.
_NAMED = ("bdi", "device", "cgroup_ino")

# sda1, nvme0n1p1; exports of NFS (0:45) are no partitions.
_PARTITION = re.compile(r"^(?:(.*\d)p\d+|(.*\D)\d+)$")
_DISK = re.compile(r"[1-9]\d*:\d+")
_ROOT = "/sys/fs/cgroup"
_SHOWN = 8


@dataclass(frozen=True)
class Names:
    """`devices` and `mounts` by bdi, as events call it; paths of cgroups by inode.

    What is on a disk has names of its own: of its partitions.
    """

    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    mounts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cgroups: Mapping[int, str] = field(default_factory=dict)

    def labels(self) -> dict[str, dict[str | int, str]]:
        """What tables show in place of a value, by the end of the column's name: vda (/data)."""
        bdis: dict[str | int, str] = {bdi: self._bdi(bdi) for bdi in self.devices}
        cgroups: dict[str | int, str] = dict(self.cgroups.items())
        return dict(zip(_NAMED, (bdis, bdis, cgroups), strict=True))

    def label(self, column: str, value: object) -> str | None:
        """What a table shows in place of one value of a column of this name."""
        if column.endswith("cgroup_ino"):
            return self.cgroups.get(value) if isinstance(value, int) else None
        if column.endswith(_NAMED) and value in self.devices:
            return self._bdi(str(value))
        return None

    def device(self, bdi: str) -> str:
        """Of several partitions the disk's name, else the first one."""
        names = self.devices[bdi]
        if len(names) > 1 and _DISK.fullmatch(bdi):
            disks = {_PARTITION.sub(r"\1\2", name) for name in names}
            if len(disks) == 1:
                return disks.pop()
        return names[0]

    def bdi(self, text: str) -> str:
        """The bdi of a number, device (vda, /dev/vda) or mount point.

        What the run has no name for is taken as events would have it.
        Raises: UsageError.
        """
        if text in self.devices:
            return text
        device = text.removeprefix("/dev/")
        found = {bdi for bdi, names in self.devices.items() if device in (*names, self.device(bdi))}
        found |= {bdi for bdi, places in self.mounts.items() if text in places}
        if len(found) == 1:
            return found.pop()
        if not found and not text.startswith("/"):
            return text
        many = "is the name of several" if found else "is no mount point or device of this run"
        known = [self._bdi(bdi) + f" = {bdi}" for bdi in sorted(found or self.devices)]
        raise UsageError(
            "unknown-bdi", Phrase(Argument("bdi", text)), many, have=_some(known),
            fix=Phrase(Argument("bdi", min(found or self.devices, default="8:0"))),
        )  # fmt: skip

    def cgroup(self, text: str) -> int:
        """The inode of a cgroup by its path, or by the end of it.

        Raises: UsageError.
        """
        path = "/" + text.removeprefix(_ROOT).strip("/")
        found = {ino for ino, known in self.cgroups.items() if known == path}
        if not found:
            found = {ino for ino, known in self.cgroups.items() if known.endswith(path)}
        if len(found) == 1:
            return found.pop()
        told = "is the end of several cgroups" if found else "is no cgroup of this run"
        paths = [f"{path} = {ino}" for ino, path in sorted(self.cgroups.items())]
        raise UsageError(
            "unknown-cgroup", Phrase(Argument("cgroup", text)), told, have=_some(paths),
            fix=Phrase(Argument("cgroup", 1)),
        )  # fmt: skip

    def _bdi(self, bdi: str) -> str:
        places = self.mounts.get(bdi, ())
        more = ", ..." if len(places) > 1 else ""
        device = self.device(bdi)
        return f"{device} ({places[0]}{more})" if places else device


def has_named(columns: Iterable[str]) -> bool:
    """Whether one of the columns may hold what has a name."""
    return any(column.endswith(_NAMED) for column in columns)


def names_of(engine: Engine) -> Names:
    """From the files `bdis` or `mounts` of the run folder, and its cgroups."""
    devices: dict[str, dict[str, None]] = {}  # each name once, in order
    mounts: dict[str, list[str]] = {}
    for bdi, device, place in mounted_devices(engine.facts, engine.shown):
        devices.setdefault(bdi, {})[device] = None
        mounts.setdefault(bdi, []).append(place)
    paths = cgroup_paths(engine.facts, engine.shown)
    cgroups = {ino: "/" + path.removeprefix(_ROOT).strip("/") for ino, path in paths.items()}
    return Names(_fixed(devices), _fixed(mounts), cgroups)


def _fixed(lists: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(values) for key, values in lists.items()}


def _some(texts: list[str]) -> str:
    if not texts:
        return "no names: its folder has none of the files bdis, mounts, cgroups"
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more


_RUN = Column("run", "TEXT", "run that the row is of: the shortest name that tells it apart")


def short_names(runs: Sequence[str]) -> list[str]:
    """As many last parts of each path as no other one ends in."""
    parts = [Path(os.path.normpath(absolute(Path(run)))).parts for run in runs]
    names = []
    for run, mine in zip(runs, parts, strict=True):
        others = [theirs for theirs in parts if theirs is not mine]
        size = next(
            (n for n in range(1, len(mine) + 1) if all(o[-n:] != mine[-n:] for o in others)), None
        )
        if size is None:
            raise UsageError(
                "same-run",
                run,
                "is given twice, wanted each run once",
                fix="leave it out once",
            )
        names.append(os.path.join(*mine[-size:]))
    return names


def joined(answers: Sequence[tuple[str, Result]]) -> Result:
    """One result with the column `run` first; warnings say which run they are of."""
    first = answers[0][1]
    return Result(
        name=first.name,
        columns=(_RUN.name, *first.columns),
        units=first.units,
        rows=[(run, *row) for run, result in answers for row in result.rows],
        warnings=tuple(
            replace(notice, run=run) for run, result in answers for notice in result.warnings
        ),
        fields=(_RUN, *first.fields),
        start_ns=0 if all(result.start_ns == 0 for _, result in answers) else None,
        labels=_common([result for _, result in answers]),
        keys=(_RUN.name, *first.keys),
        first=first.first,
    )


def _common(results: Sequence[Result]) -> dict[str, dict[str | int, str]]:
    """Names that mean the same in all runs with such a value; others stay as they are."""
    common: dict[str, dict[str | int, str]] = {}
    for end in {end for result in results for end in result.labels}:
        values = [(result, _values(result, end)) for result in results]
        for value in set().union(*(held for _, held in values)):
            names = {r.labels.get(end, {}).get(value) for r, held in values if value in held}
            if len(names) == 1 and (name := names.pop()) is not None:
                common.setdefault(end, {})[value] = name
    return common


def _values(result: Result, end: str) -> set[str | int]:
    places = [i for i, name in enumerate(result.columns) if f"_{name}".endswith(f"_{end}")]
    return {row[place] for row in result.rows for place in places if row[place] is not None}
