# SPDX-License-Identifier: Apache-2.0
"""A result as Arrow, pandas, polars and Parquet; types and units come along."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable
from typing import IO, TYPE_CHECKING, Any

from wbscope.base.errors import InputError, InternalError, SetupError
from wbscope.base.result import Column, Result, converter, typed_columns
from wbscope.base.system import as_utf8
from wbscope.base.version import __version__
from wbscope.render.json import notices

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


# Of 64 bits. In SQL a product that is larger becomes a number with a point.
_WHOLE_NUMBERS = 2**63


def _whole(value: Any) -> int:
    whole = int(value)
    if value != whole:
        raise ValueError(f"{value!r} is no whole number")
    if not -_WHOLE_NUMBERS <= whole < _WHOLE_NUMBERS:
        raise OverflowError(f"{value!r}")
    return whole


# SQLite lets one column hold several types; Arrow does not.
_CONVERT: dict[str, Callable[[Any], Any]] = {
    "INTEGER": _whole,
    "REAL": float,
    # A name may be any bytes, and Arrow takes UTF-8: \\udcff is one that is none, as in JSON.
    "TEXT": lambda value: f"x'{value.hex()}'" if isinstance(value, bytes) else as_utf8(str(value)),
}


@converter
def arrow_table(result: Result) -> pyarrow.Table:
    """The rows as a pyarrow.Table.

    Each field's metadata has `unit` and `description`; the schema's has `schema`,
    `query`, `wbscope_version` and `warnings` (JSON).
    """
    import pyarrow

    types = {
        "INTEGER": pyarrow.int64(),
        "REAL": pyarrow.float64(),
        "TEXT": pyarrow.string(),
        "BLOB": pyarrow.binary(),
        "NULL": pyarrow.null(),
    }
    fields = []
    arrays = []
    columns = typed_columns(result.columns, result.rows, result.fields)
    for index, column in enumerate(columns):
        kind = types[column.type]
        notes = {"unit": result.units.get(column.name), "description": column.description}
        metadata = {key: text for key, text in notes.items() if text}
        fields.append(pyarrow.field(column.name, kind, metadata=metadata or None))
        values = _values(result.name, column, (row[index] for row in result.rows))
        arrays.append(pyarrow.array(values, type=kind))
    schema = pyarrow.schema(fields, metadata=_about(result))
    return pyarrow.Table.from_arrays(arrays, schema=schema)


@converter
def pandas_frame(result: Result) -> pandas.DataFrame:
    """The rows as a pandas.DataFrame; NULL is pandas.NA, types do not depend on it.

    `attrs` has `query`, `units`, `descriptions` and `warnings`.
    """
    pd = _extra("pandas")
    import pyarrow

    kinds = {
        pyarrow.int64(): pd.Int64Dtype(),
        pyarrow.float64(): pd.Float64Dtype(),
        pyarrow.string(): pd.StringDtype(),
    }
    frame: pandas.DataFrame = arrow_table(result).to_pandas(types_mapper=kinds.get)
    frame.attrs.update(
        query=result.name,
        units=dict(result.units),
        descriptions=result.descriptions(),
        warnings=[notice.message for notice in result.warnings],
    )
    return frame


@converter
def polars_frame(result: Result) -> polars.DataFrame:
    """The rows as a polars.DataFrame of Int64, Float64 and String columns."""
    frame: polars.DataFrame = _extra("polars").from_arrow(arrow_table(result))
    return frame


def write_parquet(result: Result, target: str | IO[bytes]) -> None:
    """The rows as a Parquet file with the metadata of arrow_table()."""
    import pyarrow
    from pyarrow import parquet

    try:
        parquet.write_table(arrow_table(result), target, compression="zstd")
    except pyarrow.ArrowException as error:
        # A full disk comes as an OSError; this is what only Arrow knows.
        shown = str(getattr(target, "name", target))
        raise SetupError("cannot-write", shown, f"Arrow cannot write it: {error}") from error


def _values(query: str, column: Column, values: Iterable[Any]) -> list[Any]:
    convert = _CONVERT.get(column.type)
    if convert is None:
        return list(values)
    try:
        return [None if value is None else convert(value) for value in values]
    except OverflowError as error:  # no trace has such, but a database may
        raise InputError(
            "number-too-large",
            query,
            f"column {column.name} holds a number beyond what a trace can have: {error}",
            fix="wbscope ingest TRACE.dat -o RUN.db --force    # if the database was changed",
        ) from error
    except ValueError as error:
        what = f"column {column.name} is {column.type} in the header, and {error}"
        raise InternalError("column-type", query, f"{what} (a bug in sql/)") from error


def _about(result: Result) -> dict[str, str]:
    return {
        "schema": f"wbscope.{'sql' if result.name == 'sql' else 'query'}/1",
        "query": result.name,
        "wbscope_version": __version__,
        "warnings": json.dumps(notices(result.warnings)),
    }


def _extra(name: str) -> Any:
    """A library that only some users want; SetupError says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SetupError(
            "missing-library",
            f"to_{name}()",
            f"needs {name}, which cannot be imported: {error}",
            fix=f"pip install 'wbscope[{name}]'    # or use .to_arrow() or .records()",
        ) from error
