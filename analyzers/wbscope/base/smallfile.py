# SPDX-License-Identifier: Apache-2.0
"""Files that people write by hand, read whole: a device or a trace given as one has no end."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import BinaryIO

__all__ = ["read_bounded", "read_small"]

# More than any policy, matrix or statement; a few milliseconds to read.
_MOST_BYTES = 16 << 20


def read_small(path: Path, most_bytes: int = _MOST_BYTES) -> bytes:
    """Raises: OSError, also where the file has more bytes (EFBIG)."""
    with path.open("rb") as file:
        return read_bounded(file, most_bytes)


def read_bounded(file: BinaryIO, most_bytes: int = _MOST_BYTES) -> bytes:
    """What is left of an open file. Raises: as read_small()."""
    data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes >> 20} MiB")
    return data
