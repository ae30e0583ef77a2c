# SPDX-License-Identifier: Apache-2.0
"""Results and errors as one JSON document each."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from wbscope.base.errors import WbscopeError
from wbscope.base.result import Notice, Result


def document(kind: str, head: dict[str, Any], body: dict[str, Any]) -> str:
    """The document `wbscope.<kind>/1`."""
    content = {"schema": f"wbscope.{kind}/1", **head, **body}
    return _harmless(json.dumps(content, indent=1, allow_nan=False)) + "\n"


def rows_body(
    rows: list[dict[str, Any]],
    warnings: Iterable[Notice],
    units: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The body that every document has: units by column, rows, warnings."""
    return {"units": dict(units or {}), "rows": rows, "warnings": notices(warnings)}


def result_body(result: Result) -> dict[str, Any]:
    """Units by column, rows with raw numbers, warnings."""
    rows = [
        {column: _plain(value) for column, value in record.items()} for record in result.records()
    ]
    return rows_body(rows, result.warnings, result.units)


def notices(warnings: Iterable[Notice]) -> list[dict[str, str]]:
    """Warnings as objects, with the run where there are several."""
    return [
        {
            **({} if notice.run is None else {"run": notice.run}),
            "slug": notice.slug,
            "message": notice.message,
        }
        for notice in warnings
    ]


def error_document(error: WbscopeError) -> str:
    """The error as one line, absent labels left out."""
    content: dict[str, Any] = {
        "slug": error.slug,
        "object": error.subject,
        "message": error.message,
        **dict(error.details()),
        "exit_code": error.exit_code,
    }
    return _harmless(json.dumps({"schema": "wbscope.error/1", "error": content})) + "\n"


def _harmless(text: str) -> str:
    """The same document, in which GitHub's runner finds no command (render/printable.py)."""
    return text.replace("##[", "##\\u005b")


def _plain(value: Any) -> Any:
    """JSON has no bytes and no infinity: both become text."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
