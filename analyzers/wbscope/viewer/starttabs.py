# SPDX-License-Identifier: Apache-2.0
"""The tabs that the UI shows at start: the verdict of the run, and who was throttled.

What they say is in the commands, as rows of literals: the verdict of `wbscope explain`, to the
letter. A file that is opened without its run has it as slices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from wbscope.base.errors import EvidenceError
from wbscope.base.result import Result
from wbscope.base.span import WHOLE, Span
from wbscope.base.taskname import task_words
from wbscope.base.units import format_value
from wbscope.explain.verdict import Verdict, verdict_of
from wbscope.library.finding import Finding
from wbscope.library.params import quote_any
from wbscope.render.arrange import arranged, main_rows
from wbscope.render.cells import body, headings
from wbscope.render.printable import printable
from wbscope.render.verdicttext import head_line
from wbscope.run.filters import Filters
from wbscope.run.run import Run
from wbscope.viewer.commands import Command

__all__ = ["file_summary", "literals", "shortened", "summaries_of_two", "summary_commands"]

Row = tuple[str, ...]

_QUERY = "throttle_by_task"
_COLUMNS = (
    "tid", "comm", "bdi", "cgroup_ino", "throttled_ratio", "slept_total_ns", "call_max_ns",
    "pause_max_ns", "pauses_count", "dirtied_estimate_bytes", "written_bytes",
)  # fmt: skip
_MOST_TASKS = 10
_TOLD_TASKS = 4
# A name in a sentence may be as long as a path.
_MOST_CHARACTERS = 400

_VERDICT = ("severity", "lost", "verdict")
# A UI of v52 shows the beginning of a query in place of the tab's title.
_SAID = "/* wbscope: what is wrong, what to do, who was throttled */ "
_SAID_OF_TASKS = "/* wbscope: who was throttled */ "

# Of the track that wbscope puts above all others: see sql/timelines/verdict.sql.
_FROM_FILE = """
WITH verdict AS (
  SELECT
    coalesce(extract_arg(s.arg_set_id, 'debug.severity'), '') AS severity,
    extract_arg(s.arg_set_id, 'debug.cost_task_ns') AS cost,
    CASE t.name WHEN 'Writeback' THEN '' ELSE substr(t.name, 1, 3) END
      || extract_arg(s.arg_set_id, 'debug.text') AS said,
    extract_arg(s.arg_set_id, 'debug.advice') AS advice
  FROM slice AS s
  JOIN track AS t ON t.id = s.track_id
  WHERE (t.name = 'Writeback' OR t.name GLOB '[AB]: *')
    AND extract_arg(s.arg_set_id, 'debug.rule') IS NOT NULL
),
waiter AS (
  SELECT
    coalesce(h.name, 'tid') || ' ' || h.tid AS task,
    sum(extract_arg(s.arg_set_id, 'debug.own_ns')) AS total,
    max(s.dur) AS longest,
    count(*) AS n
  FROM slice AS s
  JOIN thread_track AS t ON t.id = s.track_id
  JOIN thread AS h USING (utid)
  WHERE t.name = 'Writeback stalls' AND extract_arg(s.arg_set_id, 'debug.kind') = 'throttle'
  GROUP BY h.utid
  ORDER BY total DESC
  LIMIT 10
),
line AS (
  SELECT 1 AS place, cost, severity, said FROM verdict
  UNION ALL
  SELECT 2, cost, 'to do', advice FROM verdict WHERE advice IS NOT NULL
  UNION ALL
  SELECT 3, total, 'task', printf(
    '%s was throttled %d times for %.3g s in all, at most %.3g s', task, n, total / 1e9,
    longest / 1e9
  )
  FROM waiter
  UNION ALL
  SELECT 4, 0, '', 'this file has no verdict: open its run with wbscope open'
  WHERE NOT EXISTS (SELECT 1 FROM verdict)
)
SELECT DISTINCT
  severity,
  CASE WHEN cost > 0 AND severity <> 'to do' THEN printf('%.3g s', cost / 1e9) ELSE '' END
    AS lost,
  said AS verdict
FROM line
ORDER BY place, cost DESC
"""


def summary_commands(run: Run, span: Span = WHOLE) -> list[Command]:
    """The verdict and who was throttled; the tab of the verdict is in front."""
    tasks = _tasks(run, span)
    wrong, facts = _verdict_rows(verdict_of(run, span))
    return [
        *_task_table([("", tasks)]),
        _table(_SAID, _VERDICT, [*wrong, *_told_tasks(tasks), *facts], "Verdict"),
    ]


def summaries_of_two(runs: Mapping[str, Run], span: Span = WHOLE) -> list[Command]:
    """The same of several runs, by the names of their groups."""
    tasks = {name: _tasks(run, span) for name, run in runs.items()}
    first: list[Row] = []
    rest: list[Row] = []
    for name, run in runs.items():
        wrong, facts = _verdict_rows(verdict_of(run, span))
        first += [(name, *row) for row in wrong]
        rest += [(name, *row) for row in (*_told_tasks(tasks[name]), *facts)]
    return [
        *_task_table(list(tasks.items())),
        _table(_SAID, ("group", *_VERDICT), [*first, *rest], "Verdicts"),
    ]


def file_summary() -> Command:
    """The same of a timeline without its run, as far as the file tells."""
    return Command("RunQueryAndShowTab", (f"{_SAID}{_FROM_FILE.strip()}", "Verdict"))


def _verdict_rows(verdict: Verdict) -> tuple[list[Row], list[Row]]:
    """As `wbscope explain --short` tells it: severity, time lost, text.

    What is wrong and what to do; then the facts, and what is left out.
    """
    rows: list[Row] = [("run", "", f"{verdict.title}: {head_line(verdict)}")]
    rows += [("caution", "", notice.message) for notice in verdict.warnings]
    findings = [one for one in verdict.sentences() if one not in verdict.facts]
    rows += [_sentence(one) for one in findings]
    advice = verdict.first.advice if verdict.first is not None else None
    if advice is not None:
        settings = ", ".join(f"{knob} = {value}" for knob, value in advice.settings)
        rows.append(("to do", "", f"{advice.text} {settings}".rstrip()))
    rest = [_sentence(one) for one in verdict.sentences() if one in verdict.facts]
    if verdict.left_out_count:
        told = f"{verdict.left_out_count} more: {verdict.command('explain')}"
        rest.append(("", "", told))
    return rows, rest


def _sentence(one: Finding) -> Row:
    doubt = "" if one.confidence == "measured" else f" ({one.confidence})"
    lost = format_value("cost_task_ns", "ns", one.cost_task_ns) if one.cost_task_ns else ""
    return (one.severity, lost, f"{one.text}{doubt}")


def _tasks(run: Run, span: Span) -> Result | None:
    """Who was throttled, as tables show it; None where no event tells."""
    try:
        found, _ = main_rows(run.ask(_QUERY, Filters(span=span)))
    except EvidenceError:
        return None
    known = [
        name
        for name in _COLUMNS
        if name in found.columns
        and any(row[found.columns.index(name)] is not None for row in found.rows)
    ]
    return arranged(found.only(known)) if known else None


def _told_tasks(tasks: Result | None) -> list[Row]:
    """The tasks that slept longest, in words."""
    if tasks is None:
        return []
    rows: list[Row] = []
    names = ("comm", "tid", "bdi", "slept_total_ns", "throttled_ratio", "call_max_ns")
    for raw, shown in zip(tasks.records(), body(tasks), strict=True):
        cell = dict(zip(tasks.columns, shown, strict=True))
        if not raw.get("slept_total_ns"):
            continue
        comm, tid, bdi, slept, share, longest = (cell.get(name, "-") for name in names)
        text = f"{task_words(comm, tid)} was throttled for {share} of its life on {bdi}"
        text += f", one call took {longest}" if longest != "-" else ""
        dirtied = cell.get("dirtied_estimate_bytes", "-")
        text += f"; it dirtied {dirtied}" if dirtied != "-" else ""
        rows.append(("task", slept, text))
    return rows[:_TOLD_TASKS]


def _task_table(named: Sequence[tuple[str, Result | None]]) -> list[Command]:
    """Who was throttled, by group where there are several; nothing where nobody was."""
    known = [(name, result) for name, result in named if result is not None and result.rows]
    if not known:
        return []
    # Of several: the columns that all have.
    columns = [c for c in known[0][1].columns if all(c in result.columns for _, result in known)]
    rows: list[Row] = []
    for name, result in known:
        shown = replace(result.only(columns), rows=result.only(columns).rows[:_MOST_TASKS])
        rows += [(name, *cells) for cells in body(shown)]
    words = ["group", *headings(known[0][1].only(columns))]
    if len(named) == 1:
        rows, words = [row[1:] for row in rows], words[1:]
    return [_table(_SAID_OF_TASKS, words, rows, "Who was throttled")]


def _table(said: str, columns: Sequence[str], rows: Iterable[Row], title: str) -> Command:
    return Command("RunQueryAndShowTab", (said + literals(columns, rows), title))


def literals(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """A SELECT that gives these rows of texts; a text may hold any character."""
    values = ",".join(f"({','.join(quote_any(shortened(cell)) for cell in row)})" for row in rows)
    names = ",".join(f"column{i} AS {_quoted(name)}" for i, name in enumerate(columns, 1))
    return f"SELECT {names} FROM (VALUES {values})"


def shortened(text: str) -> str:
    """As it is shown: without control characters, and not too long for a link."""
    shown = printable(text)
    return shown if len(shown) <= _MOST_CHARACTERS else f"{shown[:_MOST_CHARACTERS]}..."


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
