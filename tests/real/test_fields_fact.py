# SPDX-License-Identifier: Apache-2.0
"""The fact `fields` of a run is about its kernel, not about the wbscope that read it."""

from __future__ import annotations

import json
from pathlib import Path

import wbscope
from support.runs import example
from support.tools import ingester_path, plan_option, run
from wbscope.compare.sameness import fingerprint_of
from wbscope.library.library import load_library


def test_fields_are_those_of_an_older_ingest(tmp_path: Path) -> None:
    """A baseline that was kept is not another because ingest tells more of a record."""
    given = json.loads(load_library().load_plan())
    newer = {"repeats", "context"}
    assert newer <= set().union(*given.values())
    older = {
        event: {key: value for key, value in told.items() if key not in newer}
        for event, told in given.items()
    }
    facts = []
    for number, plan in enumerate((given, older)):
        database = tmp_path / f"{number}.db"
        trace = example("four-equal-writers").trace
        command = [ingester_path(), "sqlite", trace, "-o", database, "--events", "*"]
        done = run([*command, *plan_option(database, plan)])
        assert done.returncode == 0, done.stderr
        with wbscope.open(database) as opened:
            facts.append(fingerprint_of(opened)["fields"])
    assert facts[0] == facts[1] is not None
