# SPDX-License-Identifier: Apache-2.0
"""File names as a CI system knows them: from the top of the checkout."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from wbscope.base.current import absolute

__all__ = ["checkout_name", "checkout_uri"]


def checkout_name(path: Path) -> str:
    """Relative to $GITHUB_WORKSPACE, $CI_PROJECT_DIR or the current folder; else as it is."""
    full = absolute(path)
    for top in (os.environ.get("GITHUB_WORKSPACE"), os.environ.get("CI_PROJECT_DIR"), "."):
        if top and full.is_relative_to(folder := absolute(Path(top))):
            return full.relative_to(folder).as_posix()
    return full.as_posix()


def checkout_uri(path: Path) -> str:
    """The same as a URI reference."""
    name = quote(os.fsencode(checkout_name(path)))
    return f"file://{name}" if name.startswith("/") else name
