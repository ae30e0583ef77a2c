#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that each program that tests, tools and the package start comes from a package that
the Makefile installs; tools/programs.toml says which package has it.

usage: check_programs.py [--installed [LIST...]]   and that the packages of these lists (of all)
                                                   have them, on this machine

It reads the sources: Python by its syntax tree, shell scripts and the Makefile by their words.
Prints "path: what is wrong; how to put it right" for each finding and exits 1 when there is any.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from programs_python import programs_in_python
from programs_shell import programs_in_makefile, programs_in_shell

ROOT = Path(__file__).resolve().parents[1]
TABLE = "tools/programs.toml"
_SHELL_LINE = re.compile(r"#! ?/\S*?(?:/env +)?\b(?:ba|da)?sh\b")
_LIST = re.compile(r"^(\w*DEBS|BROWSER)\s*:?=\s*(.*)$", re.MULTILINE)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What starts a program from one's own folder is no package's.
_OF_THE_PROJECT = ("./", ".venv/", "build/", "tools/", "examples/", "tests/")


def package_lists(makefile: str) -> dict[str, list[str]]:
    """The Makefile's lists of Debian packages by name."""
    return {
        name: words.split("#")[0].split()
        for name, words in _LIST.findall(makefile.replace("\\\n", " "))
    }


def source_files() -> dict[str, str]:
    """Path and text of what git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found = {}
    for name in sorted(set(listed.split("\0")) - {""}):
        path = ROOT / name
        if path.suffix in (".py", ".sh", "") and path.is_file():
            data = path.read_bytes()
            if path.suffix or name.endswith("Makefile") or data.startswith(b"#!"):
                found[name] = data.decode("utf-8", "replace")
    return found


def programs_of(path: str, text: str) -> tuple[set[str], set[str]]:
    """What the file starts, and what cannot be told."""
    if path.endswith(".py"):
        return programs_in_python(text)
    if path.endswith("Makefile"):
        return programs_in_makefile(text), set()
    if path.endswith(".sh") or _SHELL_LINE.match(text):
        return programs_in_shell(text), set()
    return set(), set()


def _package(entry: str | Mapping[str, str]) -> tuple[str, str]:
    """The one in a list, and the one that has the program."""
    return (entry, entry) if isinstance(entry, str) else (entry["package"], entry["of"])


def lists_for(path: str, scopes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names of the lists that are installed before this file is run: the first scope that fits."""
    for scope in scopes:
        if any(path.startswith(start) for start in scope["paths"]):
            return list(scope["lists"])
    return []


def check(
    files: Mapping[str, str], table: Mapping[str, Any], lists: Mapping[str, list[str]]
) -> Iterator[str]:
    """A line for each finding."""
    packages = {name: _package(entry)[0] for name, entry in table["packages"].items()}
    known = {*table["base"], *table["own"], *table["elsewhere"]}
    told = {(entry["file"], entry["expression"]): entry for entry in table.get("told", [])}
    used: set[str] = set()
    used_told = set()
    for path, text in files.items():
        if any(path.startswith(start) for start in table["skip"]["paths"]):
            continue
        programs, unknown = programs_of(path, text)
        for expression in sorted(unknown):
            if entry := told.get((path, expression)):
                used_told.add((path, expression))
                programs = {*programs, *entry["programs"]}
            else:
                yield (
                    f"{path}: starts {expression}, and the text does not tell what that is; "
                    f"write the name out, or add a [[told]] to {TABLE}"
                )
        for program in sorted(programs):
            name = program if program.startswith("/") else program.rpartition("/")[2]
            if program.startswith(_OF_THE_PROJECT) and name not in packages:
                continue
            used.add(name)
            if name in known:
                continue
            if name not in packages:
                yield f"{path}: starts {name}, which {TABLE} does not have; add its Debian package"
                continue
            wanted = lists_for(path, table["scope"])
            if not any(packages[name] in lists.get(one, []) for one in wanted):
                yield (
                    f"{path}: starts {name} of the Debian package {packages[name]}, which is not in"
                    f" {' or '.join(wanted) or 'a list'}; add it to one in the Makefile"
                )
    for name in sorted({*packages, *known} - used):
        yield f"{TABLE}: {name} is started nowhere; take it out"
    for path, expression in sorted(set(told) - used_told):
        yield f"{TABLE}: {path} does not start {expression}; take it out"


def check_installed(table: Mapping[str, Any], lists: Mapping[str, list[str]]) -> Iterator[str]:
    """Each program is where its package was installed, and belongs to it."""
    listed = {package for packages in lists.values() for package in packages}
    owners = dict(table["base"])
    for name, entry in table["packages"].items():
        package, owner = _package(entry)
        if package in listed:
            owners[name] = owner
    for name, package in owners.items():
        found = shutil.which(name, path=_PATH)
        if found is None:
            yield f"{TABLE}: found no {name}, which is told to be in the Debian package {package}"
        elif package not in (own := _owners(found)):
            yield f"{TABLE}: {name} is in {' '.join(sorted(own)) or 'no package'}, not in {package}"
    for name, package in table["base"].items():
        said = _said("dpkg-query", "-W", "-f", "${Essential} ${Priority}", package)
        if "yes" not in said and "required" not in said:
            yield f"{TABLE}: {package} with {name} is not in every Debian: {said or 'not there'}"


def _owners(program: str) -> set[str]:
    """Packages that have the file; a link to what an alternative is, and /bin for /usr/bin."""
    real = str(Path(program).resolve())
    names = {program, real, real.removeprefix("/usr"), program.removeprefix("/usr")}
    lines = "".join(_said("dpkg", "-S", name) for name in sorted(names)).splitlines()
    return {
        package.split(":")[0]
        for line in lines
        if not line.startswith("diversion ")
        for package in line.partition(": ")[0].split(", ")
    }


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description="Where the programs come from that are started.")
    parser.add_argument(
        "--installed", nargs="*", metavar="LIST", help="of these lists (all), on this machine"
    )
    arguments = parser.parse_args()
    with (ROOT / TABLE).open("rb") as file:
        table = tomllib.load(file)
    lists = package_lists((ROOT / "Makefile").read_text(encoding="utf-8"))
    findings = list(check(source_files(), table, lists))
    if arguments.installed is not None:
        chosen = arguments.installed or list(lists)
        findings += check_installed(table, {name: lists[name] for name in chosen})
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
