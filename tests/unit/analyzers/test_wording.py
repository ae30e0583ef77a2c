# SPDX-License-Identifier: Apache-2.0
"""Errors and warnings name arguments in Python, and options on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.cli import line_of
from wbscope.base.errors import Argument, Phrase, UsageError
from wbscope.base.result import Notice, Result
from wbscope.cli.output import answer_in_options, option, warnings_in_options

Cli = Callable[..., Any]


@pytest.mark.parametrize(
    ("argument", "in_python", "in_options"),
    [
        (Argument("window", "abc"), "window='abc'", "--window abc"),
        (Argument("start"), "start", "--from"),
        (Argument("end", "2 s"), "end='2 s'", "--to '2 s'"),
        (Argument("bdi", ""), "bdi=''", "--bdi ''"),
        (Argument("tid", 7), "tid=7", "--tid 7"),
        (Argument("force", True), "force=True", "--force"),
        (Argument("output", Path("a b.db")), "output='a b.db'", "-o 'a b.db'"),
        (Argument("time_range", "@5s.."), "time_range='@5s..'", "--time-range @5s.."),
        (Argument("events", ["a:*", "b"]), "events=['a:*', 'b']", "--events 'a:*' --events b"),
        (Argument("metrics", ["p99"]), "metrics=['p99']", "--metric p99"),
    ],
)
def test_an_argument_in_both_languages(argument: Argument, in_python: str, in_options: str) -> None:
    assert str(argument) == in_python
    assert option(argument) == in_options


def test_a_phrase_is_a_text() -> None:
    phrase = Phrase("wait, or leave out ", Argument("sysctl"))
    assert phrase == "wait, or leave out sysctl"
    assert f"{phrase}" == "wait, or leave out sysctl"
    assert phrase.spoken(option) == "wait, or leave out --sysctl"


def test_all_texts_of_an_error_are_said_in_options() -> None:
    error = UsageError(
        "slug",
        Phrase(Argument("end", "1s")),
        Phrase("is before ", Argument("start")),
        at="line 1",
        have=Phrase(Argument("window")),
        fix=Phrase(Argument("end", "2s")),
    ).with_path("line", "place")
    assert str(error) == "end='1s': is before start"
    told = error.spoken(option)
    assert str(told) == "--to 1s: is before --from"
    assert told.details() == [("at", "place 1"), ("have", "--window"), ("fix", "--to 2s")]
    assert type(told) is UsageError


def test_warnings_are_said_in_options() -> None:
    notice = Notice("slug", Phrase(Argument("bdi", "8:0"), " fits no row"), "run 1")
    plain = Notice("other", "5 events were lost")
    (first, second) = warnings_in_options([notice, plain])
    assert first == Notice("slug", "--bdi 8:0 fits no row", "run 1")
    assert second is plain
    assert notice.message == "bdi='8:0' fits no row"
    result = Result("name", (), {}, [], (notice,))
    assert answer_in_options(result).warnings == (first,)


def test_the_same_error_for_both(database: Path, cli: Cli) -> None:
    with wbscope.open(database) as run, pytest.raises(UsageError) as caught:
        run.query("windows", window="abc")
    assert str(caught.value).startswith("window='abc': is not a duration")
    assert caught.value.fix == "window='2s'"
    ran = cli("query", "windows", database, "--window", "abc")
    assert ran.code == 2
    assert ran.err.startswith("error[bad-duration]: --window abc: ")
    assert "  fix: --window 2s" in ran.err


def test_the_same_warning_for_both(database: Path, cli: Cli) -> None:
    with wbscope.open(database) as run:
        warnings = run.query("throttle_by_task", tid=99).warnings
    (told,) = [notice for notice in warnings if "no-such" in notice.slug]
    assert told.message == "tid=99 fits no row; there are 11, 13"
    words = ("query", "throttle_by_task", database, "--tid", "99")
    document = json.loads(cli(*words, "--json").out)
    messages = [notice["message"] for notice in document["warnings"]]
    assert "--tid 99 fits no row; there are 11, 13" in messages
    line_of(cli(*words).err, "warning[no-such-tid]: --tid 99 ", 11, 13)
    assert "--tid 99 fits no row" in cli(*words, "--markdown").out
