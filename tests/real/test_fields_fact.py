# SPDX-License-Identifier: Apache-2.0
"""The fact `fields` of a run is about its kernel, not about the wbscope that read it."""

from __future__ import annotations

from pathlib import Path

import wbscope
from support.runs import example
from support.tools import ingester_path, run
from wbscope.compare.fingerprint import fingerprint_of
from wbscope.library.library import load_library


def test_fields_are_those_of_an_older_ingest(tmp_path: Path) -> None:
    """A baseline that was kept is not another because ingest tells more of a record."""
    library = load_library()
    given = library.table_options()
    repeats = [place for place, word in enumerate(given) if word in {"--repeats", "--news"}]
    assert {given[place] for place in repeats} == {"--repeats", "--news"}
    older = [word for place, word in enumerate(given) if not {place, place - 1} & {*repeats}]
    facts = []
    for number, options in enumerate((given, older)):
        database = tmp_path / f"{number}.db"
        trace = example("four-equal-writers").trace
        done = run([ingester_path(), "sqlite", trace, "-o", database, "--events", "*", *options])
        assert done.returncode == 0, done.stderr
        with wbscope.open(database) as opened:
            facts.append(fingerprint_of(opened)["fields"])
    assert facts[0] == facts[1] is not None
