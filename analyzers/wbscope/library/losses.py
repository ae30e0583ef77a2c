# SPDX-License-Identifier: Apache-2.0
"""Which warnings say that a trace is not whole: its numbers are then lower bounds."""

from __future__ import annotations

from collections.abc import Iterable

from wbscope.base.result import Notice

__all__ = ["is_damaged", "is_lost", "of_losses"]

# Of the view wb_warning.
_LOST = ("lost-events", "records-overwritten")
_DAMAGED = ("damaged-trace", "part-of-trace", "recording-cut-short", "lines-not-understood")
_DATA_LOSS = "data-loss-"


def is_lost(slug: str) -> bool:
    """Whether it says that events are lost."""
    return slug in _LOST


def is_damaged(slug: str) -> bool:
    """Whether it says that only a part of the trace was read."""
    return slug in _DAMAGED or slug.startswith(_DATA_LOSS)


def of_losses(warnings: Iterable[Notice]) -> tuple[Notice, ...]:
    """Those that say one of the two."""
    return tuple(one for one in warnings if is_lost(one.slug) or is_damaged(one.slug))
