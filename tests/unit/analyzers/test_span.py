# SPDX-License-Identifier: Apache-2.0
"""A part of the time of a run: one grammar, in Python and on every command line."""

from __future__ import annotations

from typing import Any

import pytest
from wbscope.base.errors import UsageError
from wbscope.base.span import WHOLE, Moment, parse_moment, parse_span
from wbscope.cli.output import error_in_options

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
