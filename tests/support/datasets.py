# SPDX-License-Identifier: Apache-2.0
"""That two datasets are the same, file by file, but for what tells where a run was read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .cli import Wbscope

__all__ = ["check_same", "files", "manifests", "rows"]

# Of a run, what says where it was read from; of an error, when.
_ITS_SOURCE = ("runs/", "ingest_errors/")


def files(dataset: Path) -> dict[str, str]:
    """All files of tables by their content; of those that tell a source or a time, the names."""
    found = {}
    for path in dataset.rglob("*"):
        name = str(path.relative_to(dataset))
        if path.is_file() and not name.startswith("_"):
            told = name.startswith(_ITS_SOURCE)
            found[name] = "" if told else hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def manifests(dataset: Path) -> dict[str, Any]:
    """All that they say, but for the source and the file that has it."""
    found = {}
    for path in (dataset / "_manifest").iterdir():
        document = json.loads(path.read_text())
        assert document.pop("source")
        kept = {k: v for k, v in document["files"].items() if v["table"] != "runs"}
        found[path.name] = document | {"files": kept}
    return found


def rows(wbscope: Wbscope, dataset: Path) -> list[Any]:
    """What tells a source, and all else of these tables but when an error was."""
    return [
        wbscope.document("fleet", "sql", dataset, question)["rows"]
        for question in (
            "SELECT * FROM runs ORDER BY run",
            "SELECT source, slug, message, exit_code, content FROM ingest_errors",
        )
    ]


def check_same(wbscope: Wbscope, copy: Path, local: Path, source: str, traces: str | Path) -> None:
    """A copy of one that was made of `source`, and one made of `traces`; nothing is begun in it."""
    assert files(copy) == files(local)
    assert manifests(copy) == manifests(local)
    assert manifests(copy)
    for path in (copy / "_manifest").iterdir():
        for name, about in json.loads(path.read_text())["files"].items():
            assert hashlib.sha256((copy / name).read_bytes()).hexdigest() == about["sha256"], name
    for ours, theirs in zip(rows(wbscope, copy), rows(wbscope, local), strict=True):
        assert ours
        assert json.dumps(ours).replace(source, str(traces)) == json.dumps(theirs)
    # An object store has no folder without something in it.
    for folder in ("_intent", "_work"):
        assert not (copy / folder).exists() or not list((copy / folder).iterdir())
