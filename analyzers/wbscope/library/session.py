# SPDX-License-Identifier: Apache-2.0
"""A run in an engine: canned queries, their evidence and their warnings."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import chain

from wbscope.base.errors import InputError, InternalError, QueryError
from wbscope.base.result import Notice, Result, typed_columns, unit_of
from wbscope.base.span import WHOLE, Span
from wbscope.library.engine import (
    FINDINGS,
    WARNINGS,
    Engine,
    Rows,
    Script,
    own_warnings_select,
    warnings_select,
)
from wbscope.library.evidence import is_recorded, require_events
from wbscope.library.finding import WAITS, Finding, find_all, findings_select, no_label
from wbscope.library.library import Library
from wbscope.library.params import Params, check_filters
from wbscope.library.sqlfile import Column, SqlFile
from wbscope.library.template import Label

__all__ = ["Session", "notices_of", "result_of"]

# Each takes a pass over events that no other of them makes: two threads can share them, one from
# the first on and one from the last. What takes longest, or another one needs, comes first.
_PASSES = (
    "wb_told_rate",
    "_throttle_charge",
    "_pool_sample",
    "_law_break",
    "wb_domain_sum",
    "_dirty_sum",
    "_dirtied_free_call",
    "wb_dirty_extent",
    "reclaim_work",
    "wb_busy",
    "wb_wait_request",
    "wb_work",
)
# Of these, what another thread makes while the rest is asked for, whatever is asked first.
_APART = (
    "wb_task",
    "wb_write_pair",
    "wb_blocked",
    "wb_lost_window",
    "wb_window_seq",
    "_dirty_sum",
    "_throttle_pause",
    "wb_dirty_boost",
    "wb_domain_sum",
    "_dirtied_free_call",
    "wb_throttle_cause",
    "_law_break",
    "wb_block_request",
    "wb_wait_request",
    "wb_busy",
    "wb_block_busy",
    "_outside_think",
    "wb_wait",
    "_wait_piece",
    "_loss_throttle",
    "wb_stall",
    "_loss",
    "wb_told_rate",
    "reclaim_work",
    "_pool_sample",
    "wb_work",
    "wb_dirty_extent",
)
# Queries that take longest of what then is left: another thread answers them in this order, the one
# who asks comes to them last, in the other order.
_LONG = (
    "stalls_evidence",
    "bdi_dirty",
    "bdi_control",
    "task_pauses",
    "throttle_by_task",
    "block_latency",
    "blame",
    "throttle_windows",
    "ratelimit_error",
    "stall_facts",
    "stalls",
    "stalls_by_task",
    "task_progress",
    "throttle_summary",
    "block_latency_map",
)


class Session:
    """What the library can ask; `shown` is what the user calls the run."""

    def __init__(self, engine: Engine, library: Library, shown: str) -> None:
        self.engine = engine
        self._library = library
        self._shown = shown
        # The filters of the last question; all warnings, from the second question with these on.
        self._asked: Params | None = None
        self._warned: Rows | None = None
        self._are_asked_for = False

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
        own = [file.warns] if file.warns else []
        if FINDINGS in file.needs:
            self.tell(params, label, part)
        else:
            self._share([*file.needs, *own])
        warned = self._all_warnings(params)
        told = [] if warned is None else list(_of_scope(warned, name))
        selects = [warnings_select(name, file.warns)]
        needs = [*own, WARNINGS]
        if warned is not None:
            needs = own
            selects = [own_warnings_select(view) for view in own]
        rows = self.engine.answered(name)
        if rows is None:
            needs, own, selects = (
                [*file.needs, *needs],
                [*file.needs, *own],
                [file.select, *selects],
            )
        answer = self.engine.answer(file.name, needs, own, selects) if selects else []
        if rows is None:
            rows = answer.pop(0)
        notices = (*told, *chain.from_iterable(map(notices_of, answer)))
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
        if not self.engine.works_ahead:
            return [file.name for file in files]
        recorded = self.engine.recorded
        needs = {file.name: self._needs(file) for file in files if is_recorded(file, recorded)}
        every = set(chain.from_iterable(needs.values()))
        asked = frozenset(self._library.closure(every))
        tables = [name for name in _APART if name in asked]
        long = [name for name in _LONG if name in needs]
        begun = self.engine.ahead(tables, every, shared=True, queries=long)

        def place(file: SqlFile) -> tuple[int, int]:
            """That of the last table that it waits for, -1: none; then what is answered there."""
            parts = frozenset(self._library.closure(needs.get(file.name, ())))
            last = max((at for at, name in enumerate(begun) if name in parts), default=-1)
            return last, -begun.index(file.name) if file.name in begun else -len(begun)

        return [file.name for file in sorted(files, key=place)]

    def _needs(self, file: SqlFile) -> tuple[str, ...]:
        """Of a query; findings stand on what each of their rules needs."""
        rules = self._library.findings() if FINDINGS in file.needs else ()
        return (*file.needs, *(need for rule in rules for need in rule.needs))

    def _share(self, needs: Iterable[str]) -> None:
        """Let two threads make what these need, where that are passes of more than one kind."""
        if not self.engine.works_ahead:
            return
        needs = list(needs)
        asked = self._library.closure(needs)
        passes = [name for name in _PASSES if name in asked]
        if WAITS[-1] in asked:
            passes = [*WAITS, *(name for name in passes if name not in (*WAITS, "wb_busy"))]
        if len(passes) > 1:
            self.engine.ahead(passes, needs, shared=True)

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
        (rows,) = self.engine.answer(WARNINGS, [WARNINGS], [WARNINGS], [warnings_select("*")])
        return notices_of(rows)

    def _all_warnings(self, params: Params) -> Rows | None:
        """Those of all queries; None for the first question with these filters, and if some fail.

        To plan this view takes longer than most questions, to read the rows of all queries three
        times as long as those of one.
        """
        if self._asked != params:
            self._asked, self._warned, self._are_asked_for = params, None, False
        elif not self._are_asked_for:
            self._are_asked_for = True
            select = f"SELECT scope, slug, message FROM {WARNINGS}"
            # Told by the question that it is about; the others need not ask for it again.
            with contextlib.suppress(InputError, QueryError, InternalError):
                (self._warned,) = self.engine.answer(WARNINGS, [WARNINGS], [], [select])
        return self._warned

    def script(
        self,
        names: Iterable[str],
        told: Iterable[Finding] = (),
        *,
        kept: bool = False,
        given: Collection[str] = (),
    ) -> Script:
        """What makes these views on another connection to the same run, with these findings."""
        self.engine.use(Params())
        # For a file that others get: where the run lies here is not theirs to know.
        self.engine.put(FINDINGS, findings_select(told, "RUN"))
        return self.engine.script(names, kept=kept, given=given)


def notices_of(rows: Rows) -> tuple[Notice, ...]:
    """The rows of `warnings_select` as warnings."""
    return tuple(Notice(str(slug), str(message)) for slug, message in rows[1])


def _of_scope(rows: Rows, name: str) -> Iterable[Notice]:
    """As the rows of `warnings_select`."""
    for scope, slug, message in rows[1]:
        if scope in ("*", name):
            yield Notice(str(slug), str(message))


def result_of(
    name: str, rows: Rows, warnings: tuple[Notice, ...], header: tuple[Column, ...] = ()
) -> Result:
    """A result whose units are those that the names of its columns state."""
    columns, values = rows
    units = {column: unit for column in columns if (unit := unit_of(column))}
    return Result(name, columns, units, values, warnings, typed_columns(columns, values, header))
