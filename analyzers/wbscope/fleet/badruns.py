# SPDX-License-Identifier: Apache-2.0
"""Runs that could not be read: a row each of the table ingest_errors."""

from __future__ import annotations

import contextlib
import hashlib
import time
from datetime import UTC, datetime
from pathlib import Path

from wbscope.base.errors import WbscopeError
from wbscope.base.filenames import as_utf8
from wbscope.base.version import __version__
from wbscope.fleet.dataset import Dataset, cannot_write, place
from wbscope.fleet.layout import ERRORS, FLEET_SCHEMA, UNKNOWN, Partition, data_path
from wbscope.fleet.redact import Redaction
from wbscope.fleet.tables import OWN_TABLES, table_of, write_table

__all__ = ["forget_error", "publish_error", "write_error"]

_DIGITS = 32


def write_error(
    source: str,
    error: WbscopeError,
    folder: Path,
    *,
    content: str | None = None,
    redaction: Redaction | None = None,
    written_s: float | None = None,
) -> tuple[str, Path]:
    """The row of a bad run: where it belongs below the dataset, and the file in `folder`.

    `written_s` is of a source that is not on this machine.
    The same content, or a source that cannot be read, has one row however often it is tried.
    """
    shown = source if redaction is None else redaction.path(source)
    message = error.message if redaction is None else error.slug
    told = f"{shown}\0{error.slug}"  # of a path, a hash without the key is a guess away
    name = content or hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]
    values = (
        name, shown, error.slug, message, error.exit_code, content, int(time.time()), __version__,
        FLEET_SCHEMA,
    )  # fmt: skip
    local = folder / f"{ERRORS}-{name}.parquet"
    texts = [as_utf8(value) if isinstance(value, str) else value for value in values]
    write_table(table_of(ERRORS, OWN_TABLES[ERRORS], [tuple(texts)]), local)
    return data_path(ERRORS, Partition(_date_of(source, written_s), UNKNOWN, UNKNOWN), name), local


def publish_error(dataset: Dataset, name: str, local: Path) -> None:
    """Add a row, unless there is one of this name."""
    target = dataset.path / name
    try:
        with dataset.locked():
            if any(path.name == target.name for path in dataset.error_files()):
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                place(local, target)
    except OSError as error:
        raise cannot_write(target, error) from error


def forget_error(dataset: Dataset, run: str) -> None:
    """A later wbscope has read what an earlier one could not."""
    for path in dataset.error_files():
        if path.stem == run:
            with contextlib.suppress(OSError):
                path.unlink()


def _date_of(source: str, written_s: float | None) -> str:
    """The day when what is there was written."""
    try:
        written_s = Path(source).stat().st_mtime if written_s is None else written_s
        return f"{datetime.fromtimestamp(written_s, UTC):%Y-%m-%d}"
    except (OSError, OverflowError, ValueError):
        return UNKNOWN
