# SPDX-License-Identifier: Apache-2.0
"""Programs that tests run, and what happens when one is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

__all__ = ["ingester_path", "missing", "plan_option", "require_program", "run", "wbscope_path"]


def missing(reason: str) -> None:
    """Skip the test; in CI, where everything has to be there, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def require_program(name: str) -> str:
    """The program's path, or the end of the test."""
    path = shutil.which(name)
    if path is None:
        missing(f"{name} is not installed")
        raise AssertionError("missing() does not return")
    return path


def wbscope_path() -> Path:
    """The command under test: $WBSCOPE, or the one beside this Python."""
    path = Path(os.environ.get("WBSCOPE") or Path(sys.executable).with_name("wbscope"))
    if not path.exists():
        missing(f"no wbscope at {path}; run make setup or set WBSCOPE")
    return path


def ingester_path() -> Path:
    """The program that reads traces: $WBSCOPE_INGEST, or the one beside the command under test."""
    path = Path(os.environ.get("WBSCOPE_INGEST") or wbscope_path().with_name("wbscope-ingest"))
    if not path.exists():
        missing(f"no wbscope-ingest at {path}; run make setup or set WBSCOPE_INGEST")
    return path


def plan_option(output: Path, plan: object) -> tuple[str, str]:
    """The option of wbscope-ingest for this plan, a document or its text, written beside."""
    file = output.parent.with_name(f"{output.parent.name}-{output.name}.plan")
    file.write_text(plan if isinstance(plan, str) else json.dumps(plan))
    return "--plan", str(file)


def run(
    command: Sequence[str | Path], cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command; the exit code is for the test to judge."""
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
