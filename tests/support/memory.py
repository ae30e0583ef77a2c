# SPDX-License-Identifier: Apache-2.0
"""Peak memory of the ingester."""

from __future__ import annotations

import sys
from pathlib import Path

from .tools import ingester_path, run

__all__ = ["peak_kib"]

# A process starts with the peak of the one that made it, so a small one has to.
_MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_kib(source: Path, database: Path, *arguments: str) -> int:
    """Ingest source and return the largest resident set of the program, in KiB."""
    command: list[str | Path] = [sys.executable, "-c", _MEASURE, ingester_path()]
    command += ["sqlite", source, "-o", database, "--force", *arguments]
    result = run(command)
    assert result.returncode == 0, result.stderr
    return int(result.stdout)
