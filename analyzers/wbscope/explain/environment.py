# SPDX-License-Identifier: Apache-2.0
"""Where a run was recorded: machine, settings, devices, cgroups, and which events."""

from __future__ import annotations

from dataclasses import dataclass

from wbscope.base.result import Result
from wbscope.run.filters import Filters
from wbscope.run.run import Run

__all__ = ["Environment", "environment_of"]

# Queries with a fact a row; of two that name the same fact the first counts.
_FACTS = ("run_summary", "fingerprint")
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
    for name in _FACTS:
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
