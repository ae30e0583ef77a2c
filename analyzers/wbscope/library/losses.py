# SPDX-License-Identifier: Apache-2.0
"""Which warnings say that a trace is not whole, or has no events or no times."""

from __future__ import annotations

from collections.abc import Iterable

from wbscope.base.result import Notice

__all__ = ["is_damaged", "is_empty", "is_lost", "is_untimed", "of_losses"]

# Of the view wb_warning.
_LOST = ("lost-events", "records-overwritten", "records-not-read")
_DAMAGED = (
    *("damaged-trace", "part-of-trace", "recording-cut-short", "lines-not-understood"),
    "missing-field",
)
_DATA_LOSS = "data-loss-"
_UNTIMED = "clock-without-unit"
_EMPTY = "no-events"


def is_lost(slug: str) -> bool:
    """Whether it says that events are lost."""
    return slug in _LOST


def is_damaged(slug: str) -> bool:
    """Whether it says that only a part of the trace was read."""
    return slug in _DAMAGED or slug.startswith(_DATA_LOSS)


def is_untimed(slug: str) -> bool:
    """Whether it says that the trace clock counts ticks: no time and no rate is one then."""
    return slug == _UNTIMED


def is_empty(slug: str) -> bool:
    """Whether it says that no event was recorded."""
    return slug == _EMPTY


def of_losses(warnings: Iterable[Notice]) -> tuple[Notice, ...]:
    """Those that say that it is not whole."""
    return tuple(one for one in warnings if is_lost(one.slug) or is_damaged(one.slug))
