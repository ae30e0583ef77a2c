# SPDX-License-Identifier: Apache-2.0
"""How answers look on a terminal: columns, widths, colours."""

from __future__ import annotations

import json
import os
import pty
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope, line_of
from support.forkserver import run_forked_on
from support.runs import REPOSITORY, example
from support.waits import GUARD_SECONDS
from wbscope.base.errors import UsageError
from wbscope.base.result import Result, unit_of
from wbscope.cli.options import Choice, Rows
from wbscope.cli.output import coloured, keeps_colours
from wbscope.cli.verbs import VERBS
from wbscope.render.text import table_text

# Text tables: on the page, aligned, nothing cut.


def make(columns: tuple[str, ...], *rows: tuple[Any, ...]) -> Result:
    units = {name: unit for name in columns if (unit := unit_of(name))}
    return Result("q", columns, units, list(rows))


def test_numbers_are_right_aligned_and_carry_units() -> None:
    result = make(("comm", "pause_total_ns"), ("dd", 200_000_000), ("fio", None))
    assert table_text(result).splitlines() == [
        "       pause",
        "comm   total",
        "----  ------",
        "dd    200 ms",
        "fio        -",
    ]


def test_no_rows_is_said() -> None:
    assert table_text(make(("a",))) == "(no rows)\n"


def test_wide_result_goes_on_below_with_its_keys() -> None:
    columns = ("tid", "comm", *(f"value{i}_bytes" for i in range(12)))
    text = table_text(make(columns, (11, "dd", *range(12)), (13, "fio", *range(12))))
    blocks = text.split("\n\n")
    assert len(blocks) > 1
    assert all(len(line) <= 80 for line in text.splitlines())
    assert all(block.split()[:2] == ["tid", "comm"] for block in blocks)
    for index in range(12):
        assert text.count(f"value{index}\n") + text.count(f"value{index} ") == 1


def test_no_trailing_space() -> None:
    text = table_text(make(("comm", "name"), ("dd", "x"), ("a longer one", "")))
    assert all(line == line.rstrip() for line in text.splitlines())


def test_long_text_is_folded_not_cut() -> None:
    words = " ".join(f"word{i}" for i in range(40))
    text = table_text(make(("event", "message"), ("writeback:balance_dirty_pages", words)))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert all(f"word{i}" in text for i in range(40))


def test_column_wider_than_the_page_is_still_whole() -> None:
    name = "x" * 200
    assert name in table_text(make((name,), (1,)))


def test_many_names_leave_room_for_the_rest() -> None:
    columns = (*(f"name{i}" for i in range(9)), "value_count")
    text = table_text(make(columns, (*("n" * 15 for _ in range(9)), 5)))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "value" in text


def test_control_characters_do_not_reach_the_terminal() -> None:
    text = table_text(make(("comm",), ("\x1b[31mred\n",)))
    assert "\x1b" not in text
    assert "\\x1b[31mred\\n" in text


def test_wide_characters_keep_the_columns() -> None:
    lines = table_text(make(("comm", "n_count"), ("漢字", 1), ("abcd", 2))).splitlines()
    assert lines[-2:] == ["漢字  1", "abcd  2"]


def test_rows_of_nothing_but_names() -> None:
    text = table_text(make(("key", "value"), ("kernel_release", "6.1.0"), ("cpus", 2)))
    assert text.splitlines()[2:] == ["kernel_release  6.1.0", "cpus            2"]


def test_the_window_of_an_answer_by_window_comes_first() -> None:
    columns = ("bdi", "tasks_count", "window_start_ns")
    keys = ("window_start_ns", "bdi")
    whole = replace(make(columns, ("8:0", 2, None)), keys=keys)
    windows = replace(make(columns, ("8:0", 2, 10_000_000_000)), keys=keys)
    assert table_text(whole).splitlines() == ["bdi  tasks", "---  -----", "8:0      2"]
    assert table_text(windows).splitlines()[-1] == "@10.000000 s  8:0      2"
    own = Result("sql", columns, {}, whole.rows)
    assert table_text(own).splitlines()[-1].split() == ["8:0", "2", "-"]


def _who(rows: list[tuple[str, int, int]], name: str = "throttle_by_task") -> Result:
    return Result(name, ("comm", "calls_count", "is_incidental"), {"calls_count": "count"}, rows)


def test_those_who_wrote_on_the_side_are_counted_only() -> None:
    text = table_text(_who([("dd", 9, 0), ("sh", 1, 1), ("cat", 1, 1)]))
    assert text.splitlines()[2:] == [
        "dd        9",
        "2 more rows are about tasks that wrote a few KiB; JSON and CSV have them all",
    ]
    assert "incidental" not in text


def test_where_all_wrote_on_the_side_they_are_shown() -> None:
    assert table_text(_who([("sh", 1, 1)])).splitlines()[2:] == ["sh        1"]
    assert "incidental" in table_text(_who([("dd", 9, 0), ("sh", 1, 1)], "sql"))


def test_a_value_with_a_name_is_shown_by_it() -> None:
    labels: dict[str, dict[str | int, str]] = {"bdi": {"8:0": "sda (/)"}, "cgroup_ino": {1: "/"}}
    result = Result("stalls", ("bdi", "cgroup_ino"), {}, [("8:0", 1), ("8:16", 27)], labels=labels)
    lines = table_text(result).splitlines()
    assert [line.split() for line in lines[-2:]] == [["sda", "(/)", "/"], ["8:16", "27"]]


def _waits() -> Result:
    columns = ("tid", "comm", "cause", *(f"value{i}_bytes" for i in range(9)), "share_ratio")
    causes = ("over the limit of its memory cgroup", "above the setpoint of the whole machine")
    rows = [(174, "writer-of-logs", cause, *range(9), 0.5) for cause in causes]
    return replace(make(columns, *rows), keys=columns[:3], first=("share_ratio", "value8_bytes"))


def test_each_block_has_all_keys_folded_where_they_are_long() -> None:
    for width in (80, 60):
        blocks = table_text(_waits(), width).split("\n\n")
        assert len(blocks) > 1
        for block in blocks:
            assert all(len(line) <= width for line in block.splitlines())
            assert all(word in block for word in ("tid", "comm", "cause", "memory", "machine"))


def test_what_matters_most_stands_behind_the_keys() -> None:
    for width in (80, 200, None):
        assert table_text(_waits(), width).split()[:5] == [
            "tid",
            "comm",
            "cause",
            "share",
            "value8",
        ]


def test_a_page_without_end_has_one_line_a_row() -> None:
    assert len(table_text(_waits(), None).splitlines()) == 2 + len(_waits().rows)


def test_rows_without_keys_are_numbered_in_blocks() -> None:
    columns = ("comm", *(f"value{i}_bytes" for i in range(12)))
    result = replace(make(columns, ("dd", *range(12)), ("dd", *range(12))), name="sql")
    for block in table_text(result).split("\n\n"):
        assert [line.split()[:2] for line in block.splitlines()[2:]] == [["1", "dd"], ["2", "dd"]]
    assert "#" not in table_text(result, None)


def test_names_are_those_of_columns_with_the_same_end() -> None:
    labels: dict[str, dict[str | int, str]] = {"bdi": {"8:0": "sda (/)"}, "cgroup_ino": {1: "/"}}
    columns = ("holder_bdi", "victim_cgroup_ino", "ino")
    result = Result("blame", columns, {}, [("8:0", 1, 1)], labels=labels)
    assert table_text(result).splitlines()[-1].split() == ["sda", "(/)", "/", "1"]


def test_long_words_are_broken_behind_their_marks() -> None:
    columns = ("comm", "what", *(f"value{i}_bytes" for i in range(5)))
    name = "writeback_balance_dirty_pages_waiting_for_nobody"
    text = table_text(make(columns, ("dd", name, *range(5))))
    assert "writeback_balance_dirty_pages_" in text.split()
    assert "waiting_for_nobody" in text.split()


def test_names_that_are_typed_are_not_broken() -> None:
    rows = [("journal_commit", "warning", "many words " * 9, 1), ("slow_device", "note", "few", 2)]
    result = Result("findings", ("id", "severity", "text", "n"), {}, rows, keys=("id",))
    for width in (40, 60, 80):
        assert "journal_commit" in table_text(result, width)


# --columns, --sort, --limit and --width; where the width comes from.

Cli = Callable[..., Any]
_NAMES = ("tid", "comm", "slept_ns", "is_incidental")
_ROWS = [(3, "dd", 5, 0), (1, "fio", None, 0), (2, "dd", 9, 1), (4, "cp", 5, 0)]
_UNITS = {name: unit for name in _NAMES if (unit := unit_of(name))}
_RESULT = Result("throttle_by_task", _NAMES, _UNITS, _ROWS, keys=("tid", "comm"))
_MANY = ", ".join(f"{number} AS value{number}_bytes" for number in range(30))


def _tids(**options: str) -> list[int]:
    chosen = Rows(**options).choice()
    return [row[0] for row in chosen.of(_RESULT).rows]


def test_rows_are_sorted_and_counted() -> None:
    assert _tids() == [3, 1, 2, 4]
    assert _tids(sort="tid") == [1, 2, 3, 4]
    assert _tids(sort="-tid", limit="2") == [4, 3]
    assert _tids(sort="comm,-tid") == [4, 3, 2, 1]


def test_what_was_not_recorded_comes_last() -> None:
    assert _tids(sort="slept_ns") == [3, 4, 2, 1]
    assert _tids(sort="-slept_ns,-tid") == [2, 4, 3, 1]


def test_columns_in_the_order_that_was_asked_for() -> None:
    chosen = Choice(columns=("tid", "slept_ns", "comm")).of(_RESULT)
    assert chosen.rows[0] == (3, 5, "dd")
    assert chosen.keys == ("tid",)
    assert Choice(columns=("slept_ns",)).of(_RESULT).keys == ()


@pytest.mark.parametrize(
    ("choice", "found", "fix"),
    [
        (Choice(columns=("tid", "com")), "--columns com", "query q RUN --columns tid,comm"),
        (Choice(sort=("-slept",)), "--sort -slept", "query q RUN --sort -slept_ns"),
        (Choice(sort=("-zzz",)), "--sort -zzz", "query q RUN --sort -tid"),
        (Choice(columns=("-tid",)), "--columns -tid", "query q RUN --columns tid"),
    ],
)
def test_a_column_that_there_is_not(choice: Choice, found: str, fix: str) -> None:
    with pytest.raises(UsageError) as caught:
        choice.check("q", _NAMES, "query q RUN")
    assert (caught.value.slug, caught.value.subject) == ("unknown-column", found)
    assert caught.value.have == "tid, comm, slept_ns, is_incidental"
    assert caught.value.fix == fix


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["--limit", "0"], "bad-number"),
        (["--limit", "some"], "bad-number"),
        (["--width", "9"], "bad-number"),
        (["--width", "90", "--json"], "two-formats"),
        (["--columns", "tid,,comm"], "no-columns"),
        (["--columns", "tit"], "unknown-column"),
        (["--sort", "-tit"], "unknown-column"),
    ],
)
def test_refused_before_any_work(cli: Cli, tmp_path: Path, words: list[str], slug: str) -> None:
    ran = cli("query", "throttle_by_task", tmp_path / "nothing.db", *words)
    assert ran.code == 2
    assert f"error[{slug}]" in ran.err or ran.error()["slug"] == slug


def test_json_and_csv_honour_them(cli: Cli, database: Path) -> None:
    asked = ("throttle_by_task", database, "--sort", "-tid", "--columns", "pause_total_ns,tid")
    assert cli("query", *asked, "--csv").out == "pause_total_ns,tid\n100000000,13\n223000000,11\n"
    ran = cli("query", *asked, "--limit", "1", "--json")
    assert ran.json()["rows"] == [{"pause_total_ns": 100_000_000, "tid": 13}]
    assert ran.json()["units"] == {"pause_total_ns": "ns"}
    line_of(ran.err, "1 of 2 ", "--limit")


def test_several_runs_have_the_column_run(cli: Cli, new_database: Callable[..., Path]) -> None:
    runs = new_database("a.db"), new_database("b.db")
    ran = cli("query", "throttle_by_task", *runs, "--columns", "tid,run", "--sort", "-run", "--csv")
    assert ran.out == "tid,run\n11,b.db\n13,b.db\n11,a.db\n13,a.db\n"


def test_statements_of_the_user_s_own(cli: Cli, database: Path, tmp_path: Path) -> None:
    text = "SELECT tid, comm FROM task"
    ran = cli("sql", database, text, "--limit", "1", "--sort", "-tid", "--columns", "comm", "--csv")
    assert ran.out == "comm\nfio\n"
    line_of(ran.err, "1 of 2 ", "--limit")
    ran = cli("sql", database, text, "--columns", "com", "--json")
    assert (ran.code, ran.error()["have"]) == (2, "tid, comm")
    script = tmp_path / "two.sql"
    script.write_text(f"{text};\n{text};\n")
    ran = cli("sql", database, "-f", script, "--limit", "1", "--json")
    assert [len(row["rows"]) for row in json.loads(ran.out)["rows"]] == [1, 1]
    ran = cli("sql", database, "-f", script, "--columns", "com")
    assert ran.code == 2
    assert "statement 1, line 1" in ran.err


def _widest(text: str) -> int:
    return max(map(len, text.splitlines()))


def test_a_pipe_is_not_wrapped(
    cli: Cli, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("sql", database, f"SELECT {_MANY}")
    monkeypatch.delenv("COLUMNS", raising=False)
    assert _widest(cli(*asked).out) > 200
    assert _widest(cli(*asked, "--width", "60").out) <= 60
    monkeypatch.setenv("COLUMNS", "100")
    assert 80 < _widest(cli(*asked).out) <= 100
    assert _widest(cli(*asked, "--width", "60").out) <= 60
    cli(*asked, "-o", tmp_path / "page")
    assert 80 < _widest((tmp_path / "page").read_text()) <= 100
    monkeypatch.setenv("COLUMNS", "none")
    assert _widest(cli(*asked).out) > 200
    cli(*asked, "-o", tmp_path / "wide")
    assert _widest((tmp_path / "wide").read_text()) > 200


def test_sentences_in_a_pipe_fit_a_page(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert 60 < _widest(cli("queries", "throttle_by_task").out) <= 80
    monkeypatch.setenv("COLUMNS", "1")
    assert cli("report", database).code == 0


# Colours are for a terminal that shows them: none in a pipe, on a dumb one, with NO_COLOR.

RUN = str(example("four-equal-writers").folder)
GATE = REPOSITORY / "examples/gate"
SIDES = (str(GATE / "lower-limit.json"), "--against", str(GATE / "before.json"))
# A command line of each verb; those that need a guest or a browser tell what is wrong.
COMMANDS: dict[str, tuple[str, ...]] = {
    "demo": ("demo", "-o", "OUT"),
    "record": ("record", "-o", "OUT", "--profile", "nosuch", "--", "true"),
    "doctor": ("doctor",),
    "lab": ("lab", "report", "nowhere"),
    "ingest": ("ingest", RUN, "-o", "OUT"),
    "query": ("query", "fairness", RUN),
    "sql": ("sql", RUN, "SELECT comm FROM task"),
    "queries": ("queries", "fairness"),
    "report": ("report", RUN),
    "explain": ("explain", RUN),
    "check": ("check", RUN),
    "plot": ("plot", "--list"),
    "timeline": ("timeline", RUN, "-o", "OUT"),
    "convert": ("convert", RUN, "-o", "OUT"),
    "open": ("open", "nowhere"),
    "compare": ("compare", *SIDES),
    "gate": ("gate", "--policy", str(GATE / "gate.toml"), *SIDES),
    "baseline": ("baseline", "show", SIDES[0]),
    "history": ("history", "show", "nowhere"),
    "fleet": ("fleet", "ingest", RUN, "-o", "OUT"),
    "export": ("export", RUN, "-o", "OUT"),
    "schema": ("schema", "query"),
    "sql-package": ("sql-package", "-o", "OUT"),
    "completion": ("completion", "bash"),
}
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


def shown(wbscope: Wbscope, words: tuple[str, ...], folder: Path, **more: str) -> tuple[bytes, int]:
    """What a terminal gets of both streams, and the exit code."""
    environment = {**wbscope.env, "WBSCOPE_PAGER": "cat", "TERM": "xterm", **more}
    if "NO_COLOR" not in more:
        del environment["NO_COLOR"]
    master, slave = pty.openpty()
    seen = bytearray()

    def read() -> None:
        while True:
            try:
                data = os.read(master, 1 << 16)
            except OSError:
                return
            if not data:
                return
            seen.extend(data)

    reader = threading.Thread(target=read)
    reader.start()
    code = run_forked_on(Path(os.ttyname(slave)), words, folder, environment)
    os.close(slave)
    reader.join(GUARD_SECONDS)
    assert not reader.is_alive()
    os.close(master)
    return bytes(seen), code


def put(words: tuple[str, ...], output: Path) -> tuple[str, ...]:
    return tuple(str(output) if word == "OUT" else word for word in words)


def test_every_verb_is_tried() -> None:
    assert set(COMMANDS) == {verb.name for verb in VERBS}


@pytest.mark.dealt
@pytest.mark.parametrize("verb", COMMANDS)
def test_none_where_nobody_wants_them(wbscope: Wbscope, tmp_path: Path, verb: str) -> None:
    words = COMMANDS[verb]
    piped = wbscope.run(*put(words, tmp_path / "pipe"), cwd=tmp_path)
    assert "\x1b" not in piped.stdout + piped.stderr
    dumb, code = shown(wbscope, put(words, tmp_path / "dumb"), tmp_path, TERM="dumb")
    assert (b"\x1b" in dumb, code) == (False, piped.returncode)
    plain, code = shown(wbscope, put(words, tmp_path / "plain"), tmp_path, NO_COLOR="1")
    assert (_COLOUR.findall(plain), code) == ([], piped.returncode)


@pytest.mark.parametrize(
    ("verb", "found"),
    [
        ("report", b"\x1b[33mwarning\x1b[0m  4 dd waited"),
        ("explain", b"\x1b[33mwarning\x1b[0m  4 dd waited"),
        ("gate", b"\x1b[1;31m:( FAIL\x1b[0m "),
        ("query", b"\x1b[33mwarning[demand-unknown]\x1b[0m: "),
        ("open", b"\x1b[1;31merror[no-such-file]\x1b[0m: "),
    ],
)
def test_a_terminal_has_them(wbscope: Wbscope, tmp_path: Path, verb: str, found: bytes) -> None:
    assert found in shown(wbscope, put(COMMANDS[verb], tmp_path / "out"), tmp_path)[0]


@pytest.mark.parametrize("option", ["--json", "--csv", "--markdown"])
def test_documents_have_none(wbscope: Wbscope, tmp_path: Path, option: str) -> None:
    words = ("sql", RUN, "SELECT 'warning[x]' AS 'severe  '", option)
    assert b"\x1b" not in shown(wbscope, words, tmp_path)[0]


def test_nothing_else_changes() -> None:
    text = "error[a-b]: x\n  have: y\n  fix: z\nTitle\n=====\nseveral  1\ngate: PASS: 1\n"
    made = coloured(text)
    assert re.sub(r"\x1b\[[0-9;]*m", "", made) == text
    assert made.count("\x1b[0m") == 4
    assert "several  1\n" in made


def test_a_pager_that_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LESS", raising=False)
    assert keeps_colours("less")
    assert keeps_colours("/usr/bin/less -FRX")
    assert not keeps_colours("more")
    monkeypatch.setenv("LESS", "-i")
    assert not keeps_colours("less")
    assert keeps_colours("less -R")
