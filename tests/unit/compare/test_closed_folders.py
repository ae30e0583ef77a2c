# SPDX-License-Identifier: Apache-2.0
"""A folder that the user may not read is an input that cannot be read, and no bug."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from wbscope.base.errors import InputError
from wbscope.compare.load import Loader, expand

_NOBODY = 65534


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """Of somebody else; root reads all, so that it is another user for a while."""
    folder = tmp_path / "closed"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "trace.dat").write_bytes(b"")
    folder.chmod(0)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(_NOBODY)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o700)


@pytest.mark.parametrize("inside", ["", "1", "1/trace.dat", "1/trace.dat#part"])
def test_it_cannot_be_read(closed: Path, inside: str) -> None:
    name = str(closed / inside)
    assert expand(name) == [name]
    with pytest.raises(InputError) as caught:
        Loader().side("A", [name])
    assert (caught.value.slug, caught.value.exit_code) == ("cannot-read", 3)
