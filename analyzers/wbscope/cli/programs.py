# SPDX-License-Identifier: Apache-2.0
"""Verbs for programs: wbscope schema, sql-package and completion."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wbscope.base.result import Result
from wbscope.base.system import join
from wbscope.cli.options import JsonOption
from wbscope.cli.output import note, write_stdout
from wbscope.perfetto.package import PACKAGE, write_package
from wbscope.perfetto.perfetto_library import perfetto_library
from wbscope.render.json import document
from wbscope.render.schemadocs import DOCUMENTS
from wbscope.render.schemas import schema_of
from wbscope.render.text import table_text


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


def sql_package(
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", show_default=False, help="Folder.")
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Write over edited modules, and beside other files.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the SQL library as PerfettoSQL modules.

    They are a package for `trace_processor_shell --add-sql-package`: modules
    wbscope.queries.NAME, wbscope.views.NAME and wbscope.timelines.NAME;
    wbscope.library has all of them. An older package in the folder is replaced, unless a module
    in it was edited.

    \b
    Examples:
      wbscope sql-package -o ./wbscope
      trace_processor_shell --add-sql-package ./wbscope trace.pftrace
      > INCLUDE PERFETTO MODULE wbscope.queries.fairness;
      > SELECT * FROM wbscope_fairness;
    """
    folder = Path(output)
    count = write_package(perfetto_library(), folder, force=force)
    if as_json:
        row = {"output": output, "package": PACKAGE, "modules_count": count}
        body = {"units": {"modules_count": "count"}, "rows": [row], "warnings": []}
        write_stdout(document("sql-package", {}, body))
        return
    shown = join([output if "/" in output else f"./{output}"])
    at = "" if folder.name == PACKAGE else f"@{PACKAGE}"
    note(
        f"wrote {output}: {count} modules;"
        f" trace_processor_shell --add-sql-package {shown}{at} TRACE"
    )


_SCRIPTS = Path(__file__).with_name("completions")


class Shell(StrEnum):
    """Which one; the name of its script is that of the file that the shell looks for."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"

    @property
    def script(self) -> Path:
        """What it reads."""
        names = {"bash": "wbscope.bash", "zsh": "_wbscope", "fish": "wbscope.fish"}
        return _SCRIPTS / names[self.value]


def completion(
    shell: Annotated[Shell, typer.Argument(help="Which shell.", show_default=False)],
) -> None:
    """Print the script that completes words of wbscope in a shell.

    Commands, options, queries, columns, metrics, figures; of a RUN that was read
    before, its events, tasks, bdis and cgroups. The .deb installs the scripts.

    \b
    Examples:
      eval "$(wbscope completion bash)"    # in this shell; for all of them:
      wbscope completion bash > ~/.local/share/bash-completion/completions/wbscope
      wbscope completion fish > ~/.config/fish/completions/wbscope.fish
      wbscope completion zsh > ~/.zfunc/_wbscope    # fpath=(~/.zfunc $fpath)
    """
    write_stdout(shell.script.read_text(encoding="utf-8"))
