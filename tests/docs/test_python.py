# SPDX-License-Identifier: Apache-2.0
"""The Python examples of the documentation do what the page says."""

from __future__ import annotations

import doctest
import io
import re

import pytest
from support.runs import REPOSITORY

# Page -> how many examples it has at least.
_PAGES = {"python.md": 26, "compare.md": 4, "plot.md": 8}
_BLOCK = re.compile(r"(?<=^```pycon\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", _PAGES)
def test_examples_of_a_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, page: str
) -> None:
    path = REPOSITORY / "docs" / page
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("WBSCOPE_SQL_DIR", raising=False)
    text = path.read_text(encoding="utf-8")
    blocks = list(_BLOCK.finditer(text))
    # One session for the whole page, with lines numbered as on the page.
    session = [""] * text.count("\n")
    for block in blocks:
        first = text.count("\n", 0, block.start())
        lines = block[0].splitlines()
        session[first : first + len(lines)] = lines
    examples = doctest.DocTestParser().get_doctest("\n".join(session), {}, page, str(path), 0)
    told = io.StringIO()
    results = doctest.DocTestRunner().run(examples, out=told.write)
    assert results.attempted >= _PAGES[page]
    assert results.failed == 0, told.getvalue()
