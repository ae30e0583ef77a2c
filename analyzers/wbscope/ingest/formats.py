# SPDX-License-Identifier: Apache-2.0
"""The event formats of kernels: one file a kernel, which wbscope-ingest reads as it is.

A file begins with "# kernel RELEASE-MACHINE", or "# text NAME" where it was written by hand for
the lines of another printer; "# system NAME" stands before the formats of each system.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CAPTURED", "WRITTEN", "Format", "captured", "find_formats_dir", "reference_formats"]

CAPTURED = "formats"
WRITTEN = "text-formats"
_PART = re.compile(r"^(?:# system (?P<system>\S+)$|(?=name: (?P<name>\S+)$))", re.MULTILINE)


@dataclass(frozen=True)
class Format:
    """What one kernel prints of one event in tracefs."""

    kernel: str
    system: str
    name: str
    text: str

    @property
    def event(self) -> str:
        """As in trace-cmd record -e."""
        return f"{self.system}:{self.name}"


def captured(part: str = CAPTURED) -> Iterator[Format]:
    """Every format that was captured from a kernel, or (WRITTEN) written by hand."""
    for path in sorted((find_formats_dir() / part).glob("*.formats")):
        text = path.read_text(encoding="utf-8", errors="replace")
        parts = list(_PART.finditer(text))
        system = ""
        for here, after in zip(parts, [*parts[1:], None], strict=True):
            if here["name"] is None:
                system = here["system"]
                continue
            end = after.start() if after is not None else len(text)
            yield Format(path.stem, system, here["name"], text[here.start() : end])


def reference_formats() -> Iterator[str]:
    """The content of a file for `wbscope-ingest --formats`, piece by piece."""
    root = find_formats_dir()
    for part in (CAPTURED, WRITTEN):
        for path in sorted((root / part).glob("*.formats")):
            yield path.read_text(encoding="utf-8", errors="replace")


def find_formats_dir() -> Path:
    """$WBSCOPE_FORMATS_DIR, else in the package, else kernel-tracepoints/ of the checkout."""
    if chosen := os.environ.get("WBSCOPE_FORMATS_DIR"):
        return Path(chosen)
    package = Path(__file__).resolve().parents[1]
    installed = package / "kernel-tracepoints"
    return installed if installed.is_dir() else package.parents[1] / "kernel-tracepoints"
