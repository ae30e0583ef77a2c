#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keep the runs of a lab as cases of the corpus.

usage: keep.py LAB...     folders that `wbscope lab matrix.toml -o LAB` made here

A run whose own numbers do not prove its cause is refused.
"""

from __future__ import annotations

import json
import lzma
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.archives import packed
from support.corpus import ARCHIVE, CORPUS, cases, causes, proof

_HERE = Path(__file__).parent
_DEMO = "6.1-slow-starves-fast"
_MOST_BYTES = 400_000
# Of no use to anybody who reads the run.
_LEFT = ("said.txt",)
# Cells of known-bad.toml.
_NAMES = {
    "bad-no-background-start": "7.2-no-background-start",
    "good-no-background-start": "7.2-strict-limit-busy",
}


def _keep(run: Path, name: str, cause: str) -> str | None:
    """Why it was not kept."""
    entry = causes()[cause]
    lines = []
    for one in entry["proof"]:
        value = proof(run, one.quantity)
        if not one.least <= value <= one.most:
            return f"{one.quantity} is {value:g}, wanted {one.least:g} to {one.most:g}"
        lines.append(f'"{one.quantity}" = {value!r}')
    kept = (path for path in run.iterdir() if path.name not in _LEFT)
    content = lzma.compress(packed(run, kept), preset=9)
    if len(content) > _MOST_BYTES:
        return f"{len(content)} bytes, wanted {_MOST_BYTES} at most"
    meta = json.loads((run / "meta.json").read_text())
    case = CORPUS / name
    case.mkdir(exist_ok=True)
    (case / ARCHIVE).write_bytes(content)
    told = [
        "# SPDX-License-Identifier: Apache-2.0",
        f'cause = "{cause}"',
        f"healthy = {str(cause.startswith('healthy')).lower()}",
        f'who = "{entry["who"]}"',
        f'kernel = "{(run / "uname").read_text().split()[2]}"',
        f'injected = "{entry["injected"]}"',
        f"workload = '''\n{meta['command'][-1].strip()}\n'''",
        "",
        "# By the files beside the trace.",
        "[proof]",
        *lines,
    ]
    (case / "cause.toml").write_text("\n".join(told) + "\n")
    return None


def _pack() -> None:
    """Put all cases into the archives of their kernels, but for the run of wbscope demo."""
    kernels = {path.name.partition("-")[0] for path in cases()}
    for kernel in kernels:
        files = (path for path in CORPUS.glob(f"{kernel}-*/*") if path.parent.name != _DEMO)
        (_HERE / f"{kernel}.tar").write_bytes(packed(CORPUS, files))
    shutil.copytree(CORPUS / _DEMO, _HERE / _DEMO, dirs_exist_ok=True)


def main() -> int:
    failed = 0
    for lab in map(Path, sys.argv[1:]):
        for run in sorted(lab.glob("*/run-1")):
            name = run.parent.name.replace(",", "-")
            name = _NAMES.get(name, name)
            why = _keep(run, name, name.partition("-")[2])
            failed += why is not None
            print(f"{name}: {why or 'kept'}")
    _pack()
    return 1 if failed or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
