# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python.md do what the page says."""

from __future__ import annotations

import doctest
import io
import re

import pytest
from support.runs import REPOSITORY

_PAGE = REPOSITORY / "docs" / "python.md"
_BLOCK = re.compile(r"(?<=^```pycon\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


def test_examples_of_the_python_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("WBSCOPE_SQL_DIR", raising=False)
    text = _PAGE.read_text(encoding="utf-8")
    blocks = list(_BLOCK.finditer(text))
    assert len(blocks) > 5
    # One session for the whole page, with lines numbered as on the page.
    session = [""] * text.count("\n")
    for block in blocks:
        first = text.count("\n", 0, block.start())
        lines = block[0].splitlines()
        session[first : first + len(lines)] = lines
    examples = doctest.DocTestParser().get_doctest(
        "\n".join(session), {}, _PAGE.name, str(_PAGE), 0
    )
    told = io.StringIO()
    results = doctest.DocTestRunner().run(examples, out=told.write)
    assert results.attempted > 20
    assert results.failed == 0, told.getvalue()
