# SPDX-License-Identifier: Apache-2.0
"""What users give and read: numbers, durations, parts of a run, tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.cli import line_of
from wbscope.base.errors import UsageError
from wbscope.base.result import unique_names, unit_of
from wbscope.base.span import WHOLE, Moment, parse_moment, parse_span
from wbscope.base.units import (
    axis_unit,
    duration_argument,
    format_beside,
    format_value,
    parse_duration,
    round_window_ns,
    tick_text,
)
from wbscope.cli.output import error_in_options
from wbscope.render.fleet import added_text

# Numbers for people, and durations from people.


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("a_bytes", 0, "0 B"),
        ("a_bytes", 1023, "1023 B"),
        ("a_bytes", 1024, "1.00 KiB"),
        ("a_bytes", 100663296, "96.0 MiB"),
        ("a_bytes", 2**20 - 1, "1.00 MiB"),
        ("a_bytes", -4096, "-4.00 KiB"),
        ("a_bytes", 2**63, "8.00 EiB"),
        ("a_bytes", 2**80, "1048576 EiB"),
        ("a_bytes_per_s", 21076377.6, "20.1 MiB/s"),
        ("a_bytes_per_s", 0, "0 B/s"),
        ("a_ns", 0, "0 s"),
        ("a_ns", 999, "999 ns"),
        ("a_ns", 1000, "1.00 us"),
        ("a_ns", 999_600, "1.00 ms"),
        ("a_ns", 200_000_000, "200 ms"),
        ("a_ns", 999_900_000, "1.00 s"),
        ("a_ns", 1_230_000_000, "1.23 s"),
        ("a_ns", 9_996_000_000, "10.0 s"),
        ("a_ns", 4_321_000_000_000, "4321 s"),
        ("a_ns", -12_000_000, "-12.0 ms"),
        ("dur", 4_000_000, "4.00 ms"),
        ("ts", 10_493_574_083, "10.493574 s"),
        ("window_start_ns", 2_000_000_000, "2.000000 s"),
        ("first_ts", -500_000_000, "-0.500000 s"),
        ("a_ratio", 0.98712, "98.7 %"),
        ("a_count", 188809, "188809"),
        ("count", 23, "23"),
        ("bytes", 1024, "1.00 KiB"),
        ("a_pages_per_s", 29455.46, "29455.5 pages/s"),
        ("tid", 11, "11"),
        ("comm", "dd", "dd"),
        ("other", 1234.56789, "1234.57"),
        ("a_count", 1529984.0, "1529984"),
        ("a_count", 99999.96, "100000"),
        ("a_count", 0.5, "0.5"),
        ("a_count", 1e15, "1e+15"),
        ("a_count", float("inf"), "inf"),
        ("a_pages_per_s", 2455529.46, "2455529 pages/s"),
        ("a_ns", None, "-"),
        ("a_ns", "text", "text"),
        ("blob", b"\x00\xff", "x'00ff'"),
    ],
)
def test_format_value(column: str, value: object, text: str) -> None:
    assert format_value(column, unit_of(column), value) == text


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("1/s", 28456.4, "28,456 1/s"),
        ("ops/s", 22720.0, "22,720 ops/s"),
        ("ops/s", 1234.5, "1,234 ops/s"),
        ("ops/s", 12.345, "12.3 ops/s"),
        ("ops/s", 0.35, "0.35 ops/s"),
        ("ops/s", 0.0, "0 ops/s"),
        ("ops/s", -0.35, "-0.35 ops/s"),
        ("ops/s", 1e18, "1e+18 ops/s"),
        ("frames", 2048, "2,048 frames"),
        ("KiBfoo", 4096, "4,096 KiBfoo"),
        ("", 1234.0, "1,234"),
    ],
)
def test_units_of_other_tools_are_no_bytes(unit: str, value: float, text: str) -> None:
    assert format_value("", unit, value) == text


@pytest.mark.parametrize(
    ("value", "border", "text"),
    [
        (28456.4, ">= 100", "28,456 1/s"),
        (22720.4, ">= 22720.3", "22720.4 1/s"),
        (22720.2, ">= 22720.3", "22,720 1/s"),
        (99.98, ">= 100", "99.98 1/s"),
    ],
)
def test_a_number_shows_on_which_side_of_the_budget_it_is(
    value: float, border: str, text: str
) -> None:
    least = float(border.split()[1])
    assert format_beside("1/s", value, border.split()[1], lambda one: one >= least) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2s", 2_000_000_000),
        ("500ms", 500_000_000),
        ("100us", 100_000),
        ("7ns", 7),
        ("1m", 60_000_000_000),
        ("2h", 7_200_000_000_000),
        ("1.5s", 1_500_000_000),
        ("0s", 0),
    ],
)
def test_parse_duration(text: str, value: int) -> None:
    assert parse_duration("window", text) == value


@pytest.mark.parametrize(
    "text", ["", "s", "2 s", "-2s", "2x", "1e3s", "2s3", "٢s", "2s\n", ".5s", "inf"]
)
def test_not_a_duration(text: str) -> None:
    with pytest.raises(UsageError, match="wanted a number with ns, us, ms, s, m or h"):
        parse_duration("window", text)


def test_number_without_unit_says_so_and_how() -> None:
    with pytest.raises(UsageError, match="has no unit") as caught:
        parse_duration("window", "2")
    assert caught.value.fix == "window='2s'"


def test_duration_beyond_64_bits() -> None:
    with pytest.raises(UsageError, match="is longer than 9223372036854775807 ns"):
        parse_duration("end", "99999999999h")


def test_same_names_are_told_apart() -> None:
    assert unique_names(["a", "a", "b", "a", "a:1"]) == ("a", "a:1", "b", "a:2", "a:1:1")


@pytest.mark.parametrize(
    ("unit", "most", "name", "value", "label"),
    [
        ("bytes", 60 << 20, "MiB", 40 << 20, "40"),
        ("bytes/s", 1 << 30, "GiB/s", 3 << 29, "1.5"),
        ("bytes", 0, "B", 0, "0"),
        ("bytes", -(2 << 10), "KiB", -512, "-0.5"),
        ("ns", 200_000_000, "ms", 150_000_000, "150"),
        ("ns", 26_000_000_000, "s", 500_000_000, "0.5"),
        ("ns", 0, "ns", 0, "0"),
        ("ratio", 1, "%", 0.25, "25"),
        ("count", 2_000_000, "", 150_000, "150,000"),
        ("pages/s", 10, "pages/s", 5, "5"),
    ],
)
def test_axis_has_one_unit(unit: str, most: float, name: str, value: float, label: str) -> None:
    one = axis_unit(unit, most)
    assert (one.name, one.label(value)) == (name, label)


def test_ticks_of_powers_have_their_own() -> None:
    powers = [1, 1000, 10_000_000, 10**9, 10**10]
    assert [tick_text("ns", power) for power in powers] == ["1 ns", "1 us", "10 ms", "1 s", "10 s"]


@pytest.mark.parametrize(
    ("least", "window"),
    [
        (1, 1),
        (1.5, 2),
        (3, 5),
        (5, 5),
        (5.01, 10),
        (34_948_003.9, 50_000_000),
        (10**15 + 1, 2 * 10**15),
    ],
)
def test_windows_are_round(least: float, window: int) -> None:
    assert round_window_ns(least) == window
    assert parse_duration("window", duration_argument(window)) == window


def test_durations_are_written_without_a_rest() -> None:
    lengths = [1, 1500, 50_000_000, 2 * 10**9, 60 * 10**9]
    assert [duration_argument(ns) for ns in lengths] == ["1ns", "1500ns", "50ms", "2s", "60s"]


def test_one_run_is_no_runs() -> None:
    one = ("a.dat", "added", "1", None)
    assert added_text("runs", [one]) == "wrote runs: 1 run added"
    assert added_text("runs", [one, one]) == "wrote runs: 2 runs added"
    assert added_text("runs", []) == "wrote runs: 0 runs added"


# A part of the time of a run: one grammar, in Python and on every command line.

# A run from 10 s to 14 s of its clock.
FIRST, LAST = 10_000_000_000, 14_000_000_000


@pytest.mark.parametrize(
    ("text", "ns", "on_clock"),
    [
        ("0s", 0, False),
        ("250ms", 250_000_000, False),
        ("1.5m", 90_000_000_000, False),
        ("@12.5s", 12_500_000_000, True),
        ("@12500000000", 12_500_000_000, True),
        ("@12.500000", 12_500_000_000, True),
        ("@0", 0, True),
        # More digits than a float has.
        ("@1764000000123456789", 1_764_000_000_123_456_789, True),
        ("@1764000000.123456789s", 1_764_000_000_123_456_789, True),
        ("@1764000000123456789ns", 1_764_000_000_123_456_789, True),
    ],
)
def test_a_time(text: str, ns: int, on_clock: bool) -> None:
    assert parse_moment("start", text) == Moment(ns, on_clock, text)


@pytest.mark.parametrize(
    ("text", "fix"),
    [("2", "2s"), ("x", "2s"), ("", "2s"), ("-1s", "2s"), ("@", "@12.5s"), ("@-5", "@12.5s")],
)
def test_no_time(text: str, fix: str) -> None:
    with pytest.raises(UsageError, match="wanted a number with ns") as caught:
        parse_moment("end", text)
    assert caught.value.slug == "bad-duration"
    assert caught.value.subject == f"end={text!r}"
    assert caught.value.fix == f"end={fix!r}"
    assert parse_moment("end", fix)


def test_a_time_beyond_64_bits() -> None:
    with pytest.raises(UsageError, match="is longer than 9223372036854775807 ns"):
        parse_moment("start", "@9223372036854775808")


@pytest.mark.parametrize("value", [2, 1.5, b"2s"])
def test_a_time_that_is_no_text(value: Any) -> None:
    for arguments in ({"start": value}, {"time_range": value}):
        with pytest.raises(UsageError, match="wanted a text such as '2s'"):
            parse_span(**arguments)


@pytest.mark.parametrize(
    ("arguments", "machine", "on_clock"),
    [
        ({}, "..", (None, None)),
        ({"start": "1s"}, "+1000000000..", (11_000_000_000, None)),
        ({"end": "@12s"}, "..12000000000", (None, 12_000_000_000)),
        ({"start": "1s", "end": "2s"}, "+1000000000..+2000000000", (11 * 10**9, 12 * 10**9)),
        ({"time_range": "1s..2s"}, "+1000000000..+2000000000", (11 * 10**9, 12 * 10**9)),
        ({"time_range": "@11s..2s"}, "11000000000..+2000000000", (11 * 10**9, 12 * 10**9)),
        ({"time_range": "..@11.5"}, "..11500000000", (None, 11_500_000_000)),
        ({"time_range": "4s.."}, "+4000000000..", (14_000_000_000, None)),
        ({"end": "2000000h"}, "..+7200000000000000000", (None, 7_200_000_010 * 10**9)),
        ({"end": "9223372036s"}, "..+9223372036000000000", (None, 2**63 - 1)),
    ],
)
def test_a_span(arguments: dict[str, str], machine: str, on_clock: tuple[int, int]) -> None:
    span = parse_span(**arguments)
    assert span.machine() == machine
    assert span.on_clock(FIRST, LAST) == on_clock
    assert bool(span) == bool(arguments)
    assert (span == WHOLE) == (not arguments)


@pytest.mark.parametrize(
    ("arguments", "slug", "subject", "fix"),
    [
        ({"time_range": "2s"}, "bad-range", "--time-range 2s", "--time-range 2s..4s"),
        ({"time_range": ".."}, "bad-range", "--time-range ..", "--time-range 2s..4s"),
        ({"time_range": "2..4"}, "bad-duration", "--time-range 2", "--time-range 2s..4s"),
        ({"time_range": "5s..5s"}, "empty-range", "--time-range 5s..5s", "--time-range 5s.."),
        ({"time_range": "@5s..@5000ms"}, "empty-range", "--time-range @5s..@5000ms",
         "--time-range @5s.."),
        ({"time_range": "4s..2s"}, "empty-range", "--time-range 4s..2s", "--time-range 2s..4s"),
        ({"start": "4s", "end": "2s"}, "empty-range", "--to 2s", "--from 2s --to 4s"),
        ({"start": "2s", "end": "2s"}, "empty-range", "--to 2s", "--from 2s"),
        ({"end": "@x"}, "bad-duration", "--to @x", "--to @12.5s"),
        ({"start": "1s", "time_range": "1s..2s"}, "two-choices", "--from 1s --time-range 1s..2s",
         "--time-range 1s..2s"),
        ({"start": "1s", "end": "3s", "time_range": "..2s"}, "two-choices",
         "--from 1s --to 3s --time-range ..2s", "--time-range ..2s"),
    ],
)  # fmt: skip
def test_what_is_wrong_at_once(
    arguments: dict[str, str], slug: str, subject: str, fix: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_span(**arguments)
    told = error_in_options(caught.value)
    assert (told.slug, told.subject, told.fix) == (slug, subject, fix)


@pytest.mark.parametrize(
    ("arguments", "subject", "message", "fix"),
    [
        ({"start": "5s"}, "--from 5s", "which is 4.000000 s after the first", "--from 0s"),
        ({"start": "@15s"}, "--from @15s", "which is at @14000000000, 4.000000 s", "--from 0s"),
        ({"time_range": "5s..6s"}, "--time-range 5s..6s", "is after the last", "--time-range 0s.."),
        ({"end": "0s"}, "--to 0s", "wanted a time after --from 0s", "--to 1s"),
        ({"end": "@9s"}, "--to @9s", "before the first event, which is at @10000000000", "--to 1s"),
        ({"time_range": "@1..@2"}, "--time-range @1..@2", "before the first", "--time-range ..1s"),
        ({"start": "2s", "end": "@11s"}, "--to @11s", "after --from 2s", "--from @11s --to 2s"),
        ({"start": "2s", "end": "@12s"}, "--to @12s", "after --from 2s", "--from 2s"),
    ],
)
def test_what_only_the_run_can_tell(
    arguments: dict[str, str], subject: str, message: str, fix: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_span(**arguments).on_clock(FIRST, LAST)
    told = error_in_options(caught.value)
    assert (told.slug, told.subject, told.fix) == ("empty-range", subject, fix)
    assert message in told.message


# --task: a tid or a pattern of names.

Cli = Callable[..., Any]


@pytest.mark.parametrize(
    ("task", "tids"),
    [
        ("dd", [11]),
        ("d*", [11]),
        ("[df]*", [11, 13]),
        ("*", [11, 13]),
        ("D*", []),
        ("13", [13]),
        (13, [13]),
        ("o'dd", []),
    ],
)
def test_choice_of_tasks(database: Path, task: str | int, tids: list[int]) -> None:
    with wbscope.open(database) as run:
        assert [row["tid"] for row in run.query("throttle_by_task", task=task)] == tids


def test_both_options_must_fit(database: Path) -> None:
    with wbscope.open(database) as run:
        assert len(run.query("throttle_by_task", tid=11, task="f*")) == 0
        assert len(run.query("throttle_by_task", tid=11, task="11")) == 1
        with pytest.raises(UsageError) as caught:
            run.query("throttle_by_task", tid=11, task="13")
    assert caught.value.slug == "two-choices"


def test_a_name_that_no_task_has_is_said(cli: Cli, database: Path) -> None:
    ran = cli("query", "throttle_by_task", database, "--task", "fo")
    assert (ran.code, ran.out) == (0, "(no rows)\n")
    line_of(ran.err, "warning[no-such-task]: --task fo ", "fio")


def test_every_filter_that_fits_nothing_is_said(cli: Cli, database: Path) -> None:
    words = ["query", "throttle_by_task", database, "--task", "dd", "--bdi", "9:9"]
    ran = cli(*words, "--json")
    assert ran.json()["rows"] == []
    (warning,) = ran.json()["warnings"][1:]
    assert warning["slug"] == "no-such-bdi"
    line_of(warning["message"], "--bdi 9:9 ", "8:0")
    tid = cli("query", "throttle_by_task", database, "--tid", "99").err
    line_of(tid, "warning[no-such-tid]: --tid 99 ", 11, 13)
    # Each fits some row, and no row fits both: there is nothing to put right.
    both = cli("query", "throttle_by_task", database, "--task", "dd", "--tid", "13").err
    assert "no-such" not in both


def test_an_empty_pattern_is_refused(cli: Cli, database: Path) -> None:
    ran = cli("query", "throttle_by_task", database, "--task", "")
    assert (ran.code, ran.err.split(":")[0]) == (2, "error[no-task]")


def test_a_query_without_tasks_says_so(cli: Cli, database: Path) -> None:
    ran = cli("query", "run_summary", database, "--task", "dd")
    assert ran.code == 2
    line_of(ran.err, "error[no-such-filter]: run_summary: ", "task")


def test_a_strange_name_is_refused(cli: Cli, database: Path) -> None:
    ran = cli("query", "throttle_by_task", database, "--task", "d\n")
    assert (ran.code, ran.err.split(":")[0]) == (2, "error[unprintable-text]")
