#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check how the Python package is built up: imports run downwards only, lazy ones too.

usage: check_imports.py [PACKAGE]    prints "path:line: what is wrong; how to put it right"
                                     for each finding and exits 1 when there is any
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "analyzers" / "wbscope"

# The packages, from the ground up.
LAYERS = (
    "base",
    "stats",
    "library",
    "source",
    "ingest",
    "perfetto",
    "run",
    "explain",
    "timeline",
    "plot",
    "measure",
    "compare",
    "record",
    "doctor",
    "lab",
    "render",
    "ci",
    "viewer",
    "fleet",
    "cli",
)
# The only files beside the packages.
TOP = {"__init__", "__main__"}
# One file a verb there: it may be called as what it calls or shows.
MAY_REPEAT = ("cli.", "render.")

Finding = tuple[Path, int, str, str]


def modules(package: Path) -> dict[str, Path]:
    """Dotted name below the package -> file; a package's own is "name.__init__"."""
    return {
        ".".join(path.relative_to(package).with_suffix("").parts): path
        for path in sorted(package.rglob("*.py"))
    }


def layer(name: str) -> int | None:
    """How high a module stands; the longest entry that names it counts."""
    fits = [one for one in LAYERS if name == one or name.startswith(f"{one}.")]
    return LAYERS.index(max(fits, key=len)) if fits else None


def imports(path: Path, package: str, known: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """The modules of the package that a file imports anywhere in it, with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            below = name.removeprefix(f"{package}.")
            if below == name:
                continue
            while below and below not in known and f"{below}.__init__" not in known:
                below = below.rpartition(".")[0]
            if below:
                yield node.lineno, below


def findings(package: Path = PACKAGE) -> Iterator[Finding]:
    """All that is wrong."""
    known = modules(package)
    graph: dict[str, set[str]] = defaultdict(set)
    for name, path in known.items():
        if "." not in name:
            if name not in TOP:
                yield path, 1, f"{path.name} lies beside the packages", "move it into one"
            continue
        own = layer(name)
        if own is None:
            yield path, 1, f"package {name.split('.')[0]} is in no layer", "add it to LAYERS"
            continue
        for line, other in imports(path, package.name, known):
            graph[name].add(other)
            theirs = layer(other)
            if theirs is not None and theirs > own:
                yield path, line, f"imports {other}, which stands above it", "move what both need"
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        yield known[error.args[1][0]], 1, f"imports go in a circle: {circle}", "cut it"
    counted = Counter(
        path.name
        for name, path in known.items()
        if path.stem not in TOP and not name.startswith(MAY_REPEAT)
    )
    for name, path in known.items():
        if counted[path.name] > 1 and not name.startswith(MAY_REPEAT):
            yield path, 1, f"{path.name} stands {counted[path.name]} times", "give it its own name"


def main(words: list[str]) -> int:
    found = list(findings(Path(words[0]) if words else PACKAGE))
    for path, line, what, fix in found:
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        print(f"{shown}:{line}: {what}; {fix}")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
