# SPDX-License-Identifier: Apache-2.0
"""The errors about a file of measurements, and the numbers in it."""

from __future__ import annotations

import math
import re

from wbscope.base.errors import InputError

__all__ = ["MOST_BYTES", "bad", "decimal", "failed", "scaled", "shown"]

# As wbscope-ingest reads files beside a trace.
MOST_BYTES = 16 << 20
_SHOWN = 60
# No value of any of these tools is near it; digits without end are no number.
_MOST_DIGITS = 30


def bad(subject: str, message: str, fix: str, *, at: str | None = None) -> InputError:
    """The file is not what its name says, or is damaged."""
    return InputError(
        "bad-measurement",
        subject,
        message,
        at=at,
        effect="nothing of this file was used",
        fix=fix,
    )


def failed(subject: str, message: str) -> InputError:
    """The tool says that the workload did not end well."""
    return InputError(
        "failed-workload",
        subject,
        f"{message}: its numbers are not those of a whole run",
        fix=f"record the run again, or take {subject} out of its folder",
    )


def shown(text: str) -> str:
    """A piece of the file as a message shows it."""
    cut = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
    return f'"{cut}"'


def decimal(text: str) -> float | None:
    """A plain decimal number of 0 or more; None when the text is another thing."""
    if len(text) > _MOST_DIGITS or re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def scaled(value: float, scale: float) -> float:
    """In the metric's unit, without what binary fractions add: 16.47 ms is 16470000 ns."""
    return round(value * scale, 6)
