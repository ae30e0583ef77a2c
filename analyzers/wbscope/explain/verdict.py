# SPDX-License-Identifier: Apache-2.0
"""The verdict of a run: its findings, and whether they may be believed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from wbscope.base.arguments import Argument
from wbscope.base.filenames import join
from wbscope.base.result import Notice
from wbscope.base.span import WHOLE, Span
from wbscope.library.finding import NO_VERDICT, Finding
from wbscope.run.filters import Filters
from wbscope.run.run import Run

__all__ = ["MOST_SENTENCES", "Verdict", "verdict_of"]

# More than anybody reads; the rest is told as a number.
MOST_SENTENCES = 8
_FACT = "fact"
_SUMMARY = "run_summary"


@dataclass(frozen=True)
class Verdict:
    """What has to be told of a run, what matters most first.

    `facts` say what the run was and whether writers shared fairly; they end the story. `start_ns`
    is the run's first event on the trace clock, `part_ns` the part that this is of, from there,
    and `part` how that was written.
    """

    run: str
    findings: tuple[Finding, ...]
    facts: tuple[Finding, ...]
    warnings: tuple[Notice, ...]
    summary: tuple[tuple[str, str], ...]
    start_ns: int
    part_ns: tuple[int, int] | None = None
    part: Span = WHOLE

    @property
    def is_whole(self) -> bool:
        """Whether a verdict can be given: little is lost, and the clock tells the time."""
        return not any(one.id == NO_VERDICT for one in self.findings)

    @property
    def first(self) -> Finding | None:
        """What has to be told before anything else; None where no rule could be asked."""
        return next(iter((*self.findings, *self.facts)), None)

    @property
    def title(self) -> str:
        """That in a few words."""
        return (
            self.first.title if self.first is not None else "no verdict, for no rule could be asked"
        )

    def sentences(self) -> tuple[Finding, ...]:
        """Those that are told: of the findings so many that the facts have room."""
        room = max(MOST_SENTENCES - len(self.facts), 1)
        return (*self.findings[:room], *self.facts)[:MOST_SENTENCES]

    def command(self, verb: str, *words: str, of_part: bool = True) -> str:
        """What a user types to see more, of the same part of the time where it takes one."""
        part = [word for option in self.part.options() for word in option] if of_part else []
        return join(["wbscope", verb, *words, self.run, *part])

    def spoken(self, say: Callable[[Argument], str]) -> Verdict:
        """The same with other words for arguments: options, on a command line."""
        return replace(self, warnings=tuple(notice.spoken(say) for notice in self.warnings))

    @property
    def left_out_count(self) -> int:
        """Findings beyond those."""
        return len(self.findings) + len(self.facts) - len(self.sentences())


def verdict_of(run: Run, span: Span = WHOLE) -> Verdict:
    """Ask all rules for the whole run or a part of it.

    Raises: UsageError for a part that no event can be in.
    """
    found = run.findings(span)
    summary = run.ask(_SUMMARY, Filters())
    first, last = run.bounds()
    part = None
    if span:
        t0_ns, t1_ns = run.on_clock(span)
        start = first if t0_ns is None else t0_ns
        part = (start - first, (last + 1 if t1_ns is None else t1_ns) - first)
    return Verdict(
        run=run.name,
        findings=tuple(one for one in found if one.severity != _FACT),
        facts=tuple(one for one in found if one.severity == _FACT),
        warnings=(*run.warnings(), *run.outside(span)),
        summary=tuple((str(key), str(value)) for key, value in summary.rows),
        start_ns=first,
        part_ns=part,
        part=span,
    )
