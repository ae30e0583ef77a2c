# SPDX-License-Identifier: Apache-2.0
"""What of a trace is loaded into a database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Choice"]


@dataclass(frozen=True)
class Choice:
    """The library's events and those that match `events`, or all of them.

    `time_range` is as `parse_time_range()` gives it; `limit` is of loaded rows.
    """

    events: Sequence[str] = ()
    load_all: bool = False
    time_range: str | None = None
    limit: int | None = None
