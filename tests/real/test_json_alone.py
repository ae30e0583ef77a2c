# SPDX-License-Identifier: Apache-2.0
"""With --json, stdout is one document, and stderr has nothing that is in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.runs import REPOSITORY

_RUN = REPOSITORY / "examples/gate/runs/before-2"
_POLICY = '[metrics."throttle_summary.pauses_count"]\nmargin = "5%"\n'


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("explain", "RUN", "-o", "FILE"), True),
        (("report", "RUN", "-o", "FILE"), True),
        (("check", "RUN", "-o", "FILE"), True),
        (("gate", "RUN", "--policy", "POLICY", "--self-check", "-o", "FILE"), True),
        (("gate", "RUN", "--policy", "POLICY", "--self-check"), False),
        (("export", "RUN", "--parquet", "FOLDER"), False),
        (("fleet", "ingest", "RUN", "-o", "FOLDER"), False),
    ],
    ids=lambda one: " ".join(one[:2]) if isinstance(one, tuple) else "",
)
def test_nothing_else_is_said(
    wbscope: Wbscope, tmp_path: Path, words: tuple[str, ...], file: bool
) -> None:
    policy, written = tmp_path / "gate.toml", tmp_path / "out.json"
    policy.write_text(_POLICY)
    places = {"RUN": _RUN, "POLICY": policy, "FILE": written, "FOLDER": tmp_path / "dataset"}
    done = wbscope.run(*(places.get(word, word) for word in words), "--json")
    assert done.stderr == ""
    text = written.read_text() if file else done.stdout
    assert json.loads(text)["schema"].startswith("wbscope.")
    assert done.stdout == ("" if file else text)
