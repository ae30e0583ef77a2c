# SPDX-License-Identifier: Apache-2.0
"""A result as CSV: raw numbers, empty for a value that was not recorded."""

from __future__ import annotations

import csv
import io

from wbscope.base.result import Result

__all__ = ["csv_text"]


def csv_text(result: Result) -> str:
    """A header line, then one line a row."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(result.columns)
    for row in result.rows:
        writer.writerow(f"x'{v.hex()}'" if isinstance(v, bytes) else v for v in row)
    return out.getvalue()
