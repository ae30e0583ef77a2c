# SPDX-License-Identifier: Apache-2.0
"""Commands that a verdict of a part of the time names: their rows are of that part."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.runs import example
from wbscope.library.library import load_library

RUN = example("four-equal-writers").folder
PART = ("--from", "2s", "--to", "6s")
_RANGED = {query.name for query in load_library().queries() if "range" in query.filters}
# Verbs that take a part of the time; what a query takes, its header says.
_VERBS = ("explain", "plot")


def assert_of_part(commands: Iterable[str], wbscope: Wbscope, part: tuple[str, ...]) -> None:
    """Each takes the part if it can, and works."""
    asked = set()
    for command in commands:
        program, verb, *words = shlex.split(command)
        assert program == "wbscope"
        is_ranged = verb in _VERBS or (verb == "query" and words[0] in _RANGED)
        told = tuple(words[words.index(part[0]) :][: len(part)]) if part[0] in words else ()
        assert told == (part if is_ranged else ()), command
        if verb == "query":
            done = wbscope.run(verb, *words)
            assert done.returncode == 0, done.stderr
            asked.add(words[0])
    assert asked


def test_rows_of_the_commands_add_up_to_the_facts(wbscope: Wbscope) -> None:
    """The rows of the whole run add up to 34.6 s."""
    rows = wbscope.document("explain", RUN, *PART)["rows"]
    (one,) = (row for row in rows if row["id"] == "slow_device")
    _, _, name, *words = shlex.split(one["evidence"][0]["command"])
    lost = wbscope.document("query", name, *words)["rows"]
    total = sum(row["total_ns"] for row in lost if row["finding"] == "slow_device")
    assert total == one["cost_task_ns"] == pytest.approx(11.69e9, abs=1e7)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (PART, PART),
        (("--time-range", "2s..6s"), PART),
        (("--from", "12.5s"), ("--from", "12.5s")),
        (("--time-range", "..@18.5s"), ("--to", "@18.5s")),
    ],
    ids=" ".join,
)
def test_every_form_of_a_part_is_told(
    given: tuple[str, ...], told: tuple[str, ...], wbscope: Wbscope
) -> None:
    rows = wbscope.document("explain", RUN, *given)["rows"]
    commands = [proof["command"] for row in rows for proof in row["evidence"]]
    assert_of_part(commands, wbscope, told)
    table = wbscope.document("query", "findings", RUN, *given)["rows"]
    assert [c for row in table for c in row["evidence"].split("; ")] == commands


def test_commands_of_the_texts(wbscope: Wbscope, tmp_path: Path) -> None:
    """In one line each, so that they can be pasted."""
    texts = [
        wbscope.run(*words, *PART).stdout
        for words in (("explain", RUN), ("report", RUN), ("explain", RUN, "--markdown"))
    ]
    done = wbscope.run("report", RUN, *PART, "-o", tmp_path / "part.md")
    assert done.returncode == 0, done.stderr
    texts.append((tmp_path / "part.md").read_text())
    found = [re.findall(r"\bwbscope (?:query|explain) [^`\n]+", text) for text in texts]
    assert f"wbscope explain {RUN} {' '.join(PART)}" in found[1]
    assert_of_part([command for commands in found for command in commands], wbscope, PART)


def test_commands_of_the_page(wbscope: Wbscope, tmp_path: Path) -> None:
    done = wbscope.run("report", RUN, *PART, "-o", tmp_path / "part.html")
    assert done.returncode == 0, done.stderr
    page = html.unescape((tmp_path / "part.html").read_text())
    found = set(re.findall(r"\bwbscope (?:query|explain|plot) [^`<>\n\"{]+", page))
    assert any(command.startswith("wbscope plot ") for command in found)
    assert any("--window" in command for command in found)
    assert_of_part(found, wbscope, PART)


def test_a_run_as_a_whole_has_no_part(wbscope: Wbscope) -> None:
    for words in (("explain", RUN), ("report", RUN)):
        assert "--from" not in wbscope.run(*words).stdout
