# SPDX-License-Identifier: Apache-2.0
"""Output files: refused early, written in private, named only when whole."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from wbscope.errors import SetupError, UsageError, WbscopeError

__all__ = ["check_output", "private_output", "write_whole"]


def check_output(output: Path, force: bool, inputs: Iterable[Path]) -> None:
    """Errors that are known before any work: call it first."""
    shown = str(output)
    if output.is_dir():
        raise UsageError("output-is-folder", shown, "is a folder, wanted a file name")
    if not output.parent.is_dir():
        raise SetupError(
            "no-output-folder",
            shown,
            f"folder {output.parent} does not exist",
            fix=f"mkdir -p {shlex.quote(str(output.parent))}",
        )
    if not output.exists():
        return
    # Replacing a device node by a file would break the machine for root.
    if not output.is_file():
        raise UsageError("output-is-special", shown, "is no regular file")
    if any(path.exists() and path.samefile(output) for path in inputs):
        raise UsageError("output-is-input", shown, "is the input itself; give another name with -o")
    if not force:
        raise UsageError(
            "output-exists",
            shown,
            f"exists already ({output.stat().st_size} bytes)",
            fix="add --force to replace it, or choose another name with -o",
        )


@contextmanager
def private_output(output: Path) -> Iterator[Path]:
    """A path to write to; on success it takes the output's name, else it is gone.

    The private folder is beside the output, so that the rename stays on one
    file system; whatever a killed writer leaves in it goes with it.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    except OSError as error:
        raise _cannot_write(output, error) from error
    private = folder / output.name
    try:
        yield private
        os.replace(private, output)
    except WbscopeError as error:
        raise error.with_path(str(private), str(output)) from error
    except OSError as error:
        raise _cannot_write(output, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_whole(output: Path, text: str) -> None:
    """Write a text file that is there whole or not at all."""
    with private_output(output) as private:
        private.write_text(text, encoding="utf-8")


def _cannot_write(output: Path, error: OSError) -> SetupError:
    return SetupError(
        "cannot-write",
        str(output),
        f"cannot be written: {error.strerror or error}",
        fix="choose a folder with room and write permission with -o",
    )
