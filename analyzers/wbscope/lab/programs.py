# SPDX-License-Identifier: Apache-2.0
"""Programs of this machine that the lab starts: found, run, and ended with the command."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from wbscope.base.children import dying_with_us
from wbscope.base.errors import SetupError

__all__ = ["call", "find", "last_line", "output_of"]


def find(name: str, package: str) -> str:
    """Its path; sbin is looked at too, which users may not have in theirs.

    Raises: SetupError with the Debian package that has it.
    """
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is None:
        raise SetupError("missing-program", name, "is not installed", fix=f"apt install {package}")
    return path


def call(
    command: Sequence[str], package: str, *, given: bytes = b"", folder: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """To its end, whatever its exit code is; it dies with this process.

    Raises: SetupError where it is not installed.
    """
    return subprocess.run(
        [find(command[0], package), *command[1:]],
        cwd=folder,
        input=given,
        capture_output=True,
        check=False,
        preexec_fn=dying_with_us(),
    )


def output_of(
    command: Sequence[str], package: str, *, given: bytes = b"", folder: Path | None = None
) -> bytes:
    """What it printed.

    Raises: SetupError where it is not installed, or fails, with its last line.
    """
    done = call(command, package, given=given, folder=folder)
    if done.returncode:
        raise SetupError(
            "program-failed",
            " ".join([*command[:1], *command[-2:]]),
            f"ended with {done.returncode}: {last_line(done.stderr or done.stdout)}",
            fix="see what the program says; a package may have another name in this suite",
        )
    return done.stdout


def last_line(text: bytes | str) -> str:
    """Of what a program said."""
    told = text.decode(errors="replace") if isinstance(text, bytes) else text
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    return lines[-1] if lines else "nothing was said"
