# SPDX-License-Identifier: Apache-2.0
"""The local server: one file, one host, one origin, one path."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.waits import GUARD_SECONDS, wait_until
from wbscope.base.errors import InputError, SetupError
from wbscope.viewer.link import find_site
from wbscope.viewer.server import HOST, TraceServer, check_port

UI = "https://ui.perfetto.dev"
TRACE = bytes(range(256)) * 20_000
Headers = list[tuple[str, str]]
Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "run.pftrace"
    path.write_bytes(TRACE)
    return path


@pytest.fixture
def server(trace: Path) -> Iterator[TraceServer]:
    with TraceServer(trace, "my run #1.pftrace", origin=UI, port=0) as started:
        yield started


def ask(
    server: TraceServer,
    headers: Headers,
    *,
    method: str = "GET",
    path: str | None = None,
    host: str | None = "",
) -> Answer:
    """Header lines exactly as given; host "" is the right one, None is none."""
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=GUARD_SECONDS)
    path = server.path if path is None else path
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    if host is not None:
        connection.putheader("Host", host or server.host)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    found = {name.lower(): value for name, value in response.getheaders()}
    answer = response.status, found, response.read()
    connection.close()
    return answer


def test_the_ui_gets_the_trace(server: TraceServer) -> None:
    assert not server.wait_loaded(0)
    status, headers, body = ask(server, [("Origin", UI)])
    assert status == 200
    assert body == TRACE
    assert headers["access-control-allow-origin"] == UI
    assert headers["cache-control"] == "no-cache"
    assert headers["content-length"] == str(len(TRACE))
    assert headers["vary"] == "Origin"
    assert server.wait_loaded(GUARD_SECONDS)


def test_its_name_is_the_last_part_of_the_path(server: TraceServer) -> None:
    assert server.url.startswith(f"http://127.0.0.1:{server.server_port}/")
    assert server.url.endswith("/my%20run%20%231.pftrace")


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Origin", "null")],
        [("Origin", "https://ui.perfetto.dev.example.org")],
        [("Origin", "http://ui.perfetto.dev")],
        [("Origin", "https://ui.perfetto.dev:8443")],
        [("Origin", "https://UI.perfetto.dev")],
        [("Origin", UI), ("Origin", "https://example.org")],
        [("Origin", UI), ("Origin", UI)],
        [("Referer", UI)],
        [("Sec-Fetch-Site", "same-origin")],
    ],
)
def test_another_origin_gets_nothing(server: TraceServer, headers: Headers) -> None:
    status, found, body = ask(server, headers)
    assert status == 403
    assert "access-control-allow-origin" not in found
    assert len(body) < 100
    assert not server.wait_loaded(0)


@pytest.mark.parametrize(
    "host", [None, "localhost:{}", "127.0.0.1", "example.org:{}", "[::1]:{}", "127.0.0.1:1"]
)
def test_another_host_gets_nothing(server: TraceServer, host: str | None) -> None:
    """A name of somebody else's that was pointed here."""
    host = None if host is None else host.format(server.server_port)
    status, found, _ = ask(server, [("Origin", UI)], host=host)
    assert status == 421
    assert "access-control-allow-origin" not in found or found["access-control-allow-origin"] == UI
    assert not server.wait_loaded(0)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/my%20run%20%231.pftrace",
        "/x/my%20run%20%231.pftrace",
        "{}?x",
        "{}/",
        "/../{}",
    ],
)
def test_there_is_no_other_path(server: TraceServer, path: str) -> None:
    status, _, _ = ask(server, [("Origin", UI)], path=path.format(server.path))
    assert status == 404
    assert not server.wait_loaded(0)


def test_paths_differ_from_run_to_run(trace: Path, server: TraceServer) -> None:
    with TraceServer(trace, "my run #1.pftrace", origin=UI, port=0) as other:
        assert other.path != server.path


@pytest.mark.parametrize("private", [True, False])
def test_a_browser_may_ask_before(server: TraceServer, private: bool) -> None:
    headers = [("Origin", UI), ("Access-Control-Request-Method", "GET")]
    if private:
        headers.append(("Access-Control-Request-Private-Network", "true"))
    status, found, body = ask(server, headers, method="OPTIONS")
    assert (status, body) == (204, b"")
    assert found["access-control-allow-origin"] == UI
    assert found["access-control-allow-methods"] == "GET"
    assert found.get("access-control-allow-private-network") == ("true" if private else None)


@pytest.mark.parametrize(
    "headers",
    [
        [("Access-Control-Request-Method", "GET")],
        [("Origin", "https://example.org"), ("Access-Control-Request-Method", "GET")],
        [("Origin", UI), ("Access-Control-Request-Method", "PUT")],
        [("Origin", UI)],
    ],
)
def test_what_others_ask_before_is_refused(server: TraceServer, headers: Headers) -> None:
    headers = [*headers, ("Access-Control-Request-Private-Network", "true")]
    status, found, _ = ask(server, headers, method="OPTIONS")
    assert status == 403
    assert "access-control-allow-private-network" not in found
    assert "access-control-allow-methods" not in found


@pytest.mark.parametrize(("method", "status"), [("POST", 404), ("PUT", 501), ("HEAD", 501)])
def test_other_methods(server: TraceServer, method: str, status: int) -> None:
    assert ask(server, [("Origin", UI)], method=method)[0] == status
    assert not server.wait_loaded(0)


def test_only_this_machine_can_reach_it(server: TraceServer) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_half_a_trace_is_not_loaded(tmp_path: Path) -> None:
    """A browser that is closed meanwhile; it may come again."""
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(256 << 20)
    with TraceServer(big, "big.pftrace", origin=UI, port=0) as server:
        threads = threading.active_count()
        with socket.create_connection((HOST, server.server_port)) as client:
            lines = f"GET {server.path} HTTP/1.1\r\nHost: {server.host}\r\nOrigin: {UI}\r\n\r\n"
            client.sendall(lines.encode())
            assert client.recv(1000).startswith(b"HTTP/1.0 200")
            assert threading.active_count() > threads
        wait_until(lambda: threading.active_count() == threads, "the end of the answer")
        assert not server.wait_loaded(0)
        assert len(ask(server, [("Origin", UI)])[2]) == 256 << 20
        assert server.wait_loaded(GUARD_SECONDS)


def test_the_file_of_the_start_is_served(server: TraceServer, trace: Path) -> None:
    """The cache may drop it or build it anew."""
    trace.unlink()
    trace.write_bytes(b"another")
    assert ask(server, [("Origin", UI)])[2] == TRACE


def test_garbage_is_no_matter(server: TraceServer, capfd: pytest.CaptureFixture[str]) -> None:
    for garbage in (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"A" * 70_000 + b"\r\n\r\n", b""):
        with socket.create_connection((HOST, server.server_port)) as client:
            client.sendall(garbage)
            client.shutdown(socket.SHUT_WR)
            client.recv(1000)
    assert ask(server, [("Origin", UI)])[0] == 200
    assert capfd.readouterr() == ("", "")


LINK = f"{UI}/#!/?url=http%3A%2F%2F127.0.0.1%3A9001%2Fx&startupCommands=%5B%5D"
WINDOW: Headers = [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]


@pytest.mark.parametrize("headers", [[], WINDOW, [*WINDOW, ("Sec-Fetch-Site", "cross-site")]])
def test_the_short_path_leads_to_the_ui(server: TraceServer, headers: Headers) -> None:
    short = server.lead_to(LINK)
    assert short == server.address + server.short_path
    for _ in range(2):  # a browser may ask before the user has pressed Enter
        status, found, body = ask(server, headers, path=server.short_path)
        assert (status, found["location"], body) == (302, LINK, b"")
        assert found["cache-control"] == "no-cache"
        assert found["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in found
    assert not server.wait_loaded(0)
    assert ask(server, [("Origin", UI)])[0] == 200
    assert server.wait_loaded(GUARD_SECONDS)


@pytest.mark.parametrize(
    "headers",
    [
        [("Origin", UI)],
        [("Origin", "null")],
        [("Sec-Fetch-Mode", "cors")],
        [("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image")],
        [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")],
        [*WINDOW, ("Sec-Fetch-Dest", "document")],
    ],
)
def test_no_page_may_follow_the_short_path(server: TraceServer, headers: Headers) -> None:
    server.lead_to(LINK)
    status, found, body = ask(server, headers, path=server.short_path)
    assert status == 403
    assert "location" not in found
    assert len(body) < 100


@pytest.mark.parametrize("path", ["{}/", "{}?x", "{}x", "/../{}", "/"])
def test_there_is_no_path_like_the_short_one(server: TraceServer, path: str) -> None:
    server.lead_to(LINK)
    assert ask(server, [], path=path.format(server.short_path))[0] == 404


def test_the_short_path_is_for_this_host_and_one_method(server: TraceServer) -> None:
    assert ask(server, [], path=server.short_path)[0] == 404  # nothing to lead to yet
    server.lead_to(LINK)
    for host in (None, "localhost:{}", "example.org", "127.0.0.1"):
        name = None if host is None else host.format(server.server_port)
        assert ask(server, [], path=server.short_path, host=name)[0] == 421
    assert ask(server, [], path=server.short_path, method="POST")[0] == 404
    headers = [("Origin", UI), ("Access-Control-Request-Method", "GET")]
    assert ask(server, headers, path=server.short_path, method="OPTIONS")[0] == 403
    # Who knows one of the paths does not know the other.
    assert len(server.short_path) > 20
    assert server.short_path not in server.path


def test_with_its_own_site(trace: Path) -> None:
    """Same origin: the browser says so in a header of its own, and no page can forge it."""
    with TraceServer(trace, "run.pftrace", site=find_site(), port=0) as server:
        status, headers, page = ask(server, [], path="/")
        assert (status, headers["content-type"]) == (200, "text/html")
        assert b"Perfetto" in page
        (wasm,) = (path for path in server.site if path.endswith("/trace_processor.wasm"))
        assert ask(server, [], path=wasm)[1]["content-type"] == "application/wasm"
        assert ask(server, [("Sec-Fetch-Site", "same-origin")])[2] == TRACE
        for value in ("cross-site", "same-site", "none"):
            assert ask(server, [("Sec-Fetch-Site", value)])[0] == 403
        assert ask(server, [])[0] == 403
        assert ask(server, [], path="/", host="localhost:1")[0] == 421
        for path in ("/../__init__.py", "/%2e%2e/__init__.py", "/trace_processor", "/LICENSE"):
            assert ask(server, [], path=path)[0] == 404


def test_the_site_waits_for_quiet(trace: Path) -> None:
    with TraceServer(trace, "run.pftrace", site=find_site(), port=0) as server:
        ask(server, [], path="/")
        server.wait_quiet(0.2)


@pytest.mark.parametrize(
    ("path", "headers", "counts"),
    [
        ("/", [], True),
        ("/", [("Sec-Fetch-Site", "none")], True),
        ("{}", [("Sec-Fetch-Site", "same-origin")], True),
        ("/", [("Sec-Fetch-Site", "cross-site")], False),
        ("/", [("Sec-Fetch-Site", "same-site")], False),
        ("/", [("Origin", "https://example.org")], False),
        ("/nothing", [], False),
    ],
)
def test_other_pages_do_not_keep_it_alive(
    trace: Path, monkeypatch: pytest.MonkeyPatch, path: str, headers: Headers, counts: bool
) -> None:
    with TraceServer(trace, "run.pftrace", site=find_site(), port=0) as server:
        asked: list[bool] = []
        monkeypatch.setattr(server, "was_asked", lambda: asked.append(True))
        ask(server, headers, path=path.format(server.path), host="example.org")
        assert not asked
        ask(server, headers, path=path.format(server.path))
        assert bool(asked) == counts


def test_the_port_is_taken(server: TraceServer, trace: Path) -> None:
    for start in (
        lambda: check_port(server.server_port),
        lambda: TraceServer(trace, "run", origin=UI, port=server.server_port),
    ):
        with pytest.raises(SetupError, match="used by another program") as caught:
            start()
        assert caught.value.slug == "port-taken"


def test_the_port_is_free_again(trace: Path) -> None:
    with TraceServer(trace, "run.pftrace", origin=UI, port=0) as server:
        port = server.server_port
        ask(server, [("Origin", UI)])
    check_port(port)
    TraceServer(trace, "run.pftrace", origin=UI, port=port).close()


def test_a_trace_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        TraceServer(tmp_path / "gone", "gone", origin=UI, port=0)
