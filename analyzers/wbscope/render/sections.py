# SPDX-License-Identifier: Apache-2.0
"""The tables of a page, the environment of its runs, and what a page has inside it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wbscope.base.result import Notice, Result, unit_of
from wbscope.base.system import join
from wbscope.base.units import format_value, short_name
from wbscope.explain.verdict import Section
from wbscope.library.sqlfile import SqlFile
from wbscope.render.catalogue import metric_text
from wbscope.render.figures import RunPage
from wbscope.render.text import (
    arranged,
    column_texts,
    headings,
    is_text,
    main_rows,
    printable,
    side_text,
    warning_text,
)
from wbscope.run.labels import joined

if TYPE_CHECKING:
    from jinja2 import Template

# Longer tables have a command for all rows.
MOST_ROWS = 100
_TIMES = ("ts", "window_start_ns")
_RIGHT = ' class="n"'
# Longer values are broken.
_LONG = 60
_BROKEN = ' class="long"'


def table_html(
    result: Result, title: str, commands: Sequence[str | None] = (), most: int = MOST_ROWS
) -> str:
    """The <table>; `commands` open the timeline where each row was, if it has a time."""
    shown = arranged(replace(result, rows=list(result.rows[:most])))
    texts = [column_texts(shown, place) for place in range(len(shown.columns))]
    words = is_text(shown)
    has_commands = any(commands[:most])
    heads = "".join(
        f'<th scope="col"{"" if text else _RIGHT} title="{escape(printable(name))}">'
        f"{escape(printable(heading))}</th>"
        for name, heading, text in zip(shown.columns, headings(shown), words, strict=True)
    )
    if has_commands:
        heads = f'<th scope="col" class="js">timeline</th>{heads}'
    lines = []
    for number, row in enumerate(shown.rows):
        cells = "".join(
            _cell(value, texts[place][number], words[place]) for place, value in enumerate(row)
        )
        if has_commands:
            cells = f'<td class="js">{copy_button(commands[number], "copy")}</td>{cells}'
        lines.append(f"<tr>{cells}</tr>\n")
    return (
        f"<table><caption>{escape(printable(title))}</caption>\n<thead><tr>{heads}</tr></thead>\n"
        f"<tbody>\n{''.join(lines)}</tbody></table>"
    )


def _cell(value: Any, text: str, words: bool) -> str:
    is_number = isinstance(value, int | float)
    raw = f' data-v="{value!r}"' if is_number and str(value) != text else ""
    kind = (_BROKEN if len(text) > _LONG else "") if words else _RIGHT
    return f"<td{kind}{raw}>{escape(text, quote=False)}</td>"


def copy_button(command: str | None, label: str) -> str:
    """A button that a script gives its meaning; without one it is not shown."""
    if command is None:
        return ""
    return f'<button type="button" class="copy" data-copy="{escape(command)}">{label}</button>'


def meanings_of(result: Result) -> list[tuple[str, str]]:
    """Each column as its head calls it, and what it means; in the order of the table."""
    shown = arranged(result)
    known = shown.descriptions()
    return [
        (heading, f"{name}: {known[name]}" if heading != name else known[name])
        for name, heading in zip(shown.columns, headings(shown), strict=True)
        if name in known
    ]


def open_commands(result: Result, paths: Mapping[str, str]) -> list[str | None]:
    """For each row with a time, what shows it on the timeline; times count from the first event.

    paths  each run as it was given, by its name in the column `run`; "" where there is none
    """
    names = result.columns
    time = next((name for name in _TIMES if name in names), None)
    if time is None:
        return []
    at = names.index(time)
    dur = names.index("dur") if "dur" in names else None
    run = names.index("run") if "run" in names else None
    starts = sorted({row[at] for row in result.rows if isinstance(row[at], int)})
    window = min((b - a for a, b in pairwise(starts)), default=None)
    found: list[str | None] = []
    for row in result.rows:
        start = row[at]
        if not isinstance(start, int):
            found.append(None)
            continue
        length = row[dur] if dur is not None else window if time != "ts" else None
        end = None if not isinstance(length, int) else start + length
        found.append(open_command(paths["" if run is None else str(row[run])], start, end))
    return found


def open_command(run: str, start_ns: int, end_ns: int | None) -> str:
    """What a user types to see this time; ns from the run's first event."""
    start = _moment(max(start_ns, 0))
    end = start if end_ns is None else _moment(max(end_ns, 0))
    at = start if start == end else f"{start}..{end}"
    return join(["wbscope", "open", run, "--at", at])


def _moment(ns: int) -> str:
    """As the command line takes it, in s down to a microsecond."""
    return format_value("ts", "ns", ns).replace(" ", "")


_AT = "The first column copies a command that opens the timeline there: a page cannot start it."


def tables_of_page(pages: Sequence[RunPage], *, clock: bool = False) -> dict[str, dict[str, Any]]:
    """By query, in the order of the report; clock: times of the trace clock."""
    queries: dict[str, SqlFile] = {}
    answers: dict[str, list[tuple[RunPage, Section]]] = {}
    for page in pages:
        for section in page.report.sections:
            queries.setdefault(section.query.name, section.query)
            answers.setdefault(section.query.name, []).append((page, section))
    return {name: _table(queries[name], answers[name], pages, clock) for name in queries}


def longest_of_page(pages: Sequence[RunPage], *, clock: bool = False) -> dict[str, Any] | None:
    """The longest waits of the runs; None where no event of any run tells of waits."""
    answers = [(page, page.longest) for page in pages if page.longest is not None]
    if not answers or all(not found.rows for _, (found, _) in answers):
        return None
    result = _joined([(page.name, found) for page, (found, _) in answers], pages)
    shown, count = len(result.rows), sum(total for _, (_, total) in answers)
    made = _body(result, "Longest waits", pages, clock, most=len(result.rows))
    made["id"] = "table-longest"
    if count > shown:
        made["below"] = [f"The longest {shown} of {count}. All of them, in the order of time:"]
        reports = [page.report for page, _ in answers]
        made["commands"] = [printable(one.verdict.command("query", "stalls")) for one in reports]
    return made


def _table(
    query: SqlFile,
    answers: Sequence[tuple[RunPage, Section]],
    pages: Sequence[RunPage],
    clock: bool,
) -> dict[str, Any]:
    title = query.title or query.name
    given = []
    left_out = not_chosen = 0
    doubts: list[Notice] = []
    for page, section in answers:
        if section.result is None:
            continue
        result, side = main_rows(section.result)
        left_out += side
        not_chosen += section.left_out
        doubts += [n for n in result.warnings if n not in page.report.warnings and n not in doubts]
        given.append((page.name, result))
    made = _body(_joined(given, pages), title, pages, clock) if given else _nothing(title)
    made["id"] = f"table-{query.name}"
    if given:
        read = [f"How to read it: {query.read}"] if query.read else []
        made["told"] = [*read, *map(metric_text, query.metrics), *made["told"]]
    made["doubts"] = [warning_text(notice) for notice in doubts]
    for page, section in answers:
        if section.skipped is not None:
            of = f"{page.name}: " if len(pages) > 1 else ""
            made["below"].append(printable(f"{of}not answered: {section.skipped.message}"))
    rows = sum(len(result.rows) for _, result in given)
    if left_out:
        made["below"].append(side_text(left_out).strip() + ".")
    if rows > MOST_ROWS or not_chosen:
        shown = min(rows, MOST_ROWS)
        made["below"].append(f"{shown} of {rows + not_chosen} rows. All of them:")
        made["commands"] = [printable(page.report.command(query)) for page, _ in answers]
    return made


def _nothing(title: str) -> dict[str, Any]:
    return {
        "title": printable(title), "html": "", "meanings": [], "below": [], "told": [],
        "doubts": [], "commands": [],
    }  # fmt: skip


def _body(
    result: Result, title: str, pages: Sequence[RunPage], clock: bool, most: int = MOST_ROWS
) -> dict[str, Any]:
    made = _nothing(title)
    if not result.rows:
        made["below"] = ["No rows."]
        return made
    paths = {page.name: page.report.run for page in pages}
    if len(pages) == 1:
        paths = {"": pages[0].report.run}
    # Several runs have no clock in common: their times count from their first events already.
    counted = result.from_start()
    commands = open_commands(counted, paths)
    made["html"] = table_html(result if clock else counted, title, commands, most)
    made["meanings"] = [(printable(name), text) for name, text in meanings_of(result)]
    made["told"] = [_AT] if any(commands) else []
    return made


def _joined(given: Sequence[tuple[str, Result]], pages: Sequence[RunPage]) -> Result:
    if len(pages) == 1:
        return given[0][1]
    return joined([(name, result.from_start()) for name, result in given])


_DIFFERS = ' class="differs"'


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
        cells = "".join(_environment_cell(value) for value in (key, *values))
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
        f"<tr>{''.join(_environment_cell(value) for value in line[first:])}</tr>\n"
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


def _environment_cell(value: str) -> str:
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


_FOLDER = Path(__file__).with_name("assets")
# What could end a script or begin a comment in it.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


def asset(name: str) -> str:
    """The text of a file that goes into pages."""
    return (_FOLDER / name).read_text(encoding="utf-8").rstrip("\n")


def template(name: str) -> Template:
    """A page to be filled; whatever it is given is escaped, and nothing may be missing."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def json_for_script(content: Any) -> str:
    """JSON that no HTML parser takes for anything else, whatever the texts in it."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return text.translate(_ESCAPES)


def policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """A Content-Security-Policy for these inline texts: nothing else runs, nothing is loaded."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(map(_source, scripts))}",
            f"style-src {' '.join(map(_source, styles))}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _source(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
