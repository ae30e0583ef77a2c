# SPDX-License-Identifier: Apache-2.0
"""Verdicts, the advice in them, and the schema that they follow."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
from wbscope.library.finding import Finding
from wbscope.render.schemas import schema_of
from wbscope.run.run import Run

__all__ = [
    "BEGIN",
    "END",
    "RULE_OF",
    "assert_sound",
    "cause_of",
    "confusion",
    "faults",
    "is_healthy",
]


# What the first finding of each run of the corpus has to be, and the table of what it is.

# Cause that tests/corpus injects -> rule that has to come first.
RULE_OF = {
    "fsync-storm": "fsync_storm",
    "io-max": "device_idle",
    "journal-commit": "journal_commit",
    "low-limits": "small_limit",
    "many-seconds": "many_seconds",
    "memory-cgroup": "small_memcg_limit",
    "new-device": "new_bdi_bandwidth",
    "no-background-start": "no_writeback",
    "reclaim-meets-dirty": "reclaim_meets_dirty",
    "slow-device": "slow_device",
    "slow-starves-fast": "slow_bdi_starves",
    "strict-limit": "strict_limit",
    "strict-limit-busy": "strict_limit",
    "swap-competes": "swap_competes",
    "inode-lock": "throttled_holder",
    "frozen": "frozen",
    "direct-io": "past_page_cache",
    "oom-kill": "oom_kill",
    "slow-reads": "disk_reads",
    "small-writes": "slow_device",
    "copy-up": "sync_waits",
    "two-volumes": "sync_waits",
    "sync-loop": "sync_waits",
    "io-max-writes": "sync_waits",
    "mapped": "slow_device",
    "dsync-stream": "journal_commit",
    "pipe": "slow_device",
    "remove": "many_seconds",
    "healthy-busy-cpu": "nothing_wrong",
    "healthy-bursts": "nothing_wrong",
    "healthy-cgroup": "nothing_wrong",
    "healthy-copy": "nothing_wrong",
    "healthy-fsync": "nothing_wrong",
    "healthy-four-loops": "nothing_wrong",
    "healthy-mapping": "nothing_wrong",
    "healthy-paced": "nothing_wrong",
    "healthy-reader": "nothing_wrong",
    "healthy-small-files": "nothing_wrong",
    "healthy-two-writers": "nothing_wrong",
}
BEGIN, END = "<!-- confusion -->", "<!-- /confusion -->"


def cause_of(case: Path) -> str:
    """What was injected."""
    return str(tomllib.loads((case / "cause.toml").read_text())["cause"])


def is_healthy(case: Path) -> bool:
    """Whether nothing was."""
    return bool(tomllib.loads((case / "cause.toml").read_text())["healthy"])


def confusion(found: Iterable[tuple[str, str]]) -> str:
    """A table of Markdown: cause, runs, rules that came first and how often."""
    counted: dict[str, Counter[str]] = {}
    for cause, rule in found:
        counted.setdefault(cause, Counter())[rule] += 1
    lines = ["| injected | runs | first finding |", "|---|---:|---|"]
    right = total = 0
    for cause, rules in sorted(counted.items()):
        told = ", ".join(f"{rule} {count}" for rule, count in rules.most_common())
        right += rules[RULE_OF[cause]]
        total += sum(rules.values())
        lines.append(f"| {cause} | {sum(rules.values())} | {told} |")
    lines.append(f"| all | {total} | right in {right} |")
    return "\n".join(lines)


# Whether what a run's findings want set can be set there, and changes what they say.

_KNOB = re.compile(
    r"vm\.\w+"
    r"|/sys/class/bdi/[^/]+/(?:strict_limit|max_ratio)"
    r"|/sys/fs/cgroup(?:/[^/]+)+/(?:memory\.high|memory\.max|io\.max)"
)
_RAISING = "small_limit"
_STRICT_SINCE = (6, 2)


def assert_sound(run: Run) -> int:
    """How many settings there are; each is one that this machine has, and a change."""
    found = run.findings()
    count = 0
    for one in found:
        for knob, value in one.advice.settings if one.advice else ():
            assert _KNOB.fullmatch(knob), (one.id, knob)
            _assert_change(run, one, knob, value)
            count += 1
    for calm in (one for one in found if one.id == "nothing_wrong"):
        calls = [one.facts.get("call_max_ns") or 0 for one in found]
        assert (calm.facts["longest_ns"] or 0) >= max(calls), "another finding tells of more"
    return count


def _assert_change(run: Run, one: Finding, knob: str, value: str) -> None:
    if knob == "vm.dirty_bytes":
        told = [row["thresh_bytes"] for row in run.query("dirty_limits").records()]
        limits = [limit for limit in told if limit]
        if one.id == _RAISING:
            assert int(value) > min(limits), one.id
        else:
            assert int(value) < max(limits), one.id
    if knob.endswith("/max_ratio"):
        assert 1 <= int(value) <= (100 if one.id == "strict_limit" else 90), one.id
    if knob.endswith("/strict_limit"):
        told = run.sql("SELECT value FROM meta WHERE key = 'kernel_release'")
        release = str(told.rows[0][0])
        version = tuple(int(part) for part in release.split(".")[:2])
        assert version >= _STRICT_SINCE, (one.id, release)


# Documents of --json against the schemas of the package.


def faults(document: dict[str, Any]) -> list[str]:
    """Where the document is not as its schema says; members that it does not name are faults, too.

    The name is the document's own: wbscope.NAME/1.
    """
    name = document["schema"].removeprefix("wbscope.").removesuffix("/1")
    schema = schema_of(name, strict=True)
    if "oneOf" in schema:  # a verb is called so, too
        (one,) = [one for one in schema.pop("oneOf") if one["title"] == document["schema"]]
        schema |= one
    checked = jsonschema.Draft202012Validator(schema)
    return [f"{one.json_path}: {one.message:.200}" for one in checked.iter_errors(document)]
