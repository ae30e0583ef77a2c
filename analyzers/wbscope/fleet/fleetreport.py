# SPDX-License-Identifier: Apache-2.0
"""The report over a dataset: what is wrong, in how many runs, where, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wbscope.base.errors import EvidenceError
from wbscope.base.result import Notice, Result
from wbscope.fleet.cluster.hadoopfiles import is_uri
from wbscope.fleet.dataset import ingest_fix
from wbscope.fleet.fleetsql import SECTIONS, FleetEngine, answer, report_query
from wbscope.fleet.layout import RUNS, UNKNOWN

__all__ = ["FleetReport", "report_of"]

_HEAD, _PROBLEMS, _ERRORS = "overview", "problems", "errors"


@dataclass(frozen=True)
class FleetReport:
    """The answers by section, in the order in which they are told, and their titles."""

    dataset: str
    sections: Mapping[str, Result]
    titles: Mapping[str, str]
    warnings: tuple[Notice, ...]

    @property
    def head(self) -> dict[str, Any]:
        """The row of the overview."""
        (row,) = self.sections[_HEAD].records()
        return row


def report_of(engine: FleetEngine, dataset: str, master: str | None = None) -> FleetReport:
    """Ask all sections.

    Raises: EvidenceError for a dataset without runs; QueryError.
    """
    sections = {name: answer(engine, name) for name in SECTIONS}
    sections[_PROBLEMS] = _named(engine, sections[_PROBLEMS])
    titles = {name: report_query(name).title for name in SECTIONS}
    head = sections[_HEAD].records()[0]
    if not head["runs_count"]:
        raise EvidenceError(
            "no-runs",
            dataset,
            "has no runs yet",
            have=f"{_errors(sections[_ERRORS])} sources that could not be read",
            fix=ingest_fix(dataset, master if is_uri(dataset) else None),
        )
    warnings = _warnings(head, _errors(sections[_ERRORS]))
    return FleetReport(dataset, sections, titles, (*engine.losses, *warnings))


def _named(engine: FleetEngine, problems: Result) -> Result:
    """Runs are labelled with what they are called; of no known machine also with their source."""
    listed = sorted({row["run"] for row in problems.records()})
    if not listed:
        return problems
    texts = ", ".join(f"'{run}'" for run in listed)  # hashes: of layout.RUN_ID
    sql = f"SELECT run, name, source, host FROM {RUNS} WHERE run IN ({texts})"
    _, rows = engine.select(sql, [RUNS])
    names = {}
    for run, name, source, host in rows:
        where = f" ({source})" if source and source != name and host == UNKNOWN else ""
        names[run] = f"{name or run}{where}"
    return replace(problems, labels={"run": names})


def _errors(result: Result) -> int:
    return sum(row["errors_count"] for row in result.records())


def _warnings(head: Mapping[str, Any], errors: int) -> Iterator[Notice]:
    """What holds for all numbers, besides what runs lost."""
    of = f"of {head['runs_count']} runs"
    if count := head["faulty_count"]:
        yield Notice("checks-differ", f"{count} {of} disagree with what was counted beside them")
    if errors:
        yield Notice("ingest-errors", f"{errors} sources could not be read; see the last table")
    if count := head["unnamed_count"]:
        yield Notice("unknown-host", f"{count} {of} do not tell their machine: they count as one")
    if (count := head["versions_count"]) > 1:
        yield Notice("several-versions", f"{count} versions of wbscope asked these runs")
