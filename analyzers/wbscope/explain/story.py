# SPDX-License-Identifier: Apache-2.0
"""The story of one wait, in order, and where the run was recorded."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wbscope.base.errors import EvidenceError
from wbscope.base.result import Result
from wbscope.base.units import task_words
from wbscope.library.rules import Template, read_template
from wbscope.run.filters import Filters, parse_filters
from wbscope.run.run import Run

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


# Queries with a fact a row; of two that name the same fact the first counts.
_ENVIRONMENT_FACTS = ("run_summary", "fingerprint")
_META = (
    "recorder_version",
    "record_ended",
    "command_exit_code",
    "command_duration_ns",
    "lost_events_count",
    "damage",
)
_COMMAND_LINE = "kernel-command-line"
_SYSCTLS = "sysctls"
_EVENTS = "event_counts"
# What throttling and reclaim go by; the others follow.
_FIRST = ("vm.dirty", "vm.swap", "vm.watermark", "vm.min_free", "vm.vfs_cache", "vm.laptop")
# A file of a stranger may have any length.
_MOST_LINES = 1000


@dataclass(frozen=True)
class Environment:
    """`facts`, `settings` and `devices` are names with values, `cgroups` paths by inode.

    A device is there under its bdi: its name, then its mount points. `events` says how often each
    is in the trace; None where nobody counted.
    """

    facts: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    devices: tuple[tuple[str, str, tuple[str, ...]], ...]
    cgroups: tuple[tuple[int, str], ...]
    events: Result | None


def environment_of(run: Run) -> Environment:
    """What the run folder and the trace say; what nobody noted is left out."""
    known = {query.name for query in run.library.queries()}
    texts = run.texts([_SYSCTLS, _COMMAND_LINE])
    facts: dict[str, str] = {}
    for name in _ENVIRONMENT_FACTS:
        if name in known:
            for key, value in run.ask(name, Filters()).rows:
                if value is not None:
                    facts.setdefault(str(key), str(value))
    meta = run.recorded().meta
    facts |= {key: str(meta[key]) for key in _META if meta.get(key) not in (None, "")}
    if text := texts.get(_COMMAND_LINE, "").strip():
        facts["kernel command line"] = text
    names = run.names()
    return Environment(
        facts=tuple(facts.items()),
        settings=tuple(_settings(texts.get(_SYSCTLS, ""))),
        devices=tuple((b, names.device(b), names.mounts.get(b, ())) for b in sorted(names.devices)),
        cgroups=tuple(sorted(names.cgroups.items())),
        events=run.ask(_EVENTS, Filters()) if _EVENTS in known else None,
    )


def _settings(text: str) -> list[tuple[str, str]]:
    lines = [line.partition(" = ") for line in text.splitlines()[:_MOST_LINES]]
    found = [(name, value) for name, mark, value in lines if mark]
    place = {
        name: i for i, begin in enumerate(_FIRST) for name, _ in found if name.startswith(begin)
    }
    return sorted(found, key=lambda one: (place.get(one[0], len(_FIRST)), one[0]))
