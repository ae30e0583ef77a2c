# SPDX-License-Identifier: Apache-2.0
"""Kernels that a lab fetches: kept for the next one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from wbscope.lab import kernels


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_two_labs_fetch_one_kernel(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second finds the first one's, and takes that."""

    def first(_apt: Path, *asked: str) -> list[Path]:
        monkeypatch.setattr(kernels, "_debs", lambda *_: [])
        target = kernels._fetched(*asked[1:], lambda _: None)
        (target / "vmlinuz").write_text("of the first")
        return []

    monkeypatch.setattr(kernels, "_debs", first)
    found = kernels._fetched("bookworm", "linux-image-test", lambda _: None)
    assert (found / "vmlinuz").read_text() == "of the first"
    assert [path.name for path in found.parent.iterdir() if path.name != found.name] == []


@pytest.mark.usefixtures("cache")
def test_a_cache_that_is_full_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(kernels, "_debs", lambda *_: [])
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        kernels._fetched("bookworm", "linux-image-test", lambda _: None)
