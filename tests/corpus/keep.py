#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keep the runs of a lab as cases of the corpus.

usage: keep.py LAB...     folders that `wbscope lab matrix.toml -o LAB` made here

A run whose own numbers do not prove its cause is refused.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.corpus import ARCHIVE, CORPUS, causes, proof

_MOST_BYTES = 400_000
# Of no use to anybody who reads the run.
_LEFT = ("said.txt",)
# Cells of known-bad.toml.
_NAMES = {
    "bad-no-background-start": "7.2-no-background-start",
    "good-no-background-start": "7.2-strict-limit-busy",
}


def _archive(run: Path) -> bytes:
    """The same bytes for the same files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz", preset=9) as archive:
        for path in sorted(run.iterdir()):
            if path.name in _LEFT:
                continue
            entry = tarfile.TarInfo(path.name)
            entry.size = path.stat().st_size
            entry.mode = 0o644
            with path.open("rb") as file:
                archive.addfile(entry, file)
    return out.getvalue()


def _keep(run: Path, name: str, cause: str) -> str | None:
    """Why it was not kept."""
    entry = causes()[cause]
    lines = []
    for one in entry["proof"]:
        value = proof(run, one.quantity)
        if not one.least <= value <= one.most:
            return f"{one.quantity} is {value:g}, wanted {one.least:g} to {one.most:g}"
        lines.append(f'"{one.quantity}" = {value!r}')
    content = _archive(run)
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


def main() -> int:
    failed = 0
    for lab in map(Path, sys.argv[1:]):
        for run in sorted(lab.glob("*/run-1")):
            name = run.parent.name.replace(",", "-")
            name = _NAMES.get(name, name)
            why = _keep(run, name, name.partition("-")[2])
            failed += why is not None
            print(f"{name}: {why or 'kept'}")
    return 1 if failed or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
