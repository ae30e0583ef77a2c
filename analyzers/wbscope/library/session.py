# SPDX-License-Identifier: Apache-2.0
"""A run in an engine: canned queries, their evidence and their warnings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from wbscope.base.errors import InputError, InternalError
from wbscope.base.result import Column, Notice, Result, typed_columns, unit_of
from wbscope.base.span import WHOLE, Span
from wbscope.library.engine import FINDINGS, WARNINGS, Engine, Rows, Script
from wbscope.library.finding import (
    Finding,
    find_all,
    findings_select,
    is_recorded,
    no_label,
    require_events,
)
from wbscope.library.library import Library
from wbscope.library.params import Params, check_filters
from wbscope.library.rules import Label
from wbscope.library.sqlfile import SqlFile


class Session:
    """What the library can ask; `shown` is what the user calls the run."""

    def __init__(self, engine: Engine, library: Library, shown: str) -> None:
        self.engine = engine
        self._library = library
        self._shown = shown
        # What holds for every number with the filters of the last question.
        self._general: dict[Params, tuple[Notice, ...]] = {}

    def query(
        self,
        name: str,
        params: Params | None = None,
        label: Label = no_label,
        part: Span = WHOLE,
    ) -> Result:
        """Run a canned query after checking that its events were recorded.

        `label` has the names that texts of findings use, `part` is how the part of the time was
        written that their commands name.
        Raises: QueryError, EvidenceError; UsageError for a filter that the query does not take.
        """
        params = params or Params()
        file = self._library.query(name)
        instead = [self._library.query(other) for other in file.instead]
        require_events(file, self.engine.recorded, self._shown, self._library.profiles, instead)
        check_filters(file, params.filters())
        self.engine.use(params)
        if FINDINGS in file.needs:
            self.tell(params, label, part)
        every = None if params in self._general else self._library.files[WARNINGS]
        warned = [one.warns for one in (file, every) if one and one.warns]

        def ask(made: str | None) -> list[Rows]:
            """The rows, which may be `made` already, then the warnings."""
            reads = [*(() if made else file.needs), *file.warns_needs]
            needs = [*reads, *(every.warns_needs if every else ())]
            return self.engine.answer(name, needs, reads, [made or file.select, *warned])

        if made := self.engine.answered(name):
            try:
                rows, *answer = ask(made)
            except (InputError, InternalError):  # the file with the rows is damaged
                made = None
        if not made:
            rows, *answer = ask(None)
        if every:
            self._general = {params: notices_of(answer.pop()) if every.warns else ()}
        notices = (*self._general[params], *chain.from_iterable(map(notices_of, answer)))
        result = result_of(name, rows, notices, file.columns)
        start_ns = self.engine.recorded.meta.get("first_ts")
        return replace(result, start_ns=start_ns, keys=file.keys, first=file.first)

    def expect(self, names: Iterable[str], params: Params | None = None) -> list[str]:
        """All these queries will be asked with these filters: let another thread make a part.

        Returns them in an order in which what they need is there early.
        Raises: QueryError.
        """
        files = [self._library.query(name) for name in names]
        self.engine.use(params or Params())
        recorded = self.engine.recorded
        lacking = [file.name for file in files if not is_recorded(file, recorded)]
        needs = {file.name: self._needs(file) for file in files if file.name not in lacking}
        return [*lacking, *self.engine.expect(needs)]

    def begin(self, views: Iterable[str]) -> None:
        """These views will be asked for without filters."""
        self.engine.use(Params())
        self.engine.expect({view: [view] for view in views})

    def _needs(self, file: SqlFile) -> tuple[str, ...]:
        """Of a query; findings stand on what each of their rules needs."""
        rules = self._library.findings() if FINDINGS in file.needs else ()
        return (*file.needs, *(need for rule in rules for need in rule.needs))

    def tell(self, params: Params, label: Label = no_label, part: Span = WHOLE) -> None:
        """Let wb_finding have the findings in words."""
        found = self.findings(params, label, part)
        self.engine.put(FINDINGS, findings_select(found, self._shown))

    def findings(
        self, params: Params | None = None, label: Label = no_label, part: Span = WHOLE
    ) -> list[Finding]:
        """What is worth telling of the run, what has to be told first to begin with."""
        return find_all(self.engine, self._library, params or Params(), label, part)

    def warnings(self) -> tuple[Notice, ...]:
        """What holds for every number of this run: lost events, damage."""
        self.engine.use(Params())
        view = self._library.files[WARNINGS]
        needs = view.warns_needs
        (rows,) = self.engine.answer(WARNINGS, needs, needs, [view.warns])
        return notices_of(rows)

    def script(
        self,
        names: Iterable[str],
        told: Iterable[Finding] = (),
        *,
        kept: bool = False,
    ) -> Script:
        """What makes these views on another connection to the same run, with these findings."""
        self.engine.use(Params())
        # For a file that others get: where the run lies here is not theirs to know.
        self.engine.put(FINDINGS, findings_select(told, "RUN"))
        return self.engine.script(names, kept=kept)


def notices_of(rows: Rows) -> tuple[Notice, ...]:
    """Slug and message of each row."""
    return tuple(Notice(str(slug), str(message)) for slug, message in rows[1])


def result_of(
    name: str, rows: Rows, warnings: tuple[Notice, ...], header: tuple[Column, ...] = ()
) -> Result:
    """A result whose units are those that the names of its columns state."""
    columns, values = rows
    units = {column: unit for column in columns if (unit := unit_of(column))}
    return Result(name, columns, units, values, warnings, typed_columns(columns, values, header))
