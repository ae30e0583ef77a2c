# SPDX-License-Identifier: Apache-2.0
"""wbscope gate: did it get worse?  The exit code is the answer."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wbscope.base.errors import Argument, InputError, SetupError, UsageError, WbscopeError
from wbscope.base.outputs import check_output, write_whole
from wbscope.base.system import absolute
from wbscope.cli.compare import AgainstOption, BaselineOption, FacesOption, RunsOption, named_sides
from wbscope.cli.exitcodes import Codes, gate_code
from wbscope.cli.formats import write_document
from wbscope.cli.options import Output, bound
from wbscope.cli.output import (
    drop_output,
    note,
    option,
    progress_bar,
    write_stderr,
)
from wbscope.library.library import load_library

if TYPE_CHECKING:
    from wbscope.compare.gate import GateResult
    from wbscope.compare.load import Loader
    from wbscope.compare.pass_rate import Look, SelfCheck
    from wbscope.compare.policy import Policy
    from wbscope.lab.judging import Progress
    from wbscope.render.blocks import Document


_SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
# Exit codes of an error after which there is no report.
_NO_VERDICT = (UsageError.exit_code, InputError.exit_code)
# What ci/formats.py and ci/formats.py write near the start of a file.
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
        for path, name, said in (
            (self.junit, "junit.xml", "--junit"),
            (self.sarif, "gate.sarif", "--sarif"),
        ):
            if path is None:
                continue
            check_output(path, force, kept, name, said.removeprefix("--"))
            other = taken.setdefault(absolute(path), f"{said} {path}")
            if not other.startswith(said):
                raise UsageError(
                    "two-reports",
                    f"{other} {said} {path}",
                    "are one file, wanted two",
                    fix=f"{said} {name}",
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
        from wbscope.ci.formats import (
            annotation_lines,
            expected_text,
            junit_xml,
            sarif_json,
            step_summary,
        )

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


RecordOption = Annotated[
    Path | None,
    typer.Option("--record", metavar="MATRIX.toml", help="Make runs of two cells, in turns."),
]
MaxRunsOption = Annotated[
    int, typer.Option("--max-runs", help="With --record: so many runs of each side at most.")
]
RunsInOption = Annotated[
    Path, typer.Option("--runs-in", metavar="DIR", help="With --record: where the runs go.")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="With --record: go on with the runs that are there.")
]


def check_words(
    runs: Sequence[str], against: Sequence[str], baseline: Sequence[str], self_check: bool,
    policy: Path | None,
) -> None:  # fmt: skip
    """Raises: UsageError for words that mean runs which are there already."""
    given = [*runs, *(["--baseline", *baseline] if baseline else [])]
    given += ["--self-check"] if self_check else []
    if given or len(against) > 1:
        raise UsageError(
            "two-ways", "--record", "makes the runs of both sides, so there is no place for others",
            have=" ".join(given or against),
            fix="wbscope gate --policy gate.toml --record MATRIX.toml --against CELL",
        )  # fmt: skip
    if policy is None:
        raise UsageError(
            "no-policy", "--record", "makes runs until a policy decides, and there is none",
            fix="wbscope gate --policy gate.toml --record MATRIX.toml",
        )  # fmt: skip


def recorded(
    matrix_file: Path, policy: Policy, base: str | None, most: int, folder: Path, resume: bool,
    say: Callable[[str], None],
) -> GateResult:  # fmt: skip
    """The verdict of the last look.

    Raises: as `wbscope lab` and the gate do.
    """
    from wbscope.compare.load import Loader
    from wbscope.compare.pass_rate import look_sizes, until_decided
    from wbscope.lab.judging import GateRuns, two_cells
    from wbscope.lab.matrix import MOST_RUNS, read_matrix
    from wbscope.lab.places import Places
    from wbscope.lab.store import opened

    if not 1 <= most <= MOST_RUNS:
        raise UsageError(
            "bad-count", f"--max-runs {most}", f"wanted 1 to {MOST_RUNS}", fix="--max-runs 24"
        )
    matrix = read_matrix(matrix_file)
    side, first = two_cells(matrix, base)
    planned = ", ".join(map(str, look_sizes(most)))
    say(f"{side.name} against {first.name}: a look after {planned} runs of each at most")
    places = Places(load_library(), say)
    for cell in matrix.cells:
        places.check(cell.setup)
    loader = Loader(wanted=policy.wants, allow_damaged=True, checks=policy.checks)
    families = [metric.family for metric in loader.catalog.metrics]
    try:
        with opened(folder, matrix, resume) as store:
            make = GateRuns(matrix, store, places, loader, lambda one: say(_run_line(one)), base)
            return until_decided(make, policy, families, most, lambda one: say(_look_line(one)))
    except WbscopeError as error:
        raise error.spoken(_in_gate) from error


def _in_gate(argument: Argument) -> str:
    """The lab's folder is no output here."""
    if argument.name == "output":
        return option(Argument("runs_in", argument.value))
    return option(argument)


def _run_line(progress: Progress) -> str:
    told = f": {progress.why}" if progress.why else ""
    return f"{progress.job.name}: {progress.seconds:.0f} s{told}"


def _look_line(look: Look) -> str:
    return f"look after {look.runs} + {look.runs} runs: {look.status} (level {look.level:.2g})"


def tell_verdict(result: GateResult, made: Document, out: Output, codes: Codes) -> None:
    """Raises: typer.Exit with the exit code, unless it passed."""
    try:
        write_document(made, out, told=f": {result.status}", pager=False)
    except BrokenPipeError:
        drop_output(sys.stdout)  # the exit code is the answer
    if (code := gate_code(result, codes)) != 0:
        raise typer.Exit(code)


# No pause is longer: MAX_PAUSE of mm/page-writeback.c.
_BUDGET = "throttle_summary.pause_p99_ns <= 200ms"


class Mapped(StrEnum):
    """What an inconclusive gate counts as."""

    passed = "pass"
    failed = "fail"


@bound
def gate(
    runs: RunsOption = None,
    *,
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="FILE", help="A policy in TOML.")
    ] = None,
    against: AgainstOption = None,
    baseline: BaselineOption = None,
    budget: Annotated[
        list[str] | None,
        typer.Option("--budget", metavar="RULE", help="E.g. 'pause_p99_ns <= 100ms'."),
    ] = None,
    inconclusive: Annotated[
        Mapped | None, typer.Option(help="Count not enough evidence as this.")
    ] = None,
    exit_codes: Annotated[
        Codes, typer.Option("--exit-codes", help="bisect: as git bisect run reads them.")
    ] = Codes.ci,
    self_check: Annotated[
        bool, typer.Option("--self-check", help="The runs against themselves: is it steady?")
    ] = False,
    record: RecordOption = None,
    max_runs: MaxRunsOption = 24,
    runs_in: RunsInOption = Path("gate-runs"),
    resume: ResumeOption = False,
    junit: JunitOption = None,
    sarif: SarifOption = None,
    github: GithubOption = False,
    no_faces: FacesOption = False,
    out: Output,
) -> None:
    """Judge runs by a policy: PASS, FAIL, WORSE or INCONCLUSIVE.

    Exit code 0 passed, 1 failed, 4 worse, not enough evidence or runs that are
    not comparable, 2 usage, 3 a run is missing or damaged, 5 environment.
    docs/compare.md has the policy file, docs/ci.md what CI systems read.

    \b
    Examples:
      wbscope gate --policy gate.toml new/run* --against old/run*
      wbscope gate --policy gate.toml new --baseline old.json
      wbscope gate RUN --budget 'throttle_summary.pause_p99_ns <= 100ms'
      wbscope gate --policy gate.toml new --against old --inconclusive pass
      wbscope gate --policy gate.toml new --against old --junit gate.xml --github
      wbscope gate --policy gate.toml old --self-check
      wbscope gate --policy gate.toml --record two-kernels.toml --max-runs 30
      git bisect run sh -c './run.sh || exit 125;
        wbscope gate ... --exit-codes bisect'
    """
    file = None if policy is None else Path(policy)
    asked = list(runs or []) if record is None else [str(record)]
    inputs = [*asked, *(against or []), *(baseline or [])]
    out.check(inputs, noun="gate")
    reports = CiReports(file, junit, sarif, github, asked)
    reports.check(out.force, [Path(name) for name in inputs], out.file)
    checked = None
    try:
        if record is not None:
            check_words(runs or [], against or [], baseline or [], self_check, file)
            given = {"A": asked}
        else:
            given = named_sides(runs or [], against, baseline, None, "gate")
        if self_check and "B" in given:
            raise UsageError(
                "two-choices",
                "--self-check",
                "judges runs against themselves, so there is nothing to be --against",
                fix="wbscope gate --policy gate.toml RUN... --self-check",
            )
        chosen = _policy(file, budget or [], inconclusive, given)
        if record is not None:
            say = (lambda _: None) if out.hidden else note
            base_cell = against[0] if against else None
            result = recorded(record, chosen, base_cell, max_runs, runs_in, resume, say)
        elif self_check:
            checked = _self_checked(given["A"], chosen, out)
            if not out.as_json:
                note(checked.told())
            result = checked.decisive
        else:
            result = _judged(given, chosen, policy or "", out)
    except WbscopeError as error:
        reports.drop_earlier(error, out.force)
        raise
    from wbscope.render.gate import gate_document

    # Files first: whoever reads stdout may be gone, as `head -1` is.
    reports.write(result, out.force)
    tell_verdict(result, gate_document(result, checked, not no_faces), out, exit_codes)


def _policy(
    file: Path | None,
    budget: Sequence[str],
    inconclusive: Mapped | None,
    given: Mapping[str, Sequence[str]],
) -> Policy:
    """That of the file, with budgets and what an inconclusive gate counts as."""
    from wbscope.compare.policy import Policy, budget_rule, read_policy

    rules = tuple(budget_rule(text) for text in budget)
    if file is None and not rules:
        words = ["wbscope", "gate", *given["A"]]
        words += ["--against", *given["B"]] if "B" in given else []
        raise UsageError(
            "no-policy",
            "gate",
            "has nothing to judge by",
            fix=f"{shlex.join(words)} --budget {shlex.quote(_BUDGET)}",
        )
    chosen = Policy(()) if file is None else read_policy(file)
    chosen = replace(chosen, rules=(*chosen.rules, *rules))
    return chosen if inconclusive is None else replace(chosen, inconclusive=inconclusive.value)


def _loaded(chosen: Policy, out: Output) -> tuple[Loader, list[str]]:
    """What loads runs for a policy, and the families of metrics."""
    from wbscope.compare.load import Loader

    # The gate refuses damaged runs itself, with all else that is wrong.
    loader = Loader(
        wanted=chosen.wants,
        watch=lambda run: progress_bar(run, hidden=out.hidden),
        allow_damaged=True,
        checks=chosen.checks,
    )
    chosen.check_units(loader.catalog.units())
    return loader, [metric.family for metric in loader.catalog.metrics]


def _self_checked(runs: Sequence[str], chosen: Policy, out: Output) -> SelfCheck:
    from wbscope.compare.pass_rate import self_check

    loader, families = _loaded(chosen, out)
    return self_check(loader.side("A", runs), chosen, families)


def _judged(
    given: Mapping[str, Sequence[str]], chosen: Policy, policy: str, out: Output
) -> GateResult:
    from wbscope.compare.gate import judge

    loader, families = _loaded(chosen, out)
    side = loader.side("A", given["A"])
    base = loader.side("B", given["B"]) if "B" in given else None
    try:
        return judge(side, base, chosen, families)
    except UsageError as error:
        if error.slug == "no-base":
            words = ["wbscope", "gate", "--policy", policy, *given["A"]]
            error.fix = f"{shlex.join(words)} --against RUN..."
        raise
