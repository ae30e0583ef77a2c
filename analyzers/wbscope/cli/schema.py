# SPDX-License-Identifier: Apache-2.0
"""wbscope schema: what the documents of --json look like."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from wbscope.base.result import Result
from wbscope.cli.output import write_stdout
from wbscope.render.schemadocs import DOCUMENTS
from wbscope.render.schemas import schema_of
from wbscope.render.table import table_text

__all__ = ["schema"]


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[VERB]", help="A verb, or the name of a document.", show_default=False
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of what a verb prints with --json.

    Without a verb it lists the documents. One that several calls of a verb print is one of
    several (oneOf). docs/for-agents.md: how a program should ask wbscope.

    \b
    Examples:
      wbscope schema
      wbscope schema explain
      wbscope schema error
    """
    if name is None:
        rows = [(f"wbscope.{one.name}/1", one.verb or "all", one.about) for one in DOCUMENTS]
        columns = ("schema", "verb", "about")
        write_stdout(table_text(Result("schema", columns, {}, rows), None))
        return
    write_stdout(json.dumps(schema_of(name), indent=1) + "\n")
