# SPDX-License-Identifier: Apache-2.0
"""What a trace agrees with, as text and as a JSON document."""

from __future__ import annotations

from typing import Any

from wbscope.base.units import format_value
from wbscope.render.jsondoc import document, result_body
from wbscope.render.messages import warning_text
from wbscope.render.printable import folded, printable
from wbscope.render.table import PAGE_WIDTH
from wbscope.run.agreement import DIFFERS, NOT_RECORDED, Agreement

__all__ = ["check_json", "check_text"]

Row = dict[str, Any]

_HEADINGS = ("verdict", "source", "what", "trace", "other", "residual")
_WORDS = 3  # of these columns, which stand on the left
_LAW = "control law"
_DIGITS = 3  # of a share: tenths of a per cent


def check_text(agreement: Agreement, width: int = PAGE_WIDTH) -> str:
    """The verdict first, then a line for each comparison, then the reasons."""
    lines = [f"wbscope check: {printable(agreement.run)}", ""]
    lines += [folded(warning_text(notice), width) for notice in agreement.result.warnings]
    lines += [folded(f"{agreement.told()}.", width), ""]
    rows = agreement.result.records()
    lines += _table([_cells(row) for row in rows if row["verdict"] != NOT_RECORDED])
    lines.append("")
    lines += [folded(text, width) for text in _reasons(rows)]
    return "\n".join(lines) + "\n"


def check_json(agreement: Agreement) -> str:
    """The verdict and the rows of the query."""
    head = {
        "run": agreement.run,
        "verdict": agreement.told(),
        "passed": not agreement.faults,
    }
    return document("check", head, result_body(agreement.result))


def _cells(row: Row) -> list[str]:
    words = [printable(str(row[name])) for name in ("verdict", "source", "what")]
    values = [_amount(row["unit"], row[name]) for name in ("trace_value", "other_value")]
    return [*words, *values, _share(row["residual_ratio"])]


def _amount(unit: str, value: Any) -> str:
    """Sizes and times with a prefix; pages, calls and events as the kernel counts them."""
    known = unit if unit in ("bytes", "ns") else None
    text = format_value("value", known, value)
    return text if known is not None or value is None else f"{text} {unit}"


def _share(value: float | None) -> str:
    """No -0.0 %."""
    known = None if value is None else round(value, _DIGITS) + 0.0
    return format_value("residual_ratio", "ratio", known)


def _table(cells: list[list[str]]) -> list[str]:
    rows = [list(_HEADINGS), *cells]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADINGS))]
    rows.insert(1, ["-" * width for width in widths])
    return ["  ".join(_padded(row, widths)).rstrip() for row in rows]


def _padded(row: list[str], widths: list[int]) -> list[str]:
    pairs = zip(row, widths, strict=True)
    return [
        text.ljust(width) if place < _WORDS else text.rjust(width)
        for place, (text, width) in enumerate(pairs)
    ]


def _reasons(rows: list[Row]) -> list[str]:
    """Why what differs may do so, what the law says, and what is not there."""
    texts = []
    missing: dict[str, list[str]] = {}
    for row in rows:
        name = f"{row['source']} {row['what']}"
        if row["verdict"] == NOT_RECORDED:
            missing.setdefault(row["why"], []).append(name)
        elif row["verdict"] == DIFFERS:
            must = "" if row["is_binding"] else " (a workload can explain it)"
            texts.append(f"differs: {name}: {row['why']}{must}")
        elif row["what"] == _LAW:
            texts.append(f"{_LAW}: {row['why']}")
    texts += [f"not recorded: {', '.join(names)}: {why}" for why, names in missing.items()]
    return [printable(text) for text in texts]
