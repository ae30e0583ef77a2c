# SPDX-License-Identifier: Apache-2.0
"""The libraries that only some commands need, and how to get the one that is missing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from wbscope.base.errors import SetupError

__all__ = ["EXTRAS", "missing_library"]

# The extra that brings the others of a command, and what it brings.
_WITHIN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "fleet": frozenset({"arrow", "fleet", "gate"}),
        "spark": frozenset({"arrow", "fleet", "gate", "spark"}),
    }
)

# The module that is imported -> the extra of the package wbscope that brings it.
EXTRAS: Mapping[str, str] = MappingProxyType(
    {
        "duckdb": "fleet",
        "google": "perfetto",
        "matplotlib": "plots",
        "numpy": "gate",
        "pandas": "pandas",
        "perfetto": "perfetto",
        "polars": "polars",
        "prompt_toolkit": "prompt",
        "py4j": "spark",
        "pyarrow": "arrow",
        "pyspark": "spark",
        "ruptures": "gate",
        "scipy": "gate",
    }
)


def missing_library(
    error: ImportError, subject: str, whole: str | None = None
) -> SetupError | None:
    """The error for an import that failed for want of an extra; None for any other.

    `whole` is the extra with all that the command needs: it is told where it brings the library, so
    that there is one error and not one after the other.
    """
    library = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(library)
    if extra is None:
        return None
    if whole is not None and extra in _WITHIN[whole]:
        extra = whole
    return SetupError(
        "missing-library",
        subject,
        f"needs the Python library {library}, which is not installed",
        fix=install_line(extra),
    )


def install_line(extra: str, prefix: Path = Path(sys.prefix)) -> str:
    """A command that brings an extra into the environment that is running."""
    if "pipx" in prefix.parts:
        return f"pipx runpip wbscope install 'wbscope[{extra}]'"
    return f"{prefix / 'bin/python'} -m pip install 'wbscope[{extra}]'"
