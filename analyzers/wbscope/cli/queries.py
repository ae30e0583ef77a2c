# SPDX-License-Identifier: Apache-2.0
"""wbscope queries: the catalogue."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from wbscope.base.errors import UsageError
from wbscope.base.result import unit_of
from wbscope.cli.options import JsonOption
from wbscope.cli.output import page_width, write_stdout
from wbscope.library.catalog import profile_of
from wbscope.library.library import Library, load_library
from wbscope.library.sqlfile import SqlFile
from wbscope.render.catalogue import details_text, filter_options, list_text, metric_records
from wbscope.render.json import document


def queries(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Only this query or view, with its columns."),
    ] = None,
    as_sql: Annotated[
        bool, typer.Option("--sql", help="The SQL of the query or view, as it is run.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Options, events and columns of each.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the canned queries, what each needs and its columns.

    \b
    Examples:
      wbscope queries
      wbscope queries throttle_by_task
      wbscope queries wb_throttle --sql
      wbscope queries --json
    """
    library = load_library()
    shown = library.queries() if name is None else [library.find(name)]
    if as_sql:
        if name is None or as_json:
            raise UsageError(
                "usage",
                "--sql",
                "prints the SQL of one query or view, and nothing else",
                fix="wbscope queries throttle_by_task --sql",
            )
        write_stdout(shown[0].sql() + "\n")
    elif as_json:
        body = {"units": {}, "rows": [_record(query, library) for query in shown], "warnings": []}
        write_stdout(document("queries", {}, body))
    elif verbose or name is not None:
        details = [details_text(query, library, page_width()) for query in shown]
        write_stdout("\n".join(details))
    else:
        write_stdout(list_text(shown, page_width()))


def _record(query: SqlFile, library: Library) -> dict[str, Any]:
    profile = profile_of(query.events, library.profiles) if query.events else None
    return {
        "name": query.name,
        "title": query.title,
        "subject": query.subject.rstrip("."),
        "summary": query.summary,
        "read": query.read,
        "grain": query.grain,
        "events": [list(group) for group in query.events],
        "optional": list(query.optional),
        "profile": None if profile is None else profile.name,
        "options": filter_options(query),
        "explain": query.explain or None,
        "source": query.source or None,
        "columns": [{**asdict(column), "unit": unit_of(column.name)} for column in query.columns],
        "metrics": metric_records(query),
    }
