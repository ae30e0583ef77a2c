# SPDX-License-Identifier: Apache-2.0
"""A run written by hand: a trace as text with files beside it, or what another machine sends."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import wbscope
from wbscope.explain.remedy import prove
from wbscope.library.finding import Finding

__all__ = ["TextRun", "proven_findings", "sent_archive"]

_EVENTS = "tracefs/events"
_HEADER_PAGE = (
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"
)
_FACTS = (
    "profile custom",
    'command ["true"]',
    "clock boot",
    "buffer_kib 64",
    "started 100",
    "ended 200",
)
_SENT = {
    "facts": "\n".join(_FACTS) + "\n",
    "events": "xhci-hcd:one\n",
    f"{_EVENTS}/header_page": _HEADER_PAGE,
    f"{_EVENTS}/xhci-hcd/one/format": 'name: one\nID: 7\nformat:\n\nprint fmt: ""\n',
    "elf": "\x7fELF\x02\x01",
    "comms": "",
    "saved_cmdlines": "7 dd\n",
    "cpu0.pages": "0" * 4096,
    "cpu2.pages": "2" * 4096,
    "cpu0.stats": "overrun: 3\n",
    "run/uname": "Linux board 6.1.0\n",
}


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


def sent_archive(**more: str) -> bytes:
    """What the script of record --print writes on a machine with one event, and more files."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, text in (_SENT | more).items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return made.getvalue()
