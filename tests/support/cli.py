# SPDX-License-Identifier: Apache-2.0
"""Runs the wbscope command and reads its JSON."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .choice import part_of
from .forkserver import run_forked
from .tools import run, wbscope_path

__all__ = ["Document", "Wbscope", "check_error", "line_of"]

Document = dict[str, Any]

_started: set[tuple[str, str]] = set()  # test modules and verbs


def check_error(text: str, slug: str, *facts: object, fix: str = "") -> None:
    """On stderr is one error of this slug; it names the facts, and this is its remedy."""
    (told,) = [line for line in text.splitlines() if line.startswith("error[")]
    assert told.startswith(f"error[{slug}]: "), text
    flat = " ".join(text.split())
    assert not [fact for fact in facts if " ".join(str(fact).split()) not in flat], text
    assert f"fix: {fix}" in flat or not fix, text


class Wbscope:
    """The command under test, with a cache of its own, on pages 80 wide. Answers are kept.

    With process=True and with $WBSCOPE each command is a process of its own, as a user's is. Else
    the first of its verb in a test module may be one, see _is_first; all others are forks of a
    process that has wbscope loaded: an import takes longer than most questions.
    """

    def __init__(self, cache: Path, process: bool = False) -> None:
        self._program = wbscope_path()
        self._process = process or "WBSCOPE" in os.environ
        self.env = dict(os.environ, WBSCOPE_CACHE_DIR=str(cache), NO_COLOR="1", COLUMNS="80")
        self._answers: dict[tuple[str, ...], Document] = {}

    def run(
        self, *arguments: str | Path, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command; the exit code is for the test to judge."""
        if self._process or _is_first(arguments):
            return run([self._program, *arguments], cwd=cwd, env=self.env)
        return run_forked([str(argument) for argument in arguments], cwd, self.env)

    def document(self, *arguments: str | Path) -> Document:
        """The JSON document that a command prints; it must succeed."""
        key = tuple(str(argument) for argument in arguments)
        if key not in self._answers:
            result = self.run(*arguments, "--json")
            assert result.returncode == 0, (
                f"wbscope {' '.join(key)} ended with {result.returncode}: {result.stderr}"
            )
            self._answers[key] = json.loads(result.stdout)
        return self._answers[key]

    def query(self, name: str, source: Path, *options: str) -> list[Document]:
        """The rows of a canned query."""
        rows: list[Document] = self.document("query", name, source, *options)["rows"]
        return rows

    def sql(self, source: Path, statement: str) -> list[Document]:
        """The rows of an SQL statement."""
        rows: list[Document] = self.document("sql", source, statement)["rows"]
        return rows


def line_of(said: str, start: str, *facts: object) -> str:
    """The one line that starts so and has these facts, whatever the words between them are."""
    patterns = [rf"(?<!\w){re.escape(str(fact))}(?!\w)" for fact in facts]
    found = [line for line in said.splitlines() if line.startswith(start)]
    found = [line for line in found if all(re.search(each, line) for each in patterns)]
    assert len(found) == 1, f"no line, or more than one, of {start!r} with {facts}: {said}"
    return found[0]


def _is_first(arguments: Sequence[str | Path]) -> bool:
    """Whether it is to be a process: the first of its verb in this module of tests.

    With --quick none is, and with --part those of an eighth of the modules for each verb.
    """
    module = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
    key = module, str(arguments[0]) if arguments else ""
    if "WBSCOPE_QUICK" in os.environ or key in _started:
        return False
    _started.add(key)
    part = os.environ.get("WBSCOPE_PART")
    return part is None or part_of(" ".join(key)) == int(part)
