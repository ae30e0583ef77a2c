# SPDX-License-Identifier: Apache-2.0
"""The environment of the runs of a page: a column a run, and what differs between them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from wbscope.base.result import unit_of
from wbscope.base.units import format_value, short_name
from wbscope.render.htmltable import MOST_ROWS, table_html
from wbscope.render.printable import printable
from wbscope.render.runpage import RunPage
from wbscope.run.joined import joined

__all__ = ["environment_of_page"]

# Longer values are broken.
_LONG = 60
_BROKEN, _DIFFERS = ' class="long"', ' class="differs"'


def environment_of_page(pages: Sequence[RunPage]) -> list[dict[str, Any]]:
    """Tables for the template; those that would be empty are left out."""
    names = [page.name for page in pages]
    made = [
        _sides("machine", "Machine and recording", names, [_facts(page) for page in pages]),
        _sides(
            "settings",
            "Settings when the recording began",
            names,
            [dict(page.environment.settings) for page in pages],
        ),
        _listed(
            "devices",
            "Devices and where they are mounted",
            ("bdi", "device", "mounted on"),
            [
                (page.name, bdi, device, ", ".join(places) or "-")
                for page in pages
                for bdi, device, places in page.environment.devices
            ],
            len(pages) > 1,
        ),
        _listed(
            "cgroups",
            "Cgroups",
            ("inode", "path"),
            [
                (page.name, str(inode), path)
                for page in pages
                for inode, path in page.environment.cgroups
            ],
            len(pages) > 1,
        ),
        _events(pages),
    ]
    return [one for one in made if one is not None]


def _facts(page: RunPage) -> dict[str, str]:
    shown = {}
    for key, value in page.environment.facts:
        unit = unit_of(key)
        number = unit is not None and value.lstrip("-").isdecimal()
        name = short_name(key, unit if number else None)
        shown[name] = format_value(key, unit, int(value)) if number else value
    return shown


def _sides(
    name: str, title: str, runs: Sequence[str], columns: Sequence[dict[str, str]]
) -> dict[str, Any] | None:
    keys = list(dict.fromkeys(key for column in columns for key in column))
    if not keys:
        return None
    rows = []
    for key in keys[:MOST_ROWS]:
        values = [column.get(key, "-") for column in columns]
        differs = len(set(values)) > 1
        cells = "".join(_cell(value) for value in (key, *values))
        rows.append(f"<tr{_DIFFERS if differs else ''}>{cells}</tr>\n")
    heads = ["", *(runs if len(runs) > 1 else ["value"])]
    told = ["What differs between the runs is set in bold."] if len(runs) > 1 else []
    return _made(name, title, heads, rows, len(keys), told)


def _listed(
    name: str, title: str, heads: Sequence[str], lines: Sequence[Sequence[str]], several: bool
) -> dict[str, Any] | None:
    if not lines:
        return None
    first = 0 if several else 1
    rows = [
        f"<tr>{''.join(_cell(value) for value in line[first:])}</tr>\n"
        for line in lines[:MOST_ROWS]
    ]
    return _made(name, title, [*(["run"] if several else []), *heads], rows, len(lines), [])


def _made(
    name: str, title: str, heads: Sequence[str], rows: Sequence[str], count: int, told: list[str]
) -> dict[str, Any]:
    line = "".join(f'<th scope="col">{escape(printable(head)) or "name"}</th>' for head in heads)
    html = (
        f"<table><caption>{escape(title)}</caption>\n<thead><tr>{line}</tr></thead>\n"
        f"<tbody>\n{''.join(rows)}</tbody></table>"
    )
    below = [f"{len(rows)} of {count} rows."] if count > len(rows) else []
    return {
        "id": f"environment-{name}", "title": title, "html": html, "told": told, "below": below,
        "doubts": [], "meanings": [], "commands": [],
    }  # fmt: skip


def _cell(value: str) -> str:
    shown = printable(value)
    return f"<td{_BROKEN if len(shown) > _LONG else ''}>{escape(shown, quote=False)}</td>"


def _events(pages: Sequence[RunPage]) -> dict[str, Any] | None:
    given = [(p.name, p.environment.events) for p in pages if p.environment.events is not None]
    if not given:
        return None
    result = joined(given) if len(pages) > 1 else given[0][1]
    title = "Events in the trace"
    made = _made("events", title, [], [], 0, [])
    made["html"] = table_html(result, title, most=2 * MOST_ROWS)
    if len(result.rows) > 2 * MOST_ROWS:
        made["below"] = [f"{2 * MOST_ROWS} of {len(result.rows)} rows."]
    return made
