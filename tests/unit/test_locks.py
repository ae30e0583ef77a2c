# SPDX-License-Identifier: Apache-2.0
"""The lists of what set-up installs: every library that pyproject.toml wants, with hashes."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.runs import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools"))
from make_locks import LOCKS, Lock

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pinned(path: Path) -> dict[str, list[tuple[Requirement, int]]]:
    """Name -> each version (by Python) and its number of hashes."""
    found: dict[str, list[tuple[Requirement, int]]] = {}
    for line in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if line and not line.startswith("#"):
            told = Requirement(line.partition(" --hash")[0].strip())
            found.setdefault(canonicalize_name(told.name), []).append((told, line.count("sha256:")))
    return found


def wanted(lock: Lock) -> list[Requirement]:
    """What it is made for; an extra that names others has theirs."""
    if lock.extras is None:
        return [Requirement(text) for text in lock.others]
    texts, extras = [*PROJECT["dependencies"], *lock.others], list(lock.extras)
    while extras:
        for text in PROJECT["optional-dependencies"][extras.pop()]:
            one = Requirement(text)
            if one.name == "wbscope":
                extras += one.extras
            else:
                texts.append(text)
    return [Requirement(text) for text in texts]


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_every_library_is_pinned(lock: Lock) -> None:
    """After a change of pyproject.toml: make locks."""
    there = pinned(REPOSITORY / lock.path)
    for one in wanted(lock):
        if one.marker is None or one.marker.evaluate():
            versions = there.get(canonicalize_name(one.name), [])
            assert versions, f"{lock.path} lacks {one.name}: make locks"
            assert all(one.specifier.contains(str(told.specifier)[2:]) for told, _ in versions), one
    for versions in there.values():
        assert all(str(told.specifier).startswith("==") and count for told, count in versions)


def test_tests_run_with_what_is_set_up() -> None:
    """make test adds libraries to those of make setup, and changes none."""
    setup, test = (pinned(REPOSITORY / LOCKS[name].path) for name in ("setup", "test"))
    assert {name: [one for one, _ in told] for name, told in setup.items()}.items() <= {
        name: [one for one, _ in told] for name, told in test.items()
    }.items()


def test_spark_changes_no_other_library() -> None:
    """make test installs this list last."""
    test, fleet = (pinned(REPOSITORY / LOCKS[name].path) for name in ("test", "fleet"))
    assert {"pyspark", "py4j", "kubernetes-validate"} <= set(fleet) - set(test)
    for name in set(fleet) & set(test):
        assert [one for one, _ in fleet[name]] == [one for one, _ in test[name]]


def test_make_installs_them() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    installs = re.findall(r"^\t.*(?:/pip install|\$\(PIP\)).*", makefile, re.M)
    assert len(installs) == 6
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)
