# SPDX-License-Identifier: Apache-2.0
"""A result as CSV: raw numbers, empty for a value that was not recorded.

Texts come from a stranger's trace: names of tasks, paths. They are written so that they neither
drive a terminal nor become a formula of a spreadsheet, unless a program wants them as recorded.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

from wbscope.base.result import Result
from wbscope.render.printable import printable

__all__ = ["csv_text"]


# What begins a formula in spreadsheets, and so stands behind an apostrophe.
# Source: OWASP, CSV Injection.
_FORMULA = ("=", "+", "-", "@")


def csv_text(result: Result, *, is_raw: bool = False) -> str:
    """A header line, then one line a row."""
    told = _as_recorded if is_raw else _harmless
    return "".join(_line(map(told, row)) for row in (result.columns, *result.rows))


def _line(cells: Iterable[Any]) -> str:
    """With this end of a line Python's writer quotes a carriage return, too."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue().removesuffix("\r\n") + "\n"


def _as_recorded(value: Any) -> Any:
    return f"x'{value.hex()}'" if isinstance(value, bytes) else value


def _harmless(value: Any) -> Any:
    value = _as_recorded(value)
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
