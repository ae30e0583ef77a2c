# SPDX-License-Identifier: Apache-2.0
"""wbscope sql-package: the SQL library for Perfetto's trace processor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wbscope.base.filenames import join
from wbscope.cli.options import JsonOption
from wbscope.cli.output import note, write_stdout
from wbscope.perfetto.package import PACKAGE, write_package
from wbscope.perfetto.perfetto_library import perfetto_library
from wbscope.render.jsondoc import document

__all__ = ["sql_package"]


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
