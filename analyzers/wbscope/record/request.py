# SPDX-License-Identifier: Apache-2.0
"""What is asked of a recording, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wbscope.record.recording_plan import COMPLETE

__all__ = ["CUSTOM", "Recording", "Request"]

CUSTOM = "custom"
_NS_PER_S = 10**9


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    profile: str = "writeback"
    events: tuple[str, ...] = ()
    output: Path | None = None
    command: tuple[str, ...] = ()
    duration_ns: int | None = None
    sync: bool = False
    clock: str | None = None
    buffer_kib: int | None = None
    interval_ns: int = _NS_PER_S
    sysctls: tuple[str, ...] = ()
    backend: str = "auto"
    probe: str = "auto"
    force: bool = False


@dataclass
class Recording:
    """A run that was recorded.

    ended        as in meta.json; anything but complete and interrupted is a failure
    interrupted  by Ctrl-C, which was not the usual end
    problems     what went wrong and was not told yet
    lost_count   events that did not fit into the buffers; None where nobody counted
    """

    run: Path
    facts: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    problems: tuple[str, ...] = ()
    ended: str = COMPLETE
    lost_count: int | None = None
