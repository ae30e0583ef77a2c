#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write what a release is made of as a CycloneDX 1.6 document.

usage: make_sbom.py [--root FOLDER] [-o FILE]    by a Python with what tools/locks/test.txt has
       make_sbom.py --inside ...    only what is inside the wheel, which has it as PEP 770 says

In it: the Python libraries of the base install and of each extra, as tools/locks has them, with
hashes; the C and C++ libraries inside the program, whose versions are those of the development
packages below the root (of the wheel, else of this machine); and uPlot, inside the pages.
Exit code 5: a library or its version is not there.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[1]
OF_SPARK = ("pyspark", "py4j")
OF_WHEEL = ROOT / f"build/wheel-parts/{platform.machine()}/root"
# The .pc file of each C library that CMakeLists.txt links, its name, its licence.
LINKED = {
    "libtraceevent": ("libtraceevent", "LGPL-2.1-only"),
    "libzstd": ("zstd", "BSD-3-Clause OR GPL-2.0-only"),
    "sqlite3": ("sqlite", "blessing"),
    "zlib": ("zlib", "Zlib"),
}
# Only headers of these are compiled in.
HEADERS = {"libxxhash": ("xxhash", "BSD-2-Clause")}
PROTOZERO = ("protozero", "BSD-2-Clause AND Apache-2.0")
# Of libraries that say it in words only, or not in the files that pip keeps.
LICENCES = {
    "py4j": "BSD-3-Clause",
    "pyspark": "Apache-2.0",
    "contourpy": "BSD-3-Clause",
    "cycler": "BSD-3-Clause",
    "perfetto": "Apache-2.0",
    "protobuf": "BSD-3-Clause",
    "shellingham": "ISC",
    "viztracer": "Apache-2.0",
}
_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}


# They build; nothing of them is in what is built.
BUILDERS = ("pathspec", "scikit-build-core")


class SbomError(Exception):
    """Something is not known; told in one line."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=Path, default=OF_WHEEL if OF_WHEEL.is_dir() else Path("/"))
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--inside", action="store_true")
    arguments = parser.parse_args()
    output = arguments.output or ROOT / f"build/dist/wbscope-{version()}.cdx.json"
    try:
        text = document(arguments.root, inside_only=arguments.inside)
    except SbomError as error:
        print(f"sbom: {error}", file=sys.stderr)
        return 5
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    print(f"sbom: {output}")
    return 0


def document(root: Path, *, inside_only: bool = False) -> str:
    """The document; of the same sources and root the same bytes."""
    main_component = Component(
        name="wbscope", version=version(), type=ComponentType.APPLICATION,
        purl=PackageURL("pypi", None, "wbscope", version()), bom_ref="wbscope",
        licenses=[LicenseFactory().make_from_string("Apache-2.0 AND MIT")],
    )  # fmt: skip
    base = [] if inside_only else list(python_libraries("base"))
    inside = [*c_libraries(root), uplot()]
    names = {one.name for one in base}
    extras = [] if inside_only else [*python_libraries("setup"), *of_spark()]
    extras = [one for one in extras if one.name not in names]
    bom = Bom(components=[*base, *inside, *extras])
    bom.metadata.component = main_component
    bom.metadata.timestamp = datetime.fromisoformat(_git("log", "-1", "--format=%cI"))
    told = sorted(f"{one.name} {one.version}" for one in bom.components)
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, "\n".join([version(), *told]))
    bom.register_dependency(main_component, [*base, *inside])
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def of_spark() -> Iterator[Component]:
    """The extra that `make setup` does not install; its list has what only tests need, too."""
    return (one for one in python_libraries("fleet") if one.name in OF_SPARK)


def python_libraries(lock: str) -> Iterator[Component]:
    """Those of a list, with the hashes of the files that pip takes; not what is for Windows."""
    text = (ROOT / f"tools/locks/{lock}.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    optional = lock != "base"
    for line in text.splitlines():
        if line.startswith("#") or "sys_platform == 'win32'" in line:
            continue
        name, number = re.match(r"([\w.-]+)==([\w.]+)", line).groups()  # type: ignore[union-attr]
        if name in BUILDERS:
            continue
        yield _component(
            name, number, licence_of(name), PackageURL("pypi", None, name, number),
            scope=ComponentScope.OPTIONAL if optional else ComponentScope.REQUIRED,
            hashes=[
                HashType(alg=HashAlgorithm.SHA_256, content=found)
                for found in re.findall(r"sha256:([0-9a-f]{64})", line)
            ],
        )  # fmt: skip


def licence_of(name: str) -> str | None:
    """As its own metadata have it; None where they do not tell."""
    if name in LICENCES:
        return LICENCES[name]
    try:
        told = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    words = told.get("License-Expression") or told.get("License") or ""
    if words and len(words) < 60 and "\n" not in words:
        return words
    for classifier in told.get_all("Classifier") or ():
        if found := _CLASSIFIERS.get(classifier.rpartition(" :: ")[2]):
            return found
    return None


def c_libraries(root: Path) -> Iterator[Component]:
    """What is inside the program, of the versions below this root."""
    folders = [*(root / "usr/lib").glob("*/pkgconfig"), root / "usr/lib/pkgconfig"]
    for package, (name, licence) in {**LINKED, **HEADERS}.items():
        yield _c_library(name, _pc_version(package, folders), licence)
    header = root / "usr/include/protozero/version.hpp"
    if not header.is_file():
        raise SbomError(f"{header} is not there; apt install libprotozero-dev")
    number = re.findall(r"VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header.read_text(encoding="utf-8"))
    yield _c_library(PROTOZERO[0], ".".join(number), PROTOZERO[1])


def uplot() -> Component:
    """The library for figures inside the pages of reports."""
    source = ROOT / "analyzers/wbscope/render/assets/uPlot.iife.min.js"
    found = re.search(r"\(v([\d.]+)\)", source.read_text(encoding="utf-8")[:200])
    if found is None:
        raise SbomError(f"{source} does not tell its version")
    return _component("uplot", found[1], "MIT", PackageURL("npm", None, "uplot", found[1]))


def _pc_version(package: str, folders: list[Path]) -> str:
    for folder in folders:
        file = folder / f"{package}.pc"
        if file.is_file():
            found = re.search(r"^Version: *(\S+)", file.read_text(encoding="utf-8"), re.MULTILINE)
            if found:
                return found[1]
    raise SbomError(f"no {package}.pc tells a version; make build/.debs installs it")


def _c_library(name: str, number: str, licence: str) -> Component:
    return _component(name, number, licence, PackageURL("generic", None, name, number))


def _component(
    name: str, number: str, licence: str | None, purl: PackageURL, **more: Any
) -> Component:
    licences = [] if licence is None else [LicenseFactory().make_from_string(licence)]
    return Component(
        name=name, version=number, type=ComponentType.LIBRARY, licenses=licences, purl=purl,
        bom_ref=str(purl), **more,
    )  # fmt: skip


def version() -> str:
    text = (ROOT / "analyzers/wbscope/base/version.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.*)"', text, re.MULTILINE)[0]


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
