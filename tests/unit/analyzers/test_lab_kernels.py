# SPDX-License-Identifier: Apache-2.0
"""Kernels that a lab fetches: kept for the next one."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from support.waits import GUARD_SECONDS, wait_until
from wbscope.lab.kernels import Image, Kernel, find_image

_KERNEL = Kernel(debian="bookworm", package="linux-image-test")
# apt-get and apt-cache have one package, which dpkg unpacks; the first dpkg waits to be let go.
_PROGRAMS = {
    "apt-get": 'case "$*" in *download*) : > linux.deb;; esac',
    "apt-cache": ":",
    "dpkg": """
mkdir -p "$3/boot"
echo "of $$" > "$3/boot/vmlinuz"
mkdir {0}/first 2>/dev/null && until [ -e {0}/go ]; do sleep 0.02; done
exit 0
""",
}


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the programs of a Debian are; its packages go into a cache beside them."""
    for name, text in _PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text.format(tmp_path)}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def _found() -> Image:
    return find_image(_KERNEL, lambda _: None)


def test_two_labs_fetch_one_kernel(debian: Path) -> None:
    """The second one to be ready finds the other's, and takes that."""
    late: list[Image] = []
    thread = threading.Thread(target=lambda: late.append(_found()), daemon=True)
    thread.start()
    wait_until((debian / "first").exists, "the first lab unpacks")
    image = _found()
    told = image.vmlinuz.read_text()
    (debian / "go").touch()
    thread.join(GUARD_SECONDS)
    assert late == [image] == [_found()]
    assert image.vmlinuz.read_text() == told
    assert [path.name for path in image.vmlinuz.parents[2].iterdir()] == [
        image.vmlinuz.parents[1].name
    ]


def test_a_cache_that_is_full_is_told(debian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (debian / "go").touch()
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        _found()
