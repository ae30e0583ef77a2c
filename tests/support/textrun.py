# SPDX-License-Identifier: Apache-2.0
"""A run folder written by hand: a trace as text, files beside it, and the findings of it."""

from __future__ import annotations

from pathlib import Path

import wbscope
from wbscope.explain.proving import prove
from wbscope.library.finding import Finding

__all__ = ["TextRun", "proven_findings"]


class TextRun:
    """Events, each at its time in seconds, and files beside them."""

    def __init__(self) -> None:
        self._lines: list[tuple[float, str]] = []
        self.files: dict[str, str] = {}

    def event(self, ts: float, task: str, *told: str) -> None:
        """`told` is the event and its fields, in one text or in two."""
        self._lines.append((ts, f"{task} [000] {ts:.6f}: {': '.join(told)}"))

    def write(self, folder: Path) -> Path:
        made = folder / "run"
        made.mkdir()
        lines = "".join(f"{line}\n" for _, line in sorted(self._lines))
        (made / "trace.txt").write_text(lines)
        for name, text in self.files.items():
            (made / name).write_text(text)
        return made


def proven_findings(path: Path) -> dict[str, Finding]:
    """By id, one of each, and each with numbers that its evidence has."""
    with wbscope.open(path) as run:
        found = run.findings()
        for one in found:
            assert all(proven.holds for proven in prove(run, one)), one
    by_id = {one.id: one for one in found}
    assert len(by_id) == len(found)
    return by_id
