# SPDX-License-Identifier: Apache-2.0
"""wbscope fleet: many runs of many machines in one dataset, and what it is asked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from wbscope.base.errors import WbscopeError
from wbscope.cli.group import verb_group
from wbscope.cli.options import JsonOption, QuietOption
from wbscope.cli.output import note, write_stdout

__all__ = ["RedactOption", "app", "harvest"]

app = verb_group("fleet", no_args_is_help=True)

SourcesArgument = Annotated[
    list[str],
    typer.Argument(metavar="SRC...", help="Runs, or folders of runs.", show_default=False),
]
DatasetOption = Annotated[
    Path, typer.Option("-o", "--output", metavar="DATASET", help="A dataset, or a new folder.")
]
RedactOption = Annotated[
    Path | None,
    typer.Option(
        "--redact", metavar="KEYFILE", help="Hash names of tasks and paths with this key."
    ),
]


@app.callback()
def fleet() -> None:
    """Put many runs in one dataset, and ask all of them.

    \b
    Examples:
      wbscope fleet ingest traces/ -o dataset
      wbscope fleet ingest traces/ -o dataset --redact names.key
    """


@app.command()
def ingest(
    sources: SourcesArgument,
    output: DatasetOption,
    redact: RedactOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Add runs to a dataset; those that are in it are skipped.

    Folders are searched at any depth. A run that cannot be read is a warning
    and a row of ingest_errors, and the exit code stays 0; 5 is a full disk or
    the like: start the same command again, it goes on where it was. Killed at
    any moment, a dataset holds whole runs, each once. docs/fleet.md says how
    it lies on disk and how others read it.

    \b
    Examples:
      wbscope fleet ingest traces/ -o dataset
      wbscope fleet ingest run1 run2.dat archive/ -o dataset --json
      head -c 32 /dev/urandom > names.key
      wbscope fleet ingest traces/ -o dataset --redact names.key
    """
    from wbscope.fleet.findsources import sources_in

    found = (one for source in sources for one in sources_in(source))
    harvest(found, output, redact, as_json=as_json, quiet=quiet, strict=False)


def harvest(
    sources: Iterable[str],
    output: Path,
    redact: Path | None,
    *,
    as_json: bool,
    quiet: bool,
    strict: bool,
) -> None:
    """Add runs and say what came of each; `strict` ends at the first that is bad."""
    import pyarrow  # noqa: F401 - before any work

    from wbscope.fleet.dataset import make_dataset
    from wbscope.fleet.harvest import ingest_sources
    from wbscope.fleet.redact import read_key
    from wbscope.render.fleetpages import added_json, added_text

    redaction = None if redact is None else read_key(redact)
    dataset = make_dataset(output, None if redaction is None else redaction.id)
    rows = []

    def each(source: str, outcome: str, run: str | None, error: WbscopeError | None) -> None:
        rows.append((source, outcome, run, error))
        if error is not None and not as_json:
            note(f"warning[{error.slug}]: {source}: {error.message}; not in the dataset")
        elif not quiet and not as_json:
            note(f"{outcome}: {source}")

    ingest_sources(sources, dataset, redaction=redaction, each=each, strict=strict)
    if as_json:
        write_stdout(added_json(str(output), rows))
    note(added_text(str(output), rows))
