# SPDX-License-Identifier: Apache-2.0
"""The disk of the cache is full: the user gave no output, and is told to move the cache."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from wbscope.base.cache import CACHE_FIX
from wbscope.base.errors import SetupError
from wbscope.library.library import load_library
from wbscope.run import ingested
from wbscope.run.source import find_source


@pytest.mark.parametrize(
    ("slug", "moved"), [("cannot-write", True), ("cannot-write-database", True), ("no-room", False)]
)
def test_remedy(trace: Path, monkeypatch: pytest.MonkeyPatch, slug: str, moved: bool) -> None:
    def full(*_: object) -> NoReturn:
        raise SetupError(slug, "x", "disk I/O error", fix="of the writer")

    monkeypatch.setattr(ingested, "_make", full)
    with pytest.raises(SetupError) as caught:
        ingested.database_of(find_source(str(trace)), load_library())
    assert caught.value.fix == (CACHE_FIX if moved else "of the writer")
