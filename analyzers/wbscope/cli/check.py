# SPDX-License-Identifier: Apache-2.0
"""wbscope check: does the trace agree with every source beside it?"""

from __future__ import annotations

from pathlib import Path

from wbscope.base.outputs import check_output, write_whole
from wbscope.cli.options import (
    EngineName,
    EngineOption,
    ForceOption,
    JsonOption,
    OutputOption,
    QuietOption,
    RunArgument,
)
from wbscope.cli.output import note, page_width, progress_bar, write_stdout
from wbscope.render.text import PAGE_WIDTH
from wbscope.render.verdict import check_json, check_text
from wbscope.run.agreement import agreement_of
from wbscope.run.run import open_run


def check(
    run: RunArgument,
    engine: EngineOption = EngineName.sqlite,
    output: OutputOption = "-",
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare the trace with every independent source beside it.

    vmstat, fio, file sizes, write calls, block I/O, sleeps, lost events; and
    the kernel's control law, computed again from each throttled call. Says what
    agrees, what differs and why it may. The exit code is 0 also when something
    differs: a gate with require = ["check"] refuses such a run. docs/check.md.

    \b
    Examples:
      wbscope check RUN
      wbscope check trace.dat --json
      wbscope query law RUN          # calls whose rate the law does not give
    """
    to_stdout = output == "-"
    if not to_stdout:
        check_output(output, force, [Path(run)], "check.txt")
    with (
        progress_bar(run, hidden=quiet or as_json) as bar,
        open_run(run, observer=bar, engine=engine.value) as opened,
    ):
        found = agreement_of(opened)
    text = (
        check_json(found)
        if as_json
        else check_text(found, page_width() if to_stdout else PAGE_WIDTH)
    )
    if to_stdout:
        write_stdout(text, colours=True)
        return
    write_whole(Path(output), text, force=force)
    if not as_json:
        note(f"wrote {output}")
