# SPDX-License-Identifier: Apache-2.0
"""Peak memory of the ingester."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from .tools import ingester_path

__all__ = ["peak_kib"]


def peak_kib(source: Path, database: Path, *arguments: str) -> int:
    """Ingest source and return the largest resident set of the program, in KiB."""
    command: list[str | Path] = [ingester_path(), "sqlite", source, "-o", database]
    command += ["--force", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        messages = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, messages
    return usage.ru_maxrss
