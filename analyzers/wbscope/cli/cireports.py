# SPDX-License-Identifier: Apache-2.0
"""The options of `gate` that write for CI systems."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wbscope.base.current import absolute
from wbscope.base.errors import InputError, SetupError, UsageError, WbscopeError
from wbscope.base.outputs import check_output, write_whole
from wbscope.cli.output import note, write_stderr

if TYPE_CHECKING:
    from wbscope.compare.gate import GateResult

__all__ = ["CiReports", "GithubOption", "JunitOption", "SarifOption"]

_SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
# Exit codes of an error after which there is no report.
_NO_VERDICT = (UsageError.exit_code, InputError.exit_code)
# What ci/junit.py and ci/sarif.py write near the start of a file.
_MARKS = (b'<testsuites name="wbscope"', b'"name": "wbscope"')
_MARK_BYTES = 1 << 12

JunitOption = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML.")
]
SarifOption = Annotated[
    Path | None, typer.Option("--sarif", metavar="FILE", help="Write SARIF 2.1.0.")
]
GithubOption = Annotated[
    bool,
    typer.Option("--github", help="Annotations on stderr, the verdict to $GITHUB_STEP_SUMMARY."),
]


@dataclass(frozen=True)
class CiReports:
    """What to write besides the verdict on stdout; places are lines of the policy.

    runs  what is judged, as given: the place where there is no policy
    """

    policy: Path | None = None
    junit: Path | None = None
    sarif: Path | None = None
    github: bool = False
    runs: Sequence[str] = ()

    def check(self, force: bool, inputs: Iterable[Path], output: Path | None) -> None:
        """Errors that are known before any work; `output` is where the verdict goes."""
        kept = [*inputs, *([] if self.policy is None else [self.policy])]
        taken = {} if output is None else {absolute(output): f"-o {output}"}
        for path, name, option in (
            (self.junit, "junit.xml", "--junit"),
            (self.sarif, "gate.sarif", "--sarif"),
        ):
            if path is None:
                continue
            check_output(path, force, kept, name, option.removeprefix("--"))
            other = taken.setdefault(absolute(path), f"{option} {path}")
            if not other.startswith(option):
                raise UsageError(
                    "two-reports",
                    f"{other} {option} {path}",
                    "are one file, wanted two",
                    fix=f"{option} {name}",
                )
        if self.github and (summary := os.environ.get(_SUMMARY_VARIABLE)):
            _append_summary(summary, "")

    def drop_earlier(self, error: WbscopeError, force: bool) -> None:
        """No report of another day stays where wrong usage or input left no verdict (docs/ci.md).

        Of a full disk, or of a kill, the earlier ones stay whole; so does what is no report.
        """
        if force and error.exit_code in _NO_VERDICT:
            for path in (self.junit, self.sarif):
                if path is not None and _is_report(path):
                    _remove(path)

    def write(self, result: GateResult, force: bool) -> None:
        """Everything that was asked for; each file is there whole or not at all."""
        from wbscope.ci.expected import expected_text
        from wbscope.ci.github import annotation_lines, step_summary
        from wbscope.ci.junit import junit_xml
        from wbscope.ci.sarif import sarif_json

        for path, text in (
            (self.junit, junit_xml(result, self.policy)),
            (self.sarif, sarif_json(result, self.policy, self.runs)),
        ):
            if path is not None:
                write_whole(path, text, force=force)
                note(f"wrote {path}")
        expected = expected_text(result) if self.github or self.junit or self.sarif else None
        if expected is not None:
            note(expected)
        if self.github:
            for line in annotation_lines(result, self.policy):
                write_stderr(line)
            if summary := os.environ.get(_SUMMARY_VARIABLE):
                _append_summary(summary, step_summary(result, expected))


def _is_report(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            start = file.read(_MARK_BYTES)
    except OSError:
        return False
    return any(mark in start for mark in _MARKS)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise SetupError(
            "cannot-write",
            str(path),
            f"cannot be removed: {error.strerror or error}",
            fix=f"ls -ld {shlex.quote(str(path.parent))}",
        ) from error


def _append_summary(name: str, markdown: str) -> None:
    """Other commands of the step may have written there before."""
    try:
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(markdown)
    except OSError as error:
        raise SetupError(
            "cannot-write",
            name,
            f"cannot be written: {error.strerror or error}",
            have=f"the name is from ${_SUMMARY_VARIABLE}",
            fix=f"unset {_SUMMARY_VARIABLE}, or leave out --github",
        ) from error
