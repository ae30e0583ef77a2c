# SPDX-License-Identifier: Apache-2.0
"""wbscope doctor: what can be recorded here."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from wbscope.base.errors import SetupError
from wbscope.cli.options import JsonOption
from wbscope.cli.output import page_width, write_stdout
from wbscope.library.library import load_library
from wbscope.render.json import document


def doctor(
    events: Annotated[
        bool, typer.Option("--events", help="Every event of the profiles, here or not.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """What this machine can record, and the fix for what it cannot.

    Exits 0 when the smallest profile can be recorded, else 5.  Mounts tracefs, as record
    does, where it is not mounted.

    \b
    Examples:
      wbscope doctor
      wbscope doctor --events
      wbscope doctor --json
    """
    # Inside, so that no other verb waits for these modules.
    from wbscope.doctor.checks import Status
    from wbscope.doctor.doctor import examine, states_here
    from wbscope.render.catalogue import checks_text, states_text

    profiles = load_library().profiles
    if events:
        states = states_here(profiles)
        if as_json:
            rows = [asdict(state) for state in states]
            write_stdout(document("doctor_events", {}, {"units": {}, "rows": rows, "warnings": []}))
        else:
            write_stdout(states_text(states))
        return
    checks = examine(profiles)
    if as_json:
        rows = [asdict(check) for check in checks]
        write_stdout(document("doctor", {}, {"units": {}, "rows": rows, "warnings": []}))
    else:
        write_stdout(checks_text(checks, page_width()))
    if any(check.status is Status.fails for check in checks):
        raise typer.Exit(SetupError.exit_code)
