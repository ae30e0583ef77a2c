# SPDX-License-Identifier: Apache-2.0
"""What the user chose, or named, and that is not there: each is told, with what there is."""

from __future__ import annotations

import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.cli import Wbscope, check_error
from support.runs import example
from support.tools import ingester_path, run

_RUN = example("four-equal-writers").trace
_TEXT = """\
# tracer: nop
#
   dd-11    [000] .....  100.000001: sched_wakeup: comm=dd pid=11 prio=120 target_cpu=000
   dd-11    [000] .....  100.500000: balance_dirty_start: bdi 8:0: limit=1
   dd-11    [001] .....  102.000001: sched_wakeup: comm=dd pid=12 prio=120 target_cpu=001
"""


def _ingest(wbscope: Wbscope, source: str | Path, output: Path, *options: str) -> tuple[int, str]:
    done = wbscope.run("ingest", source, "-o", output, "--quiet", *options)
    return done.returncode, " ".join(done.stderr.split())


@pytest.fixture
def text_trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.txt"
    path.write_text(_TEXT)
    return path


def test_events_that_match_nothing(wbscope: Wbscope, tmp_path: Path) -> None:
    output = tmp_path / "run.db"
    code, said = _ingest(wbscope, _RUN, output, "--events", "writebak:*", "--events", "balance_*")
    assert (code, said.count("error[no-such-event]: --events 'writebak:*': ")) == (2, 1), said
    assert "have: writeback:*" in said
    done = wbscope.run("convert", _RUN, "-o", output, "-e", "writeback:ballance_dirty_pages")
    assert done.returncode == 2
    assert "have: writeback:balance_dirty_pages" in done.stderr
    done = wbscope.run("timeline", _RUN, "-o", output, "-e", "nosuch")
    assert (done.returncode, "no-such-event" in done.stderr) == (2, True), done.stderr
    assert not output.exists()


def test_a_system_is_all_of_its_events(wbscope: Wbscope, text_trace: Path, tmp_path: Path) -> None:
    loaded = []
    for number, glob in enumerate(("block", "block:*", "writeback", "writeback:*")):
        output = tmp_path / f"{number}.db"
        assert _ingest(wbscope, _RUN, output, "-e", glob)[0] == 0
        statement = "SELECT event FROM event_counts WHERE loaded_count > 0"
        loaded.append({row["event"] for row in wbscope.sql(output, statement)})
    assert (loaded[0], loaded[2]) == (loaded[1], loaded[3])
    converted = []
    for number, glob in enumerate(("writeback", "writeback:*")):
        output = tmp_path / f"{number}.pftrace"
        assert wbscope.run("convert", _RUN, "-o", output, "-e", glob).returncode == 0
        converted.append(output.read_bytes())
    assert converted[0] == converted[1]


def test_events_of_a_text_that_match_nothing(
    wbscope: Wbscope, text_trace: Path, tmp_path: Path
) -> None:
    code, said = _ingest(
        wbscope, text_trace, tmp_path / "run.db", "--events", "sched_*", "--events", "sched_wakup"
    )
    assert (code, said.count("error[no-such-event]: --events sched_wakup: ")) == (2, 1), said
    assert "have: sched_wakeup" in said
    assert not (tmp_path / "run.db").exists()


@pytest.mark.parametrize("glob", ["", "[a", "sched:[!]", "a[b]c["])
def test_malformed_glob(wbscope: Wbscope, tmp_path: Path, glob: str) -> None:
    code, said = _ingest(wbscope, _RUN, tmp_path / "run.db", "--events", glob)
    assert (code, "error[bad-glob]: " in said) == (2, True), said
    command = [ingester_path(), "sqlite", _RUN, "-o", tmp_path / "run.db", "--events", glob]
    done = run(command)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error[usage]: --events: "), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("glob", ["[]b]*", "writeback:balance_[d]*", "[!x]*", "[^x]*", "*[]e]"])
def test_well_formed_glob(wbscope: Wbscope, tmp_path: Path, glob: str) -> None:
    code, said = _ingest(wbscope, _RUN, tmp_path / "run.db", "--events", glob)
    assert code == 0, said
    assert "error[" not in said


def test_time_range_without_a_record(wbscope: Wbscope, tmp_path: Path) -> None:
    whole = tmp_path / "whole.db"
    assert _ingest(wbscope, _RUN, whole)[0] == 0
    rows = wbscope.sql(whole, "SELECT key, value FROM meta WHERE key IN ('first_ts', 'last_ts')")
    meta = {row["key"]: row["value"] for row in rows}
    first, last = meta["first_ts"], meta["last_ts"]
    part = tmp_path / "part.db"
    part.write_bytes(whole.read_bytes())
    code, said = _ingest(wbscope, _RUN, part, "--time-range", "1h..2h", "--force")
    assert code == 2, said
    assert said.startswith("error[empty-range]: --time-range 1h..2h: ")
    assert f" {(last - first) // 1000 / 1e6:.6f} s " in said
    assert part.read_bytes() == whole.read_bytes()  # the earlier file stays
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part.db", "whole.db"]


def test_any_name_of_the_output(wbscope: Wbscope, tmp_path: Path) -> None:
    """What tells which range there is lies beside it; a file of another's stays."""
    output, other = tmp_path / "whole.db", tmp_path / "whole.db.whole"
    other.write_text("somebody else's")
    run = example("four-equal-writers").folder
    done = wbscope.run("ingest", run, "-o", output, "--from", "100s", "--to", "200s")
    assert (done.returncode, "error[empty-range]: " in done.stderr) == (2, True), done.stderr
    assert other.read_text() == "somebody else's"
    assert sorted(tmp_path.iterdir()) == [other]


def test_time_range_of_a_text_without_a_record(
    wbscope: Wbscope, text_trace: Path, tmp_path: Path
) -> None:
    code, said = _ingest(wbscope, text_trace, tmp_path / "part.db", "--time-range", "@1s..@2s")
    assert code == 2, said
    assert said.startswith("error[empty-range]: --time-range @1s..@2s: ")
    assert "@100000001000" in said
    assert not (tmp_path / "part.db").exists()


@pytest.mark.parametrize("typed", ["2s..1s", "@9s..@8s", "+1h..@1s"])
def test_backward_range_is_shown_as_typed(wbscope: Wbscope, tmp_path: Path, typed: str) -> None:
    typed = typed.removeprefix("+")
    code, said = _ingest(wbscope, _RUN, tmp_path / "part.db", "--time-range", typed)
    assert code == 2
    assert said.startswith(f"error[empty-range]: --time-range {typed}: "), said


@pytest.mark.parametrize("limit", ["0", "-1", "9223372036854775808", "99999999999999999999", "x"])
def test_limit_out_of_range(wbscope: Wbscope, tmp_path: Path, limit: str) -> None:
    code, said = _ingest(wbscope, _RUN, tmp_path / "run.db", "--limit", limit)
    assert code == 2
    assert said.startswith("error[bad-number]: --limit: ")
    assert f'"{limit}"' in said
    assert "9223372036854775807" in said
    assert "fix: wbscope ingest --help" in said
    done = run([ingester_path(), "sqlite", _RUN, "-o", tmp_path / "run.db", "--limit", limit])
    assert done.returncode == 2, done.stderr
    check_error(done.stderr, "usage", "--limit", f'"{limit}"', "9223372036854775807")


def test_largest_limit(wbscope: Wbscope, tmp_path: Path) -> None:
    code, said = _ingest(wbscope, _RUN, tmp_path / "run.db", "--limit", "9223372036854775807")
    assert code == 0, said


def test_database_in_place_of_a_trace(wbscope: Wbscope, tmp_path: Path) -> None:
    database = tmp_path / "run.db"
    assert _ingest(wbscope, _RUN, database)[0] == 0
    code, said = _ingest(wbscope, database, tmp_path / "other.db")
    assert code == 3
    assert said.startswith("error[already-a-database]: "), said
    assert f"fix: wbscope report {database}" in said
    done = run([ingester_path(), "sqlite", database, "-o", tmp_path / "other.db"])
    assert done.returncode == 3
    check_error(done.stderr, "not-a-trace", database, "SQLite", "wbscope query")


@pytest.mark.parametrize("verb", ["ingest", "convert"])
def test_somebody_elses_database_in_place_of_a_trace(
    wbscope: Wbscope, tmp_path: Path, verb: str
) -> None:
    database = tmp_path / "mail.db"
    with closing(sqlite3.connect(database)) as made:
        made.execute("CREATE TABLE mail (subject)")
    done = wbscope.run(verb, database, "-o", tmp_path / "out")
    assert done.returncode == 3
    assert done.stderr.startswith("error[not-a-run]: "), done.stderr
    assert "fix: wbscope ingest TRACE.dat" in done.stderr
    assert not (tmp_path / "out").exists()


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("trace.dat", b"\x17\x08\x44tracing" + bytes(100))


def _write(data: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(data) and None


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (_write(b"\x89PNG\r\n\x1a\n" + bytes(100)), "PNG"),
        (_write(b"\x7fELF\x02\x01\x01" + bytes(100)), "ELF"),
    ],
    ids=["PNG", "ELF"],
)
def test_other_files_are_named(
    wbscope: Wbscope, tmp_path: Path, make: Callable[[Path], None], word: str
) -> None:
    source = tmp_path / "other"
    make(source)
    code, said = _ingest(wbscope, source, tmp_path / "run.db")
    assert code == 3, said
    assert said.startswith(f"error[not-a-trace]: {source}: "), said
    assert word in said


def test_streams_are_refused(wbscope: Wbscope, tmp_path: Path) -> None:
    code, said = _ingest(wbscope, _RUN, Path("-"))
    assert (code, said.startswith("error[output-is-stdout]: -o -: ")) == (2, True), said
    for source, output, wrong in (("-", tmp_path / "run.db", "SRC"), (_RUN, "-", "-o")):
        done = run([ingester_path(), "sqlite", source, "-o", output])
        assert done.returncode == 2, done.stderr
        check_error(done.stderr, "usage", f'{wrong}: found "-"')
    assert list(tmp_path.iterdir()) == []
