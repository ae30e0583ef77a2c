# SPDX-License-Identifier: Apache-2.0
"""wbscope-ingest as seen from Python, what convert passes on, the reader of Perfetto's files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import line_of
from wbscope.base.errors import InputError, InternalError, SetupError, UsageError, WbscopeError
from wbscope.ingest.ingest import Choice
from wbscope.ingest.program import find_ingester
from wbscope.library.library import Library
from wbscope.perfetto.reader import Reader, _Kind
from wbscope.perfetto.stream import load_references
from wbscope.run.ingested import default_output, ingest
from wbscope.source.source import find_source

# The program wbscope-ingest as seen from Python: how it is called, how it ends.


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


# wbscope convert: what it passes on, what it refuses, how it ends.

Cli = Callable[..., Any]


def test_what_is_passed_on(cli: Cli, ingester: Any, trace: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.pftrace"
    ran = cli("convert", trace, "-o", output)
    assert (ran.code, ran.out) == (0, "")
    line_of(ran.err, f"wrote {output}: ", 2, 3)
    [call] = ingester.calls()
    words = call["arguments"]
    assert words[:2] == ["convert", str(trace)]
    assert words[2:4] == ["-o", words[3]]
    assert words[4:] == ["--json-lines"]
    assert output.is_file()


def test_options(cli: Cli, ingester: Any, trace: Path, tmp_path: Path) -> None:
    guest = tmp_path / "guest.dat"
    guest.write_bytes(trace.read_bytes())
    words = ("--compat", "--events", "sched:*", "--events", "block:*", "--time-range", "2s..4s")
    assert cli("convert", trace, guest, "-o", tmp_path / "x.pftrace", *words).code == 0
    [call] = ingester.calls()
    assert call["arguments"][1:3] == [str(trace), str(guest)]
    passed = ["--compat", "--events", "sched:*", "--events", "block:*"]
    passed += ["--time-range", "+2000000000..+4000000000", "--json-lines"]
    assert call["arguments"][5:] == passed


def test_a_run_folder_is_its_trace(cli: Cli, ingester: Any, run_folder: Path) -> None:
    assert cli("convert", run_folder, "-o", run_folder / "x.pftrace").code == 0
    assert ingester.calls()[0]["arguments"][1] == str(run_folder)


def test_document(
    cli: Cli, ingester: Any, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_INGESTER", "damaged")
    output = tmp_path / "x.pftrace"
    document = cli("convert", trace, "-o", output, "--json").json()
    assert document["schema"] == "wbscope.convert/1"
    row = {"output": str(output), "events_count": 3, "converted_count": 2, "damaged": True}
    assert document["rows"] == [row]
    assert document["units"] == {"events_count": "count", "converted_count": "count"}
    assert [warning["slug"] for warning in document["warnings"]] == ["damaged-trace"]


def test_other_runs_are_refused(
    cli: Cli, ingester: Any, database: Path, trace: Path, tmp_path: Path
) -> None:
    perfetto = tmp_path / "there.pftrace"
    perfetto.write_bytes(b"\n\x04\x01\x02\x03\x04")
    ran = cli("convert", perfetto, "-o", tmp_path / "x.pftrace")
    assert (ran.code, ran.err.split(":")[0]) == (3, "error[already-perfetto]")
    ran = cli("convert", trace, database, "-o", tmp_path / "x.pftrace")
    assert (ran.code, ran.err.split(":")[0]) == (3, "error[not-a-trace]")
    assert f"wbscope timeline {database}" in ran.err
    assert cli("convert", tmp_path / "none.dat", "-o", tmp_path / "x.pftrace").code == 3
    assert ingester.calls() == []


def test_output_is_checked_first(cli: Cli, ingester: Any, trace: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.pftrace"
    output.write_text("earlier")
    assert cli("convert", trace, "-o", output).code == 2
    assert cli("convert", trace, "-o", trace, "--force").code == 2
    assert cli("convert", trace, "-o", "-").code == 2
    assert cli("convert", trace, "-o", tmp_path / "no" / "x").code == 5
    assert cli("convert", trace, "-o", output, "--events", "[").code == 2
    assert cli("convert", trace, "-o", output, "--time-range", "now").code == 2
    assert ingester.calls() == []
    assert cli("convert", trace, "-o", output, "--force").code == 0
    assert output.read_bytes() != b"earlier"


@pytest.mark.parametrize(("mode", "code"), [("error3", 3), ("error5", 5), ("signal9", 5)])
def test_what_fails_leaves_nothing(
    cli: Cli, ingester: Any, trace: Path, tmp_path: Path, monkeypatch: Any, mode: str, code: int
) -> None:
    monkeypatch.setenv("FAKE_INGESTER", mode)
    assert cli("convert", trace, "-o", tmp_path / "x.pftrace").code == code
    assert os.listdir(tmp_path) == ["trace.dat"]


# What the captured event formats tell of traces that have none.


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("balance_dirty_pages", "writeback"),
        ("global_dirty_state", "writeback"),
        ("block_touch_buffer", "block"),  # by its first word: no kernel's format is there
        ("cpu_frequency", ""),
    ],
)
def test_system(name: str, system: str) -> None:
    assert load_references("6.1.0").system_of(name) == system


def test_types_come_from_the_nearest_kernel_that_has_the_field() -> None:
    types = load_references("7.2.13").types("vmscan", "mm_vmscan_write_folio")
    assert types["pfn"] == "unsigned long"
    both = load_references("6.12.1").types("vmscan", "mm_shrink_slab_start")
    assert both["shrink"] == "void *"
    assert load_references("6.1").types("block", "block_rq_issue")["dev"] == "dev_t"


def test_labels_of_the_release_itself_and_between_two_that_differ() -> None:
    def reasons(release: str) -> dict[int, str]:
        labels = load_references(release).labels("writeback", "writeback_start")
        return {label.value: label.label for label in labels if label.field == "reason"}

    assert reasons("6.1.0-56-cloud-amd64")[7] == "foreign_flush"
    assert reasons("4.4.1")[5] == "free_more_memory"
    # 4.15 took free_more_memory out, so 5 means two things between 4.4 and 5.10.
    assert 5 not in reasons("4.19.0")
    assert reasons("4.19.0")[0] == "background"
    assert 5 not in reasons("")


# Names of fields that are no text: the reader comes to an end.


class _Engine:
    """Records of one event; a name that is no text is never the one that is asked for."""

    def __init__(self, records: list[list[str]]) -> None:
        self.records = records
        self.asked = 0

    def query(self, sql: str) -> list[dict[str, Any]]:
        self.asked += 1
        assert self.asked < 20, "asks for ever"
        if "DISTINCT" in sql:
            keys = {key for record in self.records for key in record}
            return [{"key": key.replace("\xff", "\ufffd")} for key in sorted(keys)]
        if "LIMIT 1" in sql:
            known = sql.partition("NOT IN (")[2].partition(")")[0].split(", ")
            for number, record in enumerate(self.records):
                if any(f"'{key}'" not in known for key in record):
                    return [{"id": number}]
            return []
        number = int(sql.partition("a.arg_set_id = ")[2].split()[0])
        return [{"key": key.replace("\xff", "\ufffd")} for key in self.records[number]]


def _keys(records: list[list[str]]) -> tuple[list[str], int]:
    reader = Reader.__new__(Reader)
    reader._engine = _Engine(records)  # type: ignore[assignment]
    reader._odd_keys = 0
    return reader._keys(_Kind("event", "system", 1, True)), reader._odd_keys


def test_fields_of_all_records_in_the_order_of_the_first() -> None:
    assert _keys([["b", "a"], ["b"], ["a", "c"]]) == (["b", "a", "c"], 0)


def test_a_name_that_is_no_text_is_counted_and_the_others_are_there() -> None:
    assert _keys([["b", "p\xffd"], ["a"]]) == (["b", "p\ufffdd", "a"], 1)
