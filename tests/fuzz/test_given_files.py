# SPDX-License-Identifier: Apache-2.0
"""Damaged files that are given by themselves: runs, or one error that names the file.

WBSCOPE_MEASUREMENT_MUTANTS=20000 .venv/bin/pytest -n 2 tests/fuzz/test_given_files.py
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import pytest
from support.archives import unpacked
from support.mutate_measurements import measurement_mutant
from support.progress import Hang, hang_guard
from wbscope.base.errors import InputError
from wbscope.measure.files import is_measurements, read_measurements
from wbscope.measure.metric import is_sane

_MUTANTS = int(os.environ.get("WBSCOPE_MEASUREMENT_MUTANTS", "600"))
_DATA = unpacked("data") / "measure"
_BASES = sorted(path.name for path in _DATA.iterdir() if path.suffix != ".md")
# Long lines of what expressions look for, each in its own way: what goes through all of it for each
# part takes more than GUARD_SECONDS; to go through it once takes a second.
_LONG = {
    "digits": "1" * 3_000_000,
    "spaces": "1" + " " * 3_000_000 + "x",
    "fields": "1," * 500_000,
    "fields of words": "1,a," * 250_000 + "b",
    "dashes": "a-1" * 300_000,
    "per cent": "Ops a " + "1.00 (0.00%) " * 250_000 + "x",
    "quotes": " > " * 300_000 + "x",
    "a table": "a,b\n" + "1,2\n" * 250_000,
    "headings": "a b c d:\n" * 250_000,
    "times": "real 1.00\n" * 250_000,
    "zsh": "1.00s user " * 250_000,
    "braces": '{"fio version": ' + "[" * 500_000,
    "results": '{"results": [{"command": "a", "times": [' + "1," * 500_000,
    "commas of a number": "Ops a " + "1," * 500_000 + "(0.00%)",
}


def _wrong(path: Path) -> str:
    told = ""
    try:
        with hang_guard():
            found = read_measurements(path) if is_measurements(path) else None
        for part in found.parts.values() if found is not None else ():
            for run in part:
                for metric, value in run.scalars.values():
                    if value is not None and not (math.isfinite(value) and is_sane(value)):
                        told = f"{metric.name} is {value}"
                    elif not metric.name.isprintable():
                        told = f"a metric is named {metric.name!r}"
                for spread in run.scalars.spreads.values():
                    if not (math.isfinite(spread.sd) and spread.sd >= 0 and spread.n >= 2):
                        told = f"a spread is {spread}"
    except InputError as error:
        if error.subject != str(path) or not error.message or not error.fix:
            told = f"an error about {error.subject!r}: {error.message!r}, fix {error.fix!r}"
    except (Hang, Exception) as error:
        told = f"{type(error).__name__}: {str(error)[:200]}"
    return told


@pytest.mark.parametrize("base", _BASES)
def test_mutants(base: str, tmp_path: Path) -> None:
    data = (_DATA / base).read_bytes()
    wrong = []
    for number in range(-(-_MUTANTS // len(_BASES))):
        what, changed = measurement_mutant(base, data, number)
        path = tmp_path / base
        path.write_bytes(changed)
        if told := _wrong(path):
            wrong.append(f"{base} {number}: {told}  [{what[:200]}]")
    assert not wrong, f"{len(wrong)} failures:\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", _LONG)
def test_long_lines_are_read_once(name: str, tmp_path: Path) -> None:
    path = tmp_path / re.sub(r"\W", "-", name)
    for before in ("", "real 1.00\nuser 1.00\nsys 1.00\n", "1,,task-clock,1,1\n"):
        path.write_text(before + _LONG[name])
        assert _wrong(path) == ""
