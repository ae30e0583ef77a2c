# SPDX-License-Identifier: Apache-2.0
"""Colours are for a terminal that shows them: none in a pipe, on a dumb one, with NO_COLOR."""

from __future__ import annotations

import os
import pty
import re
import threading
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.forkserver import run_forked_on
from support.runs import REPOSITORY, example
from support.waits import GUARD_SECONDS
from wbscope.cli.output import coloured, keeps_colours
from wbscope.cli.verbs import VERBS

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
