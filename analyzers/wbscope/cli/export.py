# SPDX-License-Identifier: Apache-2.0
"""wbscope export: all that runs say, as Parquet files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wbscope.cli.fleet import RedactOption, harvest
from wbscope.cli.options import JsonOption, QuietOption, RunsArgument


def export(
    runs: RunsArgument,
    parquet: Annotated[
        Path, typer.Option("--parquet", metavar="DIR", help="A dataset, or a new folder.")
    ],
    redact: RedactOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write all answers of runs as Parquet files.

    A folder for each canned query, with the same files as those of
    `wbscope fleet ingest`, which adds to them and skips known runs.
    Here a run that cannot be read is an error, and those before it stay.

    \b
    Examples:
      wbscope export RUN --parquet answers
      wbscope export run1 run2 --parquet answers --redact names.key
      duckdb -c "SELECT * FROM 'answers/stalls/**/*.parquet'"
    """
    harvest(
        runs,
        str(parquet),
        redact,
        as_json=as_json,
        quiet=quiet,
        strict=True,
        argument="parquet",
    )
