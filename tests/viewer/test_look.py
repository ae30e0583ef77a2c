# SPDX-License-Identifier: Apache-2.0
"""`wbscope open --at`: what the UI shows first."""

from __future__ import annotations

import pytest
from wbscope.base.errors import UsageError
from wbscope.viewer.link import find_ui, parse_look

SECOND = 10**9
FIRST, LAST = 5 * SECOND, 25 * SECOND


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("10s", 14.5, 15.5),
        ("@12.5s", 12, 13),
        ("@12500000000", 12, 13),
        ("10s..12s", 14.8, 17.2),
        ("@12s..@14s", 11.8, 14.2),
        ("0s", 5, 5.5),
        ("19.9s..90s", 17.89, 25),
        ("2s..2s", 6.5, 7.5),
    ],
)
def test_a_look_stays_within_the_run(text: str, start: float, end: float) -> None:
    assert parse_look(text).on_clock(FIRST, LAST) == (round(start * SECOND), round(end * SECOND))


@pytest.mark.parametrize("text", ["21s", "21s..22s", "@1s", "@1s..@4.9s", "12s..10s"])
def test_a_time_that_the_run_does_not_have(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_look(text).on_clock(FIRST, LAST)
    assert caught.value.slug == "bad-look"


@pytest.mark.parametrize("text", ["", "12", "..", "1s..", "..1s", "a..b", "1s..2s..3s"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError):
        parse_look(text)


def test_a_link_with_a_look() -> None:
    link = find_ui().link("http://h/t", [], (12, 13))
    assert link.endswith("?url=http%3A%2F%2Fh%2Ft&visStart=12&visEnd=13")
