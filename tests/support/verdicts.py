# SPDX-License-Identifier: Apache-2.0
"""What the first finding of each run of the corpus has to be, and the table of what it is."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

__all__ = ["BEGIN", "END", "RULE_OF", "cause_of", "confusion", "is_healthy"]

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
    "healthy-busy-cpu": "nothing_wrong",
    "healthy-cgroup": "nothing_wrong",
    "healthy-copy": "nothing_wrong",
    "healthy-fsync": "nothing_wrong",
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
