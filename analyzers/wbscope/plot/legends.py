# SPDX-License-Identifier: Apache-2.0
"""What people call a series: the values of the columns that tell it apart, in few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wbscope.base.result import Result

__all__ = ["label_of"]

# The root's cgroup, or a kernel without cgroups for writeback: nothing worth a word.
_ROOT_CGROUP = 1
_UNKNOWN = "unknown"


def label_of(result: Result, columns: Sequence[str], values: Sequence[Any]) -> str:
    """`dd-123 (probe)`, `vda (/data), cgroup /small`, `node 0 DMA32`; names of the result."""
    if columns and all(value is None for value in values):
        return _UNKNOWN
    parts: list[str] = []
    for column, value in zip(columns, values, strict=True):
        shown = result.label(column, value) or ("" if value is None else str(value))
        if column == "comm" and "tid" in columns:
            shown = f"{shown}-{values[list(columns).index('tid')]}"
        elif column == "tid" and "comm" in columns:
            continue
        elif column == "cgroup_ino":
            if value is None or value == _ROOT_CGROUP:
                continue
            shown = f"cgroup {shown}"
        elif column.endswith("_basis"):
            shown = f"({shown})"
        elif column == "node":
            shown = f"node {shown}" if shown else ""
        if shown:
            parts.append(shown)
    separator = ", " if "cgroup_ino" in columns else " "
    return separator.join(parts)
