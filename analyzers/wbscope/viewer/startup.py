# SPDX-License-Identifier: Apache-2.0
"""What the UI does at start: tracks that matter opened and pinned, tabs, workspaces.

What the tabs say is in the commands, as rows of literals: the verdict of `wbscope explain`, to the
letter. A file that is opened without its run has it as slices.

The first view stays the UI's own workspace, which has all tracks.

Only names can be given to a UI of v52; so these are names that no other track has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wbscope.base.errors import EvidenceError
from wbscope.base.result import Result
from wbscope.base.span import WHOLE, Span
from wbscope.base.units import format_value, task_words
from wbscope.explain.verdict import Verdict, verdict_of
from wbscope.library.finding import Finding
from wbscope.library.params import quote_any
from wbscope.render.text import arranged, body, headings, main_rows, printable
from wbscope.render.verdict import head_line
from wbscope.run.filters import Filters
from wbscope.run.run import Run
from wbscope.timeline.export import LETTERS
from wbscope.viewer.link import Command, any_of

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


LEAST_SHARE = 0.1
"""A kind of wait of less than this share of all is not what the run is about; nor is a task that
waited for less than this share of what the first did."""

QUEUE = "block queue"
"""Of these alone are the waits of kernel threads that write for others."""

_WAIT_MOST_TASKS = 5


def waits_of(run: Run, span: Span = WHOLE) -> list[dict[str, Any]]:
    """The rows of stalls_by_task; none where no event tells of waits."""
    try:
        return run.ask("stalls_by_task", Filters(span=span)).records()
    except EvidenceError:
        return []


def longest_waiters(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The tasks that waited longest, longest first, as their tracks are called."""
    tasks: dict[str, int] = defaultdict(int)
    for row in rows:
        if row["kind"] != QUEUE:
            tasks[task_words(row["comm"], row["tid"])] += row["total_ns"] or 0
    longest = sorted(tasks, key=lambda task: -tasks[task])[:_WAIT_MOST_TASKS]
    return [task for task in longest if tasks[task] >= LEAST_SHARE * tasks[longest[0]] > 0]


DEFAULT_WORKSPACE = "Default Workspace"
"""The UI's own name of the workspace that it starts with."""

_ROOTS = ("Global Track Events", "Writeback")
_LOOK = "What to look at"
_STALLS = "Stalls"


@dataclass(frozen=True)
class Workspace:
    """`groups` are copied with all their tracks, `opened` are those of them that are open."""

    title: str
    kinds: tuple[str, ...]
    causes: tuple[str, ...]
    groups: tuple[str, ...]
    opened: tuple[str, ...]

    def has(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of stalls_by_task is what this is about."""
        return row["kind"] in self.kinds or row["cause"] in self.causes


_WORKSPACES = (
    Workspace(
        "Throttling",
        kinds=("throttle",),
        causes=(),
        groups=(
            "Dirty pages", "Bandwidth", "Throttled tasks", "Fairness", "Flusher work",
            "Memory cgroups",
        ),
        opened=(),
    ),
    Workspace(
        "Reclaim",
        kinds=("direct reclaim", "memcg reclaim", "reclaim throttle"),
        causes=(),
        groups=("Reclaim", "Zones", "Pressure", "vmstat", "Dirty pages"),
        opened=("Reclaim",),
    ),
    Workspace(
        "Sync",
        kinds=("fsync", "sync", "journal", "folio wait", "server"),
        causes=("journal commit",),
        groups=("Flusher work", "Block requests", "Disks", "Throughput"),
        opened=("Flusher work",),
    ),
)  # fmt: skip


def workspaces_of(rows: Collection[Mapping[str, Any]]) -> list[Workspace]:
    """Those that the run has waits for, by rows of stalls_by_task."""
    return [one for one in _WORKSPACES if any(one.has(row) and row["total_ns"] for row in rows)]


def workspace_commands(rows: Sequence[Mapping[str, Any]]) -> list[Command]:
    """Fill the workspaces, and return to the one that the UI starts with."""
    commands: list[Command] = []
    for one in workspaces_of(rows):
        about = [row for row in rows if one.has(row)]
        kinds = sorted({row["kind"] for row in about if row["total_ns"]})
        names = [
            _LOOK,
            *(f"tasks in {kind}" for kind in kinds),
            *(f"stalls of {task}" for task in longest_waiters(about)),
            *one.groups,
        ]
        commands += [
            # Makes the workspace; what stands above a track comes with it.
            Command("CopyTracksToWorkspaceByRegexWithAncestors", (any_of(names), one.title)),
            Command("SwitchWorkspace", (one.title,)),
            Command("ExpandTracksByRegex", (any_of([*_ROOTS, _STALLS, *one.opened]),)),
            Command("SwitchWorkspace", (DEFAULT_WORKSPACE,)),
        ]
    return commands


# More leave no room for what scrolls below them on a screen of 800 lines.
_MOST_PINNED = 4

# What a UI puts tracks of nobody's into, the verdict of a run among them.
_OUTER = "Global Track Events"

_RECLAIM = ("direct reclaim", "memcg reclaim", "reclaim throttle")
_DISK = (QUEUE, "folio wait", "fsync", "journal", "sync", "write")


def startup_commands(run: Run, span: Span = WHOLE) -> list[Command]:
    """A workspace for each question, the view at start, and the verdict in a tab."""
    rows = waits_of(run, span)
    return [*workspace_commands(rows), *_first_view(rows), *summary_commands(run, span)]


def startup_commands_of_two(runs: Mapping[str, Run], span: Span = WHOLE) -> list[Command]:
    """Both groups opened, those of their groups that tell most one below the other, and verdicts.

    runs  by the names of their groups
    """
    return [
        Command("ExpandTracksByRegex", (any_of(list(runs)),)),
        *(
            Command("PinTracksByRegex", (any_of([f"{letter} {name}"]),))
            for name in ("Stalls", "Dirty pages")
            for letter in LETTERS
        ),
        *summaries_of_two(runs, span),
    ]


def _first_view(rows: list[dict[str, Any]]) -> list[Command]:
    """Pin the tasks that waited longest; open the groups that say why.

    Closed, "Stalls", "Dirty pages" and "Fairness" show a curve that says most of what is in them.
    """
    kinds = _kinds(rows)
    pinned = [f"stalls of {task}" for task in longest_waiters(rows)[:_MOST_PINNED]]
    groups = [_OUTER, "Writeback"]
    if kinds & {*_RECLAIM}:
        groups.append("Reclaim")
    if kinds & {*_DISK}:
        groups.append("Flusher work")
    return [
        Command("ExpandTracksByRegex", (any_of(groups),)),
        *(Command("PinTracksByRegex", (any_of([name]),)) for name in pinned),
    ]


def _kinds(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """The kinds of wait that count."""
    kinds: dict[str, int] = defaultdict(int)
    for row in rows:
        kinds[row["kind"]] += row["total_ns"] or 0
    least = LEAST_SHARE * sum(kinds.values())
    return {kind for kind, total in kinds.items() if total >= least > 0}
