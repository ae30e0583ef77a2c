# SPDX-License-Identifier: Apache-2.0
"""One finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Check", "Status"]


class Status(StrEnum):
    """`missing` means that something cannot be recorded, `fails` that nothing can."""

    ok = "ok"
    missing = "missing"
    fails = "fails"


@dataclass(frozen=True)
class Check:
    """What was looked at, what was found, and the command that helps."""

    name: str
    status: Status
    found: str
    fix: str | None = None
