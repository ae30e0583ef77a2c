# SPDX-License-Identifier: Apache-2.0
"""Wide tables go on below in blocks: each of every query on every run can be read on its own."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import wbscope as library
from support.cli import Wbscope
from support.runs import RecordedRun
from wbscope.base.errors import EvidenceError
from wbscope.base.result import Result
from wbscope.render.text import arranged, column_texts, headings, main_rows, table_text
from wbscope.run.filters import Filters

# Of a query that lists events one by one; the keys of all rows are looked at as values.
_MOST_ROWS = 500
_WIDTHS = (80, 60)
# Reclaims of one task may begin at the same time: the rows are numbered.
_NUMBERED = {"reclaim_dirty_state"}


@pytest.fixture(scope="module")
def answers(
    recorded: RecordedRun, wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory
) -> list[Result]:
    """What every query says of the run that it can answer."""
    database = tmp_path_factory.mktemp("blocks") / "run.db"
    made = wbscope.run("ingest", recorded.folder, "-o", database)
    assert made.returncode == 0, made.stderr
    found = []
    with library.open(database) as run:
        for query in run.library.queries():
            try:
                found.append(run.ask(query.name, Filters()).from_start())
            except EvidenceError:
                continue
    assert len(found) > 10
    return found


def test_keys_tell_rows_apart(answers: list[Result]) -> None:
    for answer in answers:
        assert answer.keys, answer.name
        if answer.name not in _NUMBERED:
            keys = set(answer.only(answer.keys).rows)
            assert len(keys) == len(set(answer.rows)), f"@keys of {answer.name}"


@pytest.mark.parametrize("width", _WIDTHS)
def test_each_block_tells_rows_apart(answers: list[Result], width: int) -> None:
    for answer in answers:
        short = replace(answer, rows=answer.rows[:_MOST_ROWS])
        made = arranged(main_rows(short)[0])
        columns = [column_texts(made, index) for index in range(len(made.columns))]
        names = headings(made)
        rows = list(zip(*columns, strict=True))
        rest = names[len(made.keys) :]
        blocks = _blocks(table_text(short, width)) if rows else []
        for block in blocks:
            heading, spans = block.heading, block.spans
            numbered = heading[0] == "#"
            keys = heading[numbered : numbered + len(made.keys)]
            assert keys == names[: len(made.keys)], f"{answer.name}: not all keys in {heading}"
            values = heading[numbered + len(made.keys) :]
            assert values == rest[: len(values)], answer.name
            place = len(names) - len(rest)
            shown = [*range(len(made.keys)), *range(place, place + len(values))]
            rest = rest[len(values) :]
            wanted = [
                (*([str(number)] if numbered else []), *(row[i] for i in shown))
                for number, row in enumerate(rows, 1)
            ]
            block.check(wanted, answer.name)
            if len(blocks) > 1:
                known = {row[: numbered + len(made.keys)] for row in wanted}
                assert len(known) >= len(set(rows)), f"{answer.name}: {heading}"
            assert spans[-1][1] <= width, f"{answer.name}: a block is {spans[-1][1]} wide"
        assert not rest or not rows, f"{answer.name}: {rest} are in no block"


class _Block:
    """One block of a table, as it was printed."""

    def __init__(self, lines: list[str]) -> None:
        ruler = next(i for i, line in enumerate(lines) if re.fullmatch(r"-+(?:  -+)*", line))
        self.spans = [match.span() for match in re.finditer("-+", lines[ruler])]
        self.heading = [
            " ".join(words) for words in zip(*map(self._cells, lines[:ruler]), strict=True)
        ]
        self.heading = [" ".join(words.split()) for words in self.heading]
        self._lines = lines[ruler + 1 :]

    def check(self, rows: list[tuple[str, ...]], name: str) -> None:
        """The rows are there with all of their texts, folded or not."""
        lines = iter(self._lines)
        for row in rows:
            wanted = [_squeezed(text) for text in row]
            found = [""] * len(row)
            while found != wanted:
                line = next(lines, None)
                assert line is not None, f"{name}: {found} of {wanted}"
                cells = self._cells(line)
                found = [
                    before + _squeezed(cell) for before, cell in zip(found, cells, strict=True)
                ]
                assert all(w.startswith(f) for w, f in zip(wanted, found, strict=True)), (
                    f"{name}: {found}"
                )
        assert next(lines, None) is None, name

    def _cells(self, line: str) -> list[str]:
        return [line[start:end].strip() for start, end in self.spans]


def _blocks(text: str) -> list[_Block]:
    footer = re.compile(r"^\d+ more rows? (?:is|are) about .*\n", re.MULTILINE)
    return [_Block(part.rstrip("\n").split("\n")) for part in footer.sub("", text).split("\n\n")]


def _squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)
