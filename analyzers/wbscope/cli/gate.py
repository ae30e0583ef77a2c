# SPDX-License-Identifier: Apache-2.0
"""wbscope gate: did it get worse?  The exit code is the answer."""

from __future__ import annotations

import shlex
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wbscope.base.errors import UsageError, WbscopeError
from wbscope.cli.cireports import CiReports, GithubOption, JunitOption, SarifOption
from wbscope.cli.compare import RunsOption
from wbscope.cli.exitcodes import Codes
from wbscope.cli.formats import Format
from wbscope.cli.gaterecord import (
    MaxRunsOption,
    RecordOption,
    ResumeOption,
    RunsInOption,
    check_words,
    recorded,
)
from wbscope.cli.options import (
    ForceOption,
    JsonOption,
    MarkdownOption,
    OutputOption,
    QuietOption,
)
from wbscope.cli.output import note, progress_bar
from wbscope.cli.sides import AgainstOption, BaselineOption, FacesOption, named_sides
from wbscope.cli.verdictout import tell_verdict, verdict_text

__all__ = ["gate"]

# No pause is longer: MAX_PAUSE of mm/page-writeback.c.
_BUDGET = "throttle_summary.pause_p99_ns <= 200ms"


class Mapped(StrEnum):
    """What an inconclusive gate counts as."""

    passed = "pass"
    failed = "fail"


def gate(
    runs: RunsOption = None,
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
    as_json: JsonOption = False,
    as_markdown: MarkdownOption = False,
    output: OutputOption = "-",
    force: ForceOption = False,
    quiet: QuietOption = False,
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
    form = Format(as_json=as_json, as_markdown=as_markdown, output=output, force=force)
    file = None if policy is None else Path(policy)
    asked = list(runs or []) if record is None else [str(record)]
    inputs = [*asked, *(against or []), *(baseline or [])]
    form.check(inputs)
    reports = CiReports(file, junit, sarif, github, asked)
    reports.check(force, [Path(name) for name in inputs], form.file)
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
        from wbscope.compare.gate import judge
        from wbscope.compare.load import Loader
        from wbscope.compare.policy import Policy, budget_rule, read_policy

        rules = tuple(budget_rule(text) for text in budget or ())
        if policy is None and not rules:
            words = ["wbscope", "gate", *given["A"]]
            words += ["--against", *given["B"]] if "B" in given else []
            raise UsageError(
                "no-policy",
                "gate",
                "has nothing to judge by",
                fix=f"{shlex.join(words)} --budget {shlex.quote(_BUDGET)}",
            )
        chosen = Policy(rules) if policy is None else read_policy(Path(policy))
        if policy is not None:
            chosen = replace(chosen, rules=(*chosen.rules, *rules))
        if inconclusive is not None:
            chosen = replace(chosen, inconclusive=inconclusive.value)
        # The gate refuses damaged runs itself, with all else that is wrong.
        loader = Loader(
            wanted=chosen.wants,
            watch=lambda run: progress_bar(run, hidden=quiet or as_json),
            allow_damaged=True,
            checks=chosen.checks,
        )
        chosen.check_units(loader.catalog.units())
        families = [metric.family for metric in loader.catalog.metrics]
        checked = None
        if record is not None:
            say = (lambda _: None) if quiet or as_json else note
            base_cell = against[0] if against else None
            result = recorded(record, chosen, base_cell, max_runs, runs_in, resume, say)
        elif self_check:
            from wbscope.compare.selfcheck import self_check as check_runs

            checked = check_runs(loader.side("A", given["A"]), chosen, families)
            if not as_json:
                note(checked.told())
            result = checked.decisive
        else:
            side = loader.side("A", given["A"])
            base = loader.side("B", given["B"]) if "B" in given else None
            try:
                result = judge(side, base, chosen, families)
            except UsageError as error:
                if error.slug == "no-base":
                    words = ["wbscope", "gate", "--policy", policy or "", *given["A"]]
                    error.fix = f"{shlex.join(words)} --against RUN..."
                raise
    except WbscopeError as error:
        reports.drop_earlier(error, force)
        raise
    text = verdict_text(result, checked, form, not no_faces)
    # Files first: whoever reads stdout may be gone, as `head -1` is.
    reports.write(result, force)
    tell_verdict(result, text, form, exit_codes)
