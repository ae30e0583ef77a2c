# SPDX-License-Identifier: Apache-2.0
"""The story of one wait, in order: who dirtied, which limit, whose pages, the flusher, the disk."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wbscope.base.errors import EvidenceError
from wbscope.base.taskname import task_words
from wbscope.library.template import Template, read_template
from wbscope.run.filters import parse_filters
from wbscope.run.run import Run

__all__ = ["Story", "story_of"]

_STALLS, _FACTS = "stalls", "stall_facts"

# Each line is told where all of its facts are known. `pool`, `rate` and the like are made below.
_LINES = tuple(
    (when, read_template(text))
    for when, text in (
        (
            "ts",
            "{task} is in balance_dirty_pages() for {bdi}: it has dirtied {dirtied_bytes}"
            " since it was last asked.",
        ),
        (
            "ts",
            "{pool} dirty are {dirty_bytes}[, of a limit of {limit_bytes} and a setpoint of"
            " {setpoint_bytes}]: it may dirty {task_ratelimit_bytes_per_s}, so it sleeps for"
            " {pause_ns}.",
        ),
        (
            "ts",
            "Its own device holds {own_share_ratio} of these pages[, {holder_bdi} of the cgroup"
            " {holder_cgroup_ino} {holder_share_ratio}][; {nr_writeback_bytes} are under"
            " writeback].",
        ),
        ("ts", "{task} waits in {kind_name}[ for {bdi}]."),
        (
            "work_ts",
            "The flusher of {bdi} {has_begun} to write ({work_reason})[ and gives the disk"
            " {work_bytes}].",
        ),
        (
            "end_ts",
            "Until now {bdi} completed {written_count} writes of {written_bytes} in all[; it had"
            " requests for {device_ratio} of the time][ and its journal committed for"
            " {journal_ratio} of it].",
        ),
        (
            "end_ts",
            "{task} goes on after {whole_ns}[, of which {nested_ns} were in waits inside this"
            " one]: {cause}[; the whole call took {call_ns}].",
        ),
    )
)


@dataclass(frozen=True)
class Story:
    """One wait: `lines` are times from the run's first event, and what happened then."""

    run: str
    stall: int
    facts: Mapping[str, Any]
    lines: tuple[tuple[int, str], ...]
    finding: str | None


def story_of(run: Run, stall: int) -> Story:
    """Tell the wait of this number of the query `stalls`.

    Raises: EvidenceError when there is none.
    """
    rows = run.ask(_STALLS, parse_filters()).records()
    found = next((row for row in rows if row["stall_id"] == stall), None)
    if found is None:
        longest = sorted((r for r in rows if r["dur"]), key=lambda row: -row["dur"])[:3]
        raise EvidenceError(
            "no-such-stall",
            str(stall),
            f"is no wait of {run.name}, which has {len(rows)}",
            have=", ".join(f"{r['stall_id']} ({task_words(r['comm'], r['tid'])})" for r in longest)
            or None,
            fix=f"wbscope query stalls {shlex.quote(run.name)} --sort=-dur --limit 10",
        )
    facts = _facts(run, found)
    first = run.bounds()[0]
    told = ((facts.get(when), _line(template, facts, run)) for when, template in _LINES)
    lines = [(at - first, text) for at, text in told if at is not None and text is not None]
    return Story(run.name, stall, facts, tuple(lines), facts.get("finding"))


def _facts(run: Run, found: Mapping[str, Any]) -> dict[str, Any]:
    """Of stall_facts where it has the wait, else what stalls says."""
    asked = parse_filters(tid=found["tid"], time_range=f"@{found['ts']}..@{found['ts'] + 1}")
    rows = run.ask(_FACTS, asked).records()
    facts: dict[str, Any] = dict(found) | next(
        (row for row in rows if row["stall_id"] == found["stall_id"]), {}
    )
    facts.setdefault("end_ts", None)
    if facts["end_ts"] is None and found["dur"] is not None:
        facts["end_ts"] = found["ts"] + found["span_ns"]
    if facts["end_ts"] is not None:
        # `dur` is without the waits inside it, which are rows of their own.
        facts["whole_ns"] = facts["end_ts"] - facts["ts"]
        nested_ns = facts["whole_ns"] - (facts["dur"] or 0)
        facts["nested_ns"] = nested_ns if facts["dur"] is not None and nested_ns > 0 else None
    facts["task"] = task_words(facts["comm"], facts["tid"])
    is_throttle = facts["kind"] == "throttle"
    facts["pool"] = {"memcg": "In its memory cgroup", "global": "In the machine"}.get(
        facts.get("domain") or ""
    )
    facts["kind_name"] = None if is_throttle else facts["kind"]
    facts["has_begun"] = "began" if facts.get("work_is_over") == 0 else "had begun"
    if not facts.get("holder_share_ratio"):
        facts["holder_bdi"] = None
    return facts


def _line(template: Template, facts: Mapping[str, Any], run: Run) -> str | None:
    return template.fill(facts, run.names().label)
