# SPDX-License-Identifier: Apache-2.0
"""The event formats by which traces that are text are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["find_formats_dir", "reference_formats"]

# Folder -> the heading that wbscope-ingest wants: what kernels print of
# themselves, and what was written by hand for other printers.
_PARTS = {"formats": "kernel", "text-formats": "text"}


def reference_formats() -> Iterator[str]:
    """The content of a file for `wbscope-ingest --formats`, piece by piece."""
    root = find_formats_dir()
    for part, heading in _PARTS.items():
        for path in sorted((root / part).glob("*/*/*.format")):
            kernel, system = path.parts[-3:-1]
            yield f"# {heading} {kernel}\n# system {system}\n"
            yield path.read_text(encoding="utf-8", errors="replace").rstrip("\n") + "\n"


def find_formats_dir() -> Path:
    """$WBSCOPE_FORMATS_DIR, else in the package, else kernel-tracepoints/ of the checkout."""
    if chosen := os.environ.get("WBSCOPE_FORMATS_DIR"):
        return Path(chosen)
    package = Path(__file__).resolve().parent
    installed = package / "kernel-tracepoints"
    return installed if installed.is_dir() else package.parents[1] / "kernel-tracepoints"
