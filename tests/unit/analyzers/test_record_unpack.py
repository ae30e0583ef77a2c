# SPDX-License-Identifier: Apache-2.0
"""record --unpack: the archive may be a stranger's."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from wbscope.base.errors import InputError
from wbscope.record.remote import unpack

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
_FORMAT = 'name: one\nID: 7\nformat:\n\nprint fmt: ""\n'
_FILES = {
    "facts": "\n".join(_FACTS) + "\n",
    "events": "xhci-hcd:one\n",
    f"{_EVENTS}/header_page": _HEADER_PAGE,
    f"{_EVENTS}/xhci-hcd/one/format": _FORMAT,
    "elf": "\x7fELF\x02\x01",
    "comms": "",
    "saved_cmdlines": "7 dd\n",
    "cpu0.pages": "0" * 4096,
    "cpu2.pages": "2" * 4096,
    "cpu0.stats": "overrun: 3\n",
    "run/uname": "Linux board 6.1.0\n",
}


def _archive(**more: str) -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, text in (_FILES | more).items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    made.seek(0)
    return made


def test_what_the_script_sends(tmp_path: Path) -> None:
    facts = unpack(_archive(), tmp_path)
    assert (facts["events"], facts["lost"]["overwritten_count"]) == (["xhci-hcd:one"], 3)
    trace = (tmp_path / "trace.dat").read_bytes()
    assert _FORMAT.encode() in trace
    assert trace[-2 * 4096 :] == b"0" * 4096 + b"2" * 4096


@pytest.mark.parametrize("number", ["16384", "1000000", "9" * 200, "x", "-1", "\u0663"])
@pytest.mark.parametrize("kind", ["pages", "stats"])
def test_cpu_that_no_machine_has(tmp_path: Path, number: str, kind: str) -> None:
    """The trace.dat has a place for each CPU up to the last."""
    with pytest.raises(InputError, match=f"cpu.*{kind} is of no CPU below 16384"):
        unpack(_archive(**{f"cpu{number}.{kind}": ""}), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_last_cpu_that_is_read(tmp_path: Path) -> None:
    unpack(_archive(**{"cpu16383.pages": ""}), tmp_path)
    assert (tmp_path / "trace.dat").stat().st_size < 1 << 20


@pytest.mark.parametrize("event", ["x:{}", "..:..", "{}:x", "one", "a:b:c", "a:b/../../c", ":"])
def test_event_is_no_path(tmp_path: Path, event: str) -> None:
    """Else a format would be a file of this machine."""
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/format").write_text("of this machine")
    events = event.format(tmp_path / "secret") + "\n"
    with pytest.raises(InputError, match="is no name of an event"):
        unpack(_archive(events=events), folder)
    assert list(folder.iterdir()) == []


def test_trace_of_the_archive_is_not_taken(tmp_path: Path) -> None:
    more = {"run/trace.dat": "another", "run/vmstat.before": "pgpgin 1\n"}
    unpack(_archive(**more), tmp_path)
    assert (tmp_path / "trace.dat").read_bytes().startswith(b"\x17\x08Dtracing6\0")
    assert (tmp_path / "vmstat.before").read_text() == "pgpgin 1\n"
