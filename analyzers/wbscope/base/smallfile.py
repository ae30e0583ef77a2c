# SPDX-License-Identifier: Apache-2.0
"""Files that people write by hand, read whole: a device or a trace given as one has no end."""

from __future__ import annotations

import errno
import tomllib
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["read_bounded", "read_small", "read_toml"]

# More than any policy, matrix or statement; a few milliseconds to read.
_MOST_BYTES = 16 << 20
_MOST_TOML_BYTES = 1 << 20
_MOST_TABLES = 32  # one in the other


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


def read_toml(path: Path) -> dict[str, Any]:
    """A policy or a matrix, of a stranger maybe.

    Raises: OSError as read_small(); ValueError that says what is wrong, also for whole numbers
    that TOML has not: they have 64 bits.
    """
    try:
        document = tomllib.loads(read_small(path, _MOST_TOML_BYTES).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError("found bytes that are no text") from error
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # of int()
        raise ValueError("a number has thousands of digits, wanted 64 bits at most") from error
    _check_values("", document)
    return document


def _check_values(where: str, value: Any, depth: int = 0) -> None:
    if depth > _MOST_TABLES:
        raise ValueError(f"{where[:80]} is nested deeper than {_MOST_TABLES} tables")
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{where} is a whole number of more than 64 bits")
    if isinstance(value, dict):
        for key, one in value.items():
            _check_values(f"{where}.{key}" if where else key, one, depth + 1)
    elif isinstance(value, list):
        for one in value:
            _check_values(where, one, depth + 1)
