# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["CsvOption", "ForceOption", "JsonOption", "QuietOption", "RunArgument"]

RunArgument = Annotated[
    str,
    typer.Argument(metavar="RUN", help="Run folder, trace.dat or .db.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="CSV with raw numbers.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
