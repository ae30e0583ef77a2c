# SPDX-License-Identifier: Apache-2.0
"""Text tables: on the page, aligned, nothing cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wbscope.base.result import Result, unit_of
from wbscope.render.text import table_text


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
