# SPDX-License-Identifier: Apache-2.0
"""The program wbscope-ingest as seen from Python: how it is called, how it ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from wbscope.base.errors import InputError, InternalError, SetupError, UsageError, WbscopeError
from wbscope.ingest.ingest import Choice
from wbscope.ingest.program import find_ingester
from wbscope.library.library import Library
from wbscope.run.ingested import default_output, ingest
from wbscope.source.source import find_source


class Progress:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def advance(self, done_bytes: int, total_bytes: int) -> None:
        self.seen.append((done_bytes, total_bytes))


def test_default_loads_what_the_library_reads(
    ingester: Any, trace: Path, tmp_path: Path, library: Library
) -> None:
    progress = Progress()
    done = ingest(find_source(str(trace)), tmp_path / "run.db", library, observer=progress)
    assert (done.events_count, done.loaded_count, done.damaged) == (3, 2, False)
    assert (tmp_path / "run.db").read_bytes().startswith(b"SQLite format 3\0")
    [call] = ingester.calls()
    assert call["listed"] == library.events()
    assert call["arguments"][:2] == ["sqlite", str(trace)]
    assert call["arguments"][-1] == "--json-lines"
    assert progress.seen == [(10, 20)]
    assert sorted(os.listdir(tmp_path)) == ["run.db", "trace.dat"]


def test_events_are_loaded_beside_the_default(
    ingester: Any, trace: Path, tmp_path: Path, library: Library
) -> None:
    ingest(
        find_source(str(trace)), tmp_path / "run.db", library, Choice(["writeback:*", "balance_*"])
    )
    [call] = ingester.calls()
    assert call["listed"] == library.events()
    assert [w for w in call["arguments"] if "*" in w] == ["writeback:*", "balance_*"]


def test_all_needs_no_list(ingester: Any, trace: Path, tmp_path: Path, library: Library) -> None:
    ingest(find_source(str(trace)), tmp_path / "run.db", library, Choice(load_all=True))
    [call] = ingester.calls()
    assert "--all" in call["arguments"]
    assert call["listed"] == []


@pytest.mark.parametrize(
    ("mode", "kind", "slug"),
    [
        ("error2", UsageError, "truncated-page"),
        ("error3", InputError, "truncated-page"),
        ("error5", SetupError, "truncated-page"),
        ("error70", InternalError, "truncated-page"),
        ("exit1", InternalError, "ingester-crashed"),
        ("exit3", InternalError, "ingester-crashed"),
        ("signal11", InternalError, "ingester-crashed"),
        ("signal6", InternalError, "ingester-crashed"),
        ("signal9", SetupError, "ingester-killed"),
        ("signal15", SetupError, "ingester-killed"),
        ("nothing", SetupError, "cannot-write"),
    ],
)
def test_failure_becomes_the_right_error_and_leaves_nothing(
    ingester: Any,
    trace: Path,
    tmp_path: Path,
    library: Library,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    kind: type[WbscopeError],
    slug: str,
) -> None:
    monkeypatch.setenv("FAKE_INGESTER", mode)
    with pytest.raises(kind) as caught:
        ingest(find_source(str(trace)), tmp_path / "run.db", library)
    assert caught.value.slug == slug
    assert os.listdir(tmp_path) == ["trace.dat"]
    if mode.startswith("error"):
        assert caught.value.subject == str(tmp_path / "run.db")
        assert caught.value.at == "offset 0x10"
        assert caught.value.fix == "record it again"
    if mode == "signal6":
        assert caught.value.have == "==1==ERROR: AddressSanitizer"


@pytest.mark.parametrize("mode", ["exit130", "signal2"])
def test_interrupted(
    ingester: Any,
    trace: Path,
    tmp_path: Path,
    library: Library,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    monkeypatch.setenv("FAKE_INGESTER", mode)
    with pytest.raises(KeyboardInterrupt):
        ingest(find_source(str(trace)), tmp_path / "run.db", library)
    assert os.listdir(tmp_path) == ["trace.dat"]


def test_failure_keeps_the_earlier_database(
    ingester: Any,
    trace: Path,
    tmp_path: Path,
    library: Library,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_INGESTER", "signal9")
    (tmp_path / "run.db").write_text("earlier")
    with pytest.raises(SetupError):
        ingest(find_source(str(trace)), tmp_path / "run.db", library, force=True)
    assert (tmp_path / "run.db").read_text() == "earlier"


def test_of_two_at_once_the_second_replaces_nothing(
    ingester: Any, trace: Path, tmp_path: Path, library: Library
) -> None:
    output = tmp_path / "run.db"

    class Other:
        """While the one reads, another command writes its result."""

        def advance(self, done_bytes: int, total_bytes: int) -> None:
            output.write_text("theirs")

    with pytest.raises(UsageError) as caught:
        ingest(find_source(str(trace)), output, library, observer=Other())
    assert caught.value.slug == "output-exists"
    assert output.read_text() == "theirs"
    ingest(find_source(str(trace)), output, library, force=True, observer=Other())
    assert output.read_bytes().startswith(b"SQLite format 3\0")


def test_damage_is_a_warning(
    ingester: Any,
    trace: Path,
    tmp_path: Path,
    library: Library,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_INGESTER", "damaged")
    done = ingest(find_source(str(trace)), tmp_path / "run.db", library)
    assert done.damaged
    assert [(w.slug, w.message) for w in done.warnings] == [
        ("damaged-trace", "trace.dat: ends early; at: offset 0x20")
    ]


def test_ingester_is_found_by_variable_then_beside_python_then_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WBSCOPE_INGEST", raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    with pytest.raises(SetupError) as caught:
        find_ingester()
    assert (caught.value.slug, caught.value.fix) == ("no-ingester", "make setup")
    for folder in ("path", "bin"):
        program = tmp_path / folder / "wbscope-ingest"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        assert find_ingester() == program
    monkeypatch.setenv("WBSCOPE_INGEST", "/elsewhere")
    assert find_ingester() == Path("/elsewhere")


def test_named_ingester_that_is_not_there(
    trace: Path, tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WBSCOPE_INGEST", str(tmp_path / "nowhere"))
    with pytest.raises(SetupError, match="cannot be run: No such file"):
        ingest(find_source(str(trace)), tmp_path / "run.db", library)


def test_default_output(run_folder: Path, tmp_path: Path) -> None:
    assert default_output(find_source(str(run_folder))) == run_folder / "run.db"
    lone = tmp_path / "a b.dat"
    lone.write_bytes((run_folder / "trace.dat").read_bytes())
    with pytest.raises(UsageError) as caught:
        default_output(find_source(str(lone)))
    assert caught.value.fix == f"wbscope ingest '{lone}' -o 'a b.db'"
