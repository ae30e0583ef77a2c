# SPDX-License-Identifier: Apache-2.0
"""Views of the library as PerfettoSQL: CREATE PERFETTO TABLE or VIEW with documented columns."""

from __future__ import annotations

import textwrap

from wbscope.library.sqlfile import Column, SqlFile

__all__ = [
    "QUERY_PREFIX",
    "comment",
    "create",
    "has_schema",
    "indexes",
    "object_name",
    "perfetto_type",
]

QUERY_PREFIX = "wbscope_"
_WIDTH = 80
_TYPES = {"INTEGER": "LONG", "REAL": "DOUBLE", "TEXT": "STRING", "BLOB": "BYTES"}
# What PerfettoSQL cannot have in a list of columns, quoted or not. A raw event keeps the kernel's
# words, so its view has no list then: the columns are in the comment above it.
_KEYWORDS = {"group", "index", "limit", "order", "transaction"}


def object_name(file: SqlFile) -> str:
    """Views keep their names; a query or finding becomes a view of its own."""
    prefix = {"query": QUERY_PREFIX, "finding": f"{QUERY_PREFIX}finding_"}.get(file.kind, "")
    return f"{prefix}{file.name}"


def perfetto_type(column: Column) -> str:
    """The type in Perfetto's words; times are typed as such, so that its UI shows them."""
    if column.type == "INTEGER":
        if column.name == "ts" or column.name.endswith("_ts"):
            return "TIMESTAMP"
        if column.name == "dur":
            return "DURATION"
    return _TYPES[column.type]


def create(file: SqlFile, *, select: str | None = None, replace: bool = False) -> str:
    """The statement without its semicolon; `select` stands in for the file's own."""
    words = "CREATE OR REPLACE PERFETTO" if replace else "CREATE PERFETTO"
    kind = "TABLE" if file.materialize else "VIEW"
    head = f"{words} {kind} {object_name(file)}{_columns(file)}"
    return f"{head} AS\n{file.select if select is None else select}"


def indexes(file: SqlFile, *, replace: bool = False) -> list[str]:
    """What makes the indexes of a file's table: joins of large tables need them."""
    if not file.materialize:
        return []
    words = "CREATE OR REPLACE PERFETTO" if replace else "CREATE PERFETTO"
    return [
        f"{words} INDEX {file.name}_{'_'.join(columns)} ON {file.name}({', '.join(columns)})"
        for columns in file.indexes
    ]


def comment(text: str, indent: str = "") -> list[str]:
    """Lines of comment."""
    lead = f"{indent}-- "
    # A break behind a hyphen would make two words of one.
    return textwrap.wrap(
        text, _WIDTH, initial_indent=lead, subsequent_indent=lead, break_on_hyphens=False
    )


def has_schema(file: SqlFile) -> bool:
    """Whether the statement lists the columns."""
    return not any(column.name in _KEYWORDS for column in file.columns)


def _columns(file: SqlFile) -> str:
    if not has_schema(file):
        return ""
    columns = file.columns
    lines = []
    for place, column in enumerate(columns):
        lines += comment(column.description or column.name, "  ")
        comma = "," if place < len(columns) - 1 else ""
        lines.append(f"  {column.name} {perfetto_type(column)}{comma}")
    return "(\n" + "\n".join(lines) + "\n)"
