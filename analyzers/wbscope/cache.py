# SPDX-License-Identifier: Apache-2.0
"""Databases and timelines made on the fly, kept until the trace changes or room runs out."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wbscope.errors import SetupError

__all__ = ["CACHE_FIX", "cache_entry", "entry_of", "trim_cache", "used"]

LIMIT_BYTES = 4 << 30
CACHE_FIX = "export WBSCOPE_CACHE_DIR=/var/tmp/wbscope"

_SUFFIXES = (".db", ".pftrace")
# A private folder older than this was left by a killed command.
_STALE_SECONDS = 24 * 60 * 60


def cache_entry(inputs: Sequence[Path], versions: Sequence[str], suffix: str = ".db") -> Path:
    """Where what is made of exactly these files belongs; makes the folder."""
    files = []
    for path in inputs:
        status = path.stat()
        files.append([os.path.realpath(path), status.st_size, status.st_mtime_ns])
    return entry_of([files, *versions], suffix)


def entry_of(key: Sequence[Any], suffix: str = ".db") -> Path:
    """Where the file that this key tells apart belongs; makes the folder."""
    text = json.dumps(key, default=str).encode()
    return _folder() / f"{hashlib.sha256(text).hexdigest()[:32]}{suffix}"


def used(entry: Path) -> bool:
    """True if the entry is there; marks it as just used."""
    try:
        os.utime(entry)
    except FileNotFoundError:
        return False
    return True


def trim_cache(keep: Path, limit_bytes: int = LIMIT_BYTES) -> None:
    """Remove the entries used longest ago until the rest fits; never `keep`."""
    entries = []
    for path in keep.parent.iterdir():
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # another command trims too
        if path.is_dir() and path.name.startswith("."):
            if status.st_mtime < time.time() - _STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)
        elif path.suffix in _SUFFIXES:
            entries.append((status.st_mtime_ns, status.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit_bytes:
            return
        if path != keep:
            path.unlink(missing_ok=True)
            total -= size


def _folder() -> Path:
    chosen = os.environ.get("WBSCOPE_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        if chosen:
            folder = Path(chosen)
        else:
            folder = (Path(base) if base else Path.home() / ".cache") / "wbscope"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(f"no permission to write to {folder}")
    except (OSError, RuntimeError) as error:
        raise SetupError(
            "no-cache",
            chosen or base or "~/.cache/wbscope",
            f"the cache folder cannot be used: {error}",
            fix=CACHE_FIX,
        ) from error
    return folder.absolute()
