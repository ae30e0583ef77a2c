# SPDX-License-Identifier: Apache-2.0
"""A task in words."""

from __future__ import annotations

__all__ = ["task_words"]


def task_words(comm: object, tid: object) -> str:
    """Name and number; the number once for a task whose name nobody recorded."""
    return str(comm) if comm == f"tid {tid}" else f"{comm} {tid}"
