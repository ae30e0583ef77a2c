# SPDX-License-Identifier: Apache-2.0
"""The disk of the cache is full: the user gave no output, and is told to move the cache."""

from __future__ import annotations

from pathlib import Path

import pytest
from wbscope.base.cache import CACHE_FIX
from wbscope.base.errors import SetupError
from wbscope.library.library import load_library
from wbscope.run.ingested import database_of
from wbscope.source.source import find_source


@pytest.mark.usefixtures("ingester")
@pytest.mark.parametrize(
    ("slug", "moved"), [("cannot-write", True), ("cannot-write-database", True), ("no-room", False)]
)
def test_remedy(trace: Path, monkeypatch: pytest.MonkeyPatch, slug: str, moved: bool) -> None:
    monkeypatch.setenv("FAKE_INGESTER", "error5")
    monkeypatch.setenv("FAKE_INGESTER_SLUG", slug)
    with pytest.raises(SetupError) as caught:
        database_of(find_source(str(trace)), load_library())
    assert caught.value.slug == slug
    assert caught.value.fix == (CACHE_FIX if moved else "record it again")
