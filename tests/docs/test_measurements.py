# SPDX-License-Identifier: Apache-2.0
"""docs/measurements.md names every file; its metrics are generated (test_generated.py)."""

from __future__ import annotations

import pytest
from support.runs import REPOSITORY
from wbscope.measure import files

_PAGE = (REPOSITORY / "docs/measurements.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", files.NAMES)
def test_every_file_is_on_the_page(name: str) -> None:
    assert f"`{name}`" in _PAGE
