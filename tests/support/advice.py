# SPDX-License-Identifier: Apache-2.0
"""Whether what a run's findings want set can be set there, and changes what they say."""

from __future__ import annotations

import re

from wbscope.library.finding import Finding
from wbscope.run.run import Run

__all__ = ["assert_sound"]

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
