# SPDX-License-Identifier: Apache-2.0
"""meta.json of `wbscope record`: what the recorded command took, and the sync after it."""

from __future__ import annotations

import json
from typing import Any

from wbscope.measure.bad import bad, scaled
from wbscope.measure.known_metrics import known, metric
from wbscope.measure.metric import Scalars
from wbscope.measure.tool_units import unit_of_text

__all__ = ["parse_command"]

_FIX = "record the run again: wbscope record -o RUN -- COMMAND"
_SCHEMA = "wbscope.record/"
_SECONDS = unit_of_text("s")[1]

# Key of meta.json -> name of the metric, and the unit of the key in the metric's.
_KEYS = {
    "command_duration_ns": ("duration", 1.0),
    "command_user_s": ("user", _SECONDS),
    "command_system_s": ("sys", _SECONDS),
    "command_max_rss_bytes": ("max_rss", 1.0),
    "command_major_faults_count": ("major_faults", 1.0),
    "command_minor_faults_count": ("minor_faults", 1.0),
    "sync_duration_ns": ("sync", 1.0),
}


def parse_command(text: str, subject: str = "meta.json") -> Scalars:
    """The metrics command.*; none for a run of no command and for anybody else's file.

    That a command failed is a warning of the run, which a gate refuses.
    Raises: InputError for what is no such file.
    """
    try:
        content: Any = json.loads(text)
    except RecursionError as error:
        raise bad(subject, "is nested too deeply to be read", _FIX) from error
    except ValueError as error:
        raise bad(subject, f"is no JSON: {error}", _FIX) from error
    scalars = Scalars()
    ours = isinstance(content, dict) and str(content.get("schema")).startswith(_SCHEMA)
    if not ours or not content.get("command"):
        return scalars
    for key, (name, scale) in _KEYS.items():
        value = content.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e30:
            raise bad(subject, f"{key}: found {value!r}, wanted a number of 0 or more", _FIX)
        entry = known("command", name)
        scalars.add(metric("command", name, entry, subject), scaled(value, scale))
    return scalars
