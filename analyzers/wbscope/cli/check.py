# SPDX-License-Identifier: Apache-2.0
"""wbscope check: does the trace agree with every source beside it?"""

from __future__ import annotations

from wbscope.cli.formats import write_document
from wbscope.cli.options import EngineName, EngineOption, Output, RunArgument, bound
from wbscope.cli.output import progress_bar
from wbscope.render.verdict import check_document
from wbscope.run.agreement import agreement_of
from wbscope.run.run import open_run


@bound
def check(
    run: RunArgument,
    *,
    engine: EngineOption = EngineName.sqlite,
    out: Output,
) -> None:
    """Compare the trace with every independent source in the run.

    vmstat, fio, file sizes, write calls, block I/O, sleeps, lost events; and
    the kernel's control law, computed again from each throttled call. Says what
    agrees, what differs and why it may. Exits 0 even if something differs: a
    gate with require = ["check"] refuses such a run. docs/check.md.

    \b
    Examples:
      wbscope check RUN
      wbscope check trace.dat --json
      wbscope query law RUN          # calls whose rate the law does not give
    """
    out.check([run], noun="check")
    with (
        progress_bar(run, hidden=out.hidden) as bar,
        open_run(run, observer=bar, engine=engine.value) as opened,
    ):
        made = check_document(agreement_of(opened))
    write_document(made, out)
