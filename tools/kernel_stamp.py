#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far were these kernel patches tested?  kernel-tracepoints/tested says it of each series.

usage: kernel_stamp.py --check | --write [--booted "6.1 6.12 7.2"]

A line is: series, level, sha256 of its patches and of the kernel's configuration, date. Levels:
applied (without fuzz, checkpatch finds nothing), compiled (warnings are errors), booted (the events
agree with everything else in the guest). `make kernel-test` writes the file when all of it passed;
it compiles every series and boots some. CI runs it when a series is another than that in the file.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import sys
from pathlib import Path
from typing import NamedTuple

_TOP = Path(__file__).resolve().parents[1] / "kernel-tracepoints"
_FILE = _TOP / "tested"
_LEVELS = ("applied", "compiled", "booted")
_NONE = 3


class Noted(NamedTuple):
    """What passed, of which patches, when."""

    level: str
    sha256: str
    date: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument(
        "--check", action="store_true", help="exit code 1 when one is another, 3 when none was"
    )
    choice.add_argument("--write", action="store_true", help="note that these passed")
    parser.add_argument("--booted", default="", help="the series that were booted, too")
    arguments = parser.parse_args()
    if arguments.write:
        booted = arguments.booted.split()
        if unknown := sorted(set(booted) - set(all_series())):
            parser.error(f"no such series: {', '.join(unknown)}")
        _write(booted)
        return 0
    return _check()


def all_series(top: Path | None = None) -> list[str]:
    """The kernels that there are patches for, oldest first."""
    names = (path.name for path in ((top or _TOP) / "series").iterdir() if path.is_dir())
    return sorted(names, key=lambda name: [int(number) for number in name.split(".")])


def series_hash(series: str, top: Path | None = None) -> str:
    """Of the names and contents of its patches, and of the configuration of all kernels."""
    top = top or _TOP
    total = hashlib.sha256()
    for folder in (f"series/{series}", "kconfig"):
        for path in sorted((top / folder).rglob("*")):
            if path.is_file():
                total.update(f"{path.relative_to(top)}\0".encode())
                total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _check() -> int:
    noted = _noted()
    changed = 0
    for series in all_series():
        known = noted.get(series)
        if known is None:
            print(f"{series}: never passed make kernel-test", file=sys.stderr)
            changed += 1
        elif known.sha256 != series_hash(series):
            told = f"changed since it was {known.level} on {known.date}"
            print(f"{series}: {told}", file=sys.stderr)
            changed += 1
        else:
            more = "" if known.level == _LEVELS[-1] else ", not booted"
            print(f"{series}: as it was {known.level} on {known.date}{more}")
    if not noted:
        return _NONE
    return 1 if changed else 0


def _write(booted: list[str]) -> None:
    """Of patches that are as they were, what was known stays where it is more."""
    noted = _noted()
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    lines = []
    for series in all_series():
        level = "booted" if series in booted else "compiled"
        new = Noted(level, series_hash(series), today)
        old = noted.get(series)
        if old and old.sha256 == new.sha256 and _rank(old) > _rank(new):
            new = old
        lines.append(" ".join((series, *new)) + "\n")
    _FILE.write_text("".join(lines), encoding="utf-8")


def _rank(noted: Noted) -> int:
    return _LEVELS.index(noted.level)


def _noted() -> dict[str, Noted]:
    if not _FILE.exists():
        return {}
    lines = (line.split() for line in _FILE.read_text(encoding="utf-8").splitlines())
    found = {}
    for words in lines:
        if len(words) != 4 or words[1] not in _LEVELS:
            sys.exit(f"{_FILE}: {' '.join(words)}: no line of series, level, sha256 and date")
        found[words[0]] = Noted(*words[1:])
    return found


if __name__ == "__main__":
    sys.exit(main())
