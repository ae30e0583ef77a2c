# SPDX-License-Identifier: Apache-2.0
"""The SQL library as it was read, kept in the cache: to read it takes most of a short command.

What is kept is an optimisation only: where it is missing, damaged or of another library, the files
are read.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from wbscope.base.cache import entry_of, refuse_foreign, trim_cache, used
from wbscope.base.errors import SetupError
from wbscope.base.outputs import private_output
from wbscope.base.result import Column
from wbscope.base.version import __version__
from wbscope.library.profiles import Profile
from wbscope.library.rule import Check, Evidence, Rule, Setting, Term
from wbscope.library.sqlfile import Drawing, Metric, SqlFile, Track
from wbscope.library.template import Hole, Template

__all__ = ["Parsed", "kept_or_read", "state_of"]

Parsed = tuple[dict[str, SqlFile], tuple[Profile, ...]]
"""The objects of a library by name, and its profiles."""

_SUFFIX = ".library"
_PARTS: Sequence[type] = (
    Check, Column, Drawing, Evidence, Hole, Metric, Profile, Rule, Setting, SqlFile, Template, Term,
    Track, type(Path()),
)  # fmt: skip
# Made of nothing but these, so that reading a file runs no code that it names.
_ALLOWED: dict[tuple[str, str], type] = {(one.__module__, one.__name__): one for one in _PARTS}


def state_of(root: Path, engine: str, makers: Iterable[Path]) -> str:
    """Another text for another library for this engine, whose files are below `root`.

    `makers` are the folders of what its adapters are made with.
    """
    states = [_state_of(folder) for folder in (root, Path(__file__).parent, *makers)]
    return json.dumps([__version__, engine, str(root), states])


def kept_or_read(state: str, read: Callable[[], Parsed]) -> Parsed:
    """What `read` gives, from the cache where it has it of the same state.

    Raises: SetupError of `read`; never for the cache.
    """
    try:
        entry = entry_of([state], _SUFFIX)
        if used(entry):
            files, profiles = _Reader(io.BytesIO(entry.read_bytes())).load()
            return files, profiles
    except (OSError, SetupError):
        return read()
    except Exception:  # whatever damage makes of it, the files are there
        entry.unlink(missing_ok=True)
    parsed = read()
    with contextlib.suppress(OSError, SetupError):
        refuse_foreign(entry)
        with private_output(entry) as private:
            private.write_bytes(_written(parsed))
        trim_cache(keep=entry)
    return parsed


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a library")
        return _ALLOWED[module, name]


def _written(parsed: Parsed) -> bytes:
    return pickle.dumps(parsed, protocol=pickle.HIGHEST_PROTOCOL)


def _state_of(folder: Path) -> list[tuple[str, int, int, int]]:
    """Another value for another text of any file in it, in the order of names.

    What cannot be read is left out: who reads the files says what is wrong.
    """
    found = []
    waiting = [os.path.realpath(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    waiting.append(entry.path)
                elif entry.name.endswith((".sql", ".toml", ".py", ".formats")):
                    status = entry.stat()
                    found.append(
                        (entry.path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                    )
    return sorted(found)
