# SPDX-License-Identifier: Apache-2.0
"""What the user chose or named: times, limits, events, tasks."""

from __future__ import annotations

import contextlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope, check_error
from support.kernel_events import formats
from support.loaded import LoadedRun
from support.runs import example
from support.texttrace import load_lines
from support.tools import ingester_path, run
from support.tracedat import Trace
from support.wait_events import Waits

# What the user chose, or named, and that is not there: each is told, with what there is.

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


@pytest.mark.parametrize(
    ("magic", "word"), [(b"\x89PNG\r\n\x1a\n", "PNG"), (b"\x7fELF\x02\x01\x01", "ELF")]
)
def test_other_files_are_named(wbscope: Wbscope, tmp_path: Path, magic: bytes, word: str) -> None:
    source = tmp_path / "other"
    source.write_bytes(magic + bytes(100))
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


# ingest --time-range and --limit: the same rows as a cut through the whole database.


def _selected(source: Path, database: Path, *options: str) -> sqlite3.Connection:
    done = run([ingester_path(), "sqlite", source, "-o", database, "--all", *options])
    assert done.returncode == 0, done.stderr
    return sqlite3.connect(database)


def _tables(db: sqlite3.Connection) -> list[str]:
    rows = db.execute("SELECT name FROM sqlite_schema WHERE name GLOB 'ev_*' ORDER BY name")
    return [name for (name,) in rows]


def _rows(db: sqlite3.Connection, where: str = "1") -> dict[str, list[Any]]:
    """The rows of each event table but for seq, which counts from the first loaded one."""
    found = {}
    for table in _tables(db):
        columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
        wanted = ", ".join(f'"{name}"' for name in columns if name != "seq")
        rows = db.execute(f'SELECT {wanted} FROM "{table}" WHERE {where} ORDER BY seq').fetchall()
        if rows:
            found[table] = rows
    return found


def _meta(db: sqlite3.Connection) -> dict[str, Any]:
    return dict(db.execute("SELECT key, value FROM meta"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> sqlite3.Connection:
    return _selected(_RUN, tmp_path_factory.mktemp("whole") / "run.db")


# Parts of the run in thousandths of its duration.
@pytest.mark.parametrize(("start", "end"), [(0, 1), (250, 300), (500, 1000), (999, 2000)])
def test_range_is_a_cut_through_the_whole(
    whole: sqlite3.Connection, tmp_path: Path, start: int, end: int
) -> None:
    meta = _meta(whole)
    duration = meta["last_ts"] - meta["first_ts"]
    t0, t1 = (meta["first_ts"] + duration * part // 1000 for part in (start, end))
    wanted = _rows(whole, f"ts >= {t0} AND ts < {t1}")
    assert wanted
    for text in (f"{t0}..{t1}", f"+{t0 - meta['first_ts']}..+{t1 - meta['first_ts']}"):
        with contextlib.closing(
            _selected(_RUN, tmp_path / "part.db", "--force", "--time-range", text)
        ) as part:
            assert _rows(part) == wanted
            (counted,) = part.execute("SELECT sum(count) FROM event_counts").fetchone()
            assert counted == sum(map(len, wanted.values()))
            assert _meta(part)["partial"] == 1


def test_an_open_end(whole: sqlite3.Connection, tmp_path: Path) -> None:
    middle = (_meta(whole)["first_ts"] + _meta(whole)["last_ts"]) // 2
    for text, where in ((f"{middle}..", f"ts >= {middle}"), (f"..{middle}", f"ts < {middle}")):
        with contextlib.closing(
            _selected(_RUN, tmp_path / "part.db", "--force", "--time-range", text)
        ) as part:
            assert _rows(part) == _rows(whole, where)


@pytest.mark.parametrize("limit", [1, 2, 1000, 12_000])
def test_limit_loads_the_first_rows(whole: sqlite3.Connection, tmp_path: Path, limit: int) -> None:
    with contextlib.closing(_selected(_RUN, tmp_path / "part.db", "--limit", str(limit))) as part:
        assert _rows(part) == _rows(whole, f"seq <= {limit}")
        meta = _meta(part)
        assert (meta["loaded_count"], meta["loaded_limit"], meta["partial"]) == (limit, limit, 1)
        counted = sum(map(len, _rows(whole, f"ts < {meta['range_end_ts']}").values()))
        assert meta["events_count"] == counted
        assert "source_hash" not in meta  # it would take a read of the whole file


def test_a_limit_that_is_not_reached_reads_all(whole: sqlite3.Connection, tmp_path: Path) -> None:
    count = _meta(whole)["events_count"]
    with contextlib.closing(_selected(_RUN, tmp_path / "part.db", "--limit", str(count))) as part:
        assert _meta(part)["partial"] == 0
        assert _rows(part) == _rows(whole)


@pytest.mark.parametrize("kind", [{"version": 6}, {}, {"compression": "zlib"}, {"endian": "big"}])
def test_every_form_of_file(kind: dict[str, Any], tmp_path: Path) -> None:
    trace = Trace(formats("sys_exit_write"), cpus=2, cmdlines={11: "dd"}, **kind)
    for number in range(200):
        trace.event(number % 2, 1_000 + number, 11, "sys_exit_write", {"ret": number})
        if number % 5 == 0:
            trace.page_break(number % 2)
    source = trace.write(tmp_path / "trace.dat")
    with contextlib.closing(
        _selected(source, tmp_path / "part.db", "--time-range", "1042..1137")
    ) as part:
        rets = part.execute("SELECT ret FROM ev_sys_exit_write ORDER BY seq").fetchall()
    assert rets == [(ret,) for ret in range(42, 137)]


def test_answers_say_that_it_is_a_part(wbscope: Wbscope, tmp_path: Path) -> None:
    database = tmp_path / "part.db"
    done = wbscope.run("ingest", str(_RUN), "-o", str(database), "--time-range", "1s..2s")
    assert done.returncode == 0, done.stderr
    document = wbscope.document("query", "throttle_by_task", database)
    assert "part-of-trace" in [warning["slug"] for warning in document["warnings"]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--time-range", "2s"], "is not a range"),
        (["--time-range", ".."], "is not a range"),
        (["--time-range", "2..3s"], "has no unit"),
        (["--time-range", "3s..2s"], "wanted its end after its start"),
    ],
)
def test_wrong_values(wbscope: Wbscope, tmp_path: Path, options: list[str], words: str) -> None:
    done = wbscope.run("ingest", str(_RUN), "-o", str(tmp_path / "part.db"), *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []


# Names of tasks, from what the recorder saved and from what events say.

_DD, _SHELL, _IDLE = 40, 41, 0
_RUNNING, _SLEEPING = 0, 1


def _dd_of_a_shell(saved: str | None, *, leaves: bool) -> Waits:
    """A fork of sh that calls exec on the CPU: sched_switch tells dd only where it leaves."""
    names = {_SHELL: "sh"} if saved is None else {_SHELL: "sh", _DD: saved}
    waits = Waits("sched_switch", "balance_dirty_pages", cmdlines=names)
    waits.name(_DD, "sh")
    waits.switch(1, _IDLE, _RUNNING, _DD)
    waits.add(2, _DD, "balance_dirty_pages")
    if leaves:
        waits.name(_DD, "dd")
        waits.switch(3, _DD, _SLEEPING, _IDLE)
    waits.switch(4, _IDLE, _RUNNING, _SHELL)
    waits.switch(5, _SHELL, _SLEEPING, _IDLE)
    return waits


@pytest.mark.parametrize("writer", ["pages", "sqlite"])
@pytest.mark.parametrize(
    ("saved", "leaves", "name"),
    [
        (None, True, "dd"),  # 128 other names were saved since: its last sight is as prev_comm
        (None, False, "sh"),
        ("sh", True, "dd"),  # the kernel could not save the name when it left
        ("dd", True, "dd"),
        ("dd", False, "dd"),  # saved after its last sight
        ("other", True, "other"),  # renamed after its last sight
    ],
)
def test_the_last_name_is_known(
    saved: str | None, leaves: bool, name: str, writer: str, tmp_path: Path
) -> None:
    _dd_of_a_shell(saved, leaves=leaves).write(tmp_path)
    output = tmp_path / "run.db"
    command = [ingester_path(), "sqlite", tmp_path / "trace.dat", "--all", "-o", output]
    done = run([*command, "--writer", writer])
    assert done.returncode == 0, done.stderr
    rows = LoadedRun(output).rows("SELECT tid, comm FROM task ORDER BY tid")
    assert rows == [(_IDLE, "<idle>"), (_DD, name), (_SHELL, "sh")]


_LEFT = (
    "sched_switch: prev_comm=dd prev_pid=40 prev_prio=120 prev_state=Z ==>"
    " next_comm=sh next_pid=41 next_prio=120"
)


@pytest.mark.parametrize(
    "last",
    [
        "sched_wakeup: comm=dd pid=40 prio=120 target_cpu=000",
        "sched_wakeup: pid=40 prio=120 target_cpu=000",  # a line that lacks the name
        "sched_process_wait: comm=sh pid=40 prio=120",  # sh waits for 40
    ],
)
def test_what_names_no_task(last: str, tmp_path: Path) -> None:
    lines = [
        "sh-41 [000] 99.000000: sched_wakeup: comm=sh pid=40 prio=120 target_cpu=000",
        f"dd-40 [000] 100.000000: {_LEFT}",
        f"sh-41 [000] 101.000000: {last}",
    ]
    loaded = load_lines(lines, tmp_path, "--all")
    assert loaded.sql("SELECT tid, comm FROM task ORDER BY tid") == [(40, "dd"), (41, "sh")]
