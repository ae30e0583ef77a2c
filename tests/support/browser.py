# SPDX-License-Identifier: Apache-2.0
"""A browser, pages in it, and pictures of them."""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from PIL import Image
from wbscope.viewer.link import PORT

from .tools import missing
from .waits import GUARD_SECONDS

__all__ = [
    "COLOURS",
    "UiPage",
    "dead_links",
    "drawn",
    "free_ui_port",
    "launch_browser",
    "open_page",
    "shrink",
    "upload_page",
]


# The Perfetto UI in a real browser: Debian's chromium, driven by Playwright, without a network.

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Route
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
_ROW = 18  # height of a row of slices
_SIZE = {"width": 1600, "height": 900}
# The script with which the UI of v52 takes SQL packages of others; it asks for it at start.
_PACKAGES_SCRIPT = "is_internal_user.js"
_SETTINGS = "perfettoSettings"
_MACROS = "perfetto.CoreCommands#UserDefinedMacros"
# What this UI says of itself in every trace.
_NOT_OURS = (
    "Unrecognized Content-Security-Policy directive 'navigate-to'",
    "LiveReload SSE error",
)
_NOT_THERE = ("/live_reload", "/status")  # of a development server, of a native engine


@contextmanager
def launch_browser() -> Iterator[Browser]:
    """A browser without windows, or the end of the test with the reason."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("the Python package playwright is not installed; run make setup")
        raise AssertionError("missing() does not return") from None
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        pytest.skip("no chromium; install the Debian package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_OPTIONS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def open_page(
    browser: Browser,
    link: str,
    *,
    modules: Mapping[str, str] | None = None,
    macros: Mapping[str, list[dict[str, Any]]] | None = None,
    local: tuple[str, ...] = (),
) -> Iterator[UiPage]:
    """The page of a link once its trace is loaded and startup commands have run.

    modules, macros  SQL modules by name and commands by macro, as an extension server has them
    local  other origins on this machine that the page may load from
    """
    with _new_page(browser, macros or {}) as page:
        opened = UiPage(page, link, modules or {}, local)
        opened.load()
        yield opened


@contextmanager
def upload_page(browser: Browser, address: str, trace: Path) -> Iterator[UiPage]:
    """The page of a UI that was given a file, as by Open trace file: no link, nothing of ours."""
    with _new_page(browser, {}) as page:
        opened = UiPage(page, address, {}, ())
        opened.upload(trace)
        yield opened


@contextmanager
def _new_page(browser: Browser, macros: Mapping[str, list[dict[str, Any]]]) -> Iterator[Page]:
    context = browser.new_context(viewport=_SIZE)
    context.set_default_timeout(GUARD_SECONDS * 1000)
    try:
        page = context.new_page()
        settings = json.dumps({_MACROS: macros})
        page.add_init_script(
            f"localStorage.setItem({json.dumps(_SETTINGS)}, {json.dumps(settings)});"
            "localStorage.setItem('dismissedPanningHint', 'true');"
        )
        yield page
    finally:
        context.close()


def drawn(page: Page) -> None:
    """Wait until what has changed is on the screen: a frame after the one that takes it up."""
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


class UiPage:
    """A loaded trace. What goes wrong in it is in `errors`."""

    def __init__(
        self, page: Page, link: str, modules: Mapping[str, str], local: tuple[str, ...]
    ) -> None:
        parts = urlsplit(link)
        self.page = page
        self.errors: list[str] = []
        self._link = link
        self._origins = (f"{parts.scheme}://{parts.netloc}", *local)
        self._modules = [{"name": name, "sql": sql} for name, sql in modules.items()]
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(f"exception: {error}"))
        page.on("dialog", lambda dialog: self._dialog(dialog))
        page.route("**/*", self._route)

    def load(self) -> None:
        """Open the link and wait until the UI has nothing more to do."""
        self.page.goto(self._link)
        self._loaded()

    def upload(self, trace: Path) -> None:
        """Open the UI, and the file in it."""
        self.page.goto(self._link)
        self.page.wait_for_function("() => self.app")
        self.page.set_input_files("input.trace_file", trace)
        self._loaded()
        # This build of the UI asks a server of its own for a trace, and says so if there is none.
        self.page.locator(".pf-modal-dialog", has_text="Failed to fetch").wait_for()
        self.page.keyboard.press("Escape")
        self.page.locator(".pf-modal-dialog").wait_for(state="detached")
        self.idle()
        self.errors.clear()

    def _loaded(self) -> None:
        self.page.wait_for_function("() => self.app && self.app.trace && waitForPerfettoIdle")
        self.idle()

    def idle(self) -> None:
        """Wait until nothing is queried and drawn."""
        self.page.evaluate(
            "(ms) => Promise.race([waitForPerfettoIdle(), new Promise((_, refuse) =>"
            " setTimeout(() => refuse(new Error(`not idle after ${ms} ms`)), ms))])",
            GUARD_SECONDS * 1000,
        )

    def run(self, command: str, *arguments: str) -> None:
        """Run a command of the UI by its id."""
        self.page.evaluate(
            "([id, args]) => self.app.commands.runCommand(id, ...args)", [command, list(arguments)]
        )
        self.idle()

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Ask the UI's own engine; integers come as int, however large."""
        rows: list[dict[str, Any]] = self.page.evaluate(
            """async (sql) => {
              const result = await self.app.trace.engine.query(sql);
              const rows = [];
              for (const it = result.iter({}); it.valid(); it.next()) {
                rows.push(Object.fromEntries(result.columns().map((name) => {
                  const cell = it.get(name);
                  return [name, typeof cell === 'bigint' ? {big: String(cell)} : cell];
                })));
              }
              return rows;
            }""",
            sql,
        )
        return [
            {k: int(v["big"]) if isinstance(v, dict) else v for k, v in row.items()} for row in rows
        ]

    def tracks(self) -> list[tuple[str, ...]]:
        """The names down to each track of the workspace, from top to bottom."""
        paths = self.page.evaluate(
            """() => {
              const paths = [];
              const walk = (node, above) => {
                for (const child of node.children) {
                  const path = [...above, child.name];
                  paths.push(path);
                  walk(child, path);
                }
              };
              walk(self.app.trace.workspace.tracks, []);
              return paths;
            }"""
        )
        return [tuple(path) for path in paths]

    def on_screen(self) -> list[tuple[str, int]]:
        """Names of the tracks that are wholly in the window, and how far down each begins."""
        found: list[tuple[str, int]] = self.page.evaluate(
            """() => [...document.querySelectorAll('.pf-track__header')].map((header) => {
              const title = header.querySelector('.pf-track__title-popup');
              const box = header.getBoundingClientRect();
              return [title.textContent, box.top, box.bottom];
            }).filter(([, top, bottom]) => top >= 0 && bottom <= innerHeight && bottom > top)
              .sort((a, b) => a[1] - b[1]).map(([name, top]) => [name, Math.round(top)])"""
        )
        return [(name, top) for name, top in found]

    def click_slice(self, slice_id: int, track: str) -> dict[str, str]:
        """Click on a slice with the mouse, on a track that is shown; what its details say.

        Slices of it that overlap are of tracks of one name, one row for each.
        """
        (found,) = self.query(
            "SELECT s.ts, s.dur, (SELECT count(*) FROM track AS o WHERE o.name = t.name"
            " AND o.parent_id IS t.parent_id AND o.id < t.id) AS row"
            f" FROM slice AS s JOIN track AS t ON t.id = s.track_id WHERE s.id = {slice_id}"
        )
        box = self.page.locator(".pf-track", has_text=track).last.locator(".pf-track__canvas")
        area = box.bounding_box()
        assert area is not None, f"{track} is not shown"
        part: float = self.page.evaluate(
            "(ts) => { const span = self.app.trace.timeline.visibleWindow.toTimeSpan();"
            " return Number(BigInt(ts) - span.start) / Number(span.end - span.start); }",
            str(found["ts"] + found["dur"] // 2),
        )
        down = _ROW * found["row"] + _ROW * 2 / 3
        self.page.mouse.click(area["x"] + part * area["width"], area["y"] + down)
        self.page.wait_for_function(
            "(id) => self.app.trace.selection.selection.eventId === id", arg=slice_id
        )
        self.idle()
        return self.details()

    def pinned(self) -> list[str]:
        """Names of the pinned tracks, from top to bottom."""
        names: list[str] = self.page.evaluate(
            "() => self.app.trace.workspace.pinnedTracks.map((track) => track.name)"
        )
        return names

    def expanded(self) -> set[str]:
        """Names of the groups that are open."""
        return set(
            self.page.evaluate(
                "() => self.app.trace.workspace.flatTracks"
                ".filter((t) => t.hasChildren && t.expanded).map((t) => t.name)"
            )
        )

    def tabs(self) -> list[str]:
        """Titles of the tabs below the timeline."""
        titles = self.page.locator(".pf-split-panel__tab").all_inner_texts()
        return [title.strip() for title in titles]

    def select_slice(self, slice_id: int) -> dict[str, str]:
        """Select a slice as a click does; what its details say, by name."""
        self.page.evaluate(
            "(id) => self.app.trace.selection.selectSqlEvent('slice', id,"
            " {scrollToSelection: true, switchToCurrentSelectionTab: true})",
            slice_id,
        )
        self.idle()
        return self.details()

    def details(self) -> dict[str, str]:
        """What the details of the selected slice say, by name."""
        pairs: list[tuple[str, str]] = self.page.evaluate(
            """() => [...document.querySelectorAll('.pf-details-shell .pf-tree-node')].map((n) =>
              ['left', 'right'].map((side) => {
                const cell = n.querySelector(`:scope > .pf-tree-${side}`).cloneNode(true);
                cell.querySelectorAll('.pf-icon').forEach((icon) => icon.remove());
                return cell.textContent;
              }))"""
        )
        return dict(pairs)

    def look_at(self, start: int, end: int) -> None:
        """Show this part of the trace; times in ns."""
        self.page.evaluate(
            "([start, end]) => self.app.trace.timeline.setViewportTime(BigInt(start), BigInt(end))",
            [str(start), str(end)],
        )
        self.idle()

    def scroll_to_argument(self, name: str) -> None:
        """Make an argument of the selected slice the first that is shown."""
        self.page.evaluate(
            "(name) => [...document.querySelectorAll('.pf-details-shell .pf-tree-left')]"
            ".find((e) => e.textContent.startsWith(name)).scrollIntoView()",
            name,
        )

    def picture(self, path: Path) -> None:
        """What the window shows now."""
        self.page.mouse.move(0, 0)
        self.idle()
        self.page.screenshot(path=path)

    def dialogs(self) -> list[str]:
        """Texts of the UI's dialogs that are open."""
        return self.page.locator(".pf-modal-dialog").all_inner_texts()

    def _route(self, route: Route) -> None:
        parts = urlsplit(route.request.url)
        if f"{parts.scheme}://{parts.netloc}" in self._origins:
            route.continue_()
        elif parts.path.endswith(_PACKAGES_SCRIPT):
            package = json.dumps({"name": "wbscope", "modules": self._modules})
            body = f"globals.extraSqlPackages.push({package});" if self._modules else ""
            route.fulfill(content_type="text/javascript", body=body)
        else:
            route.abort()

    def _console(self, message: ConsoleMessage) -> None:
        path = urlsplit(message.location.get("url", "")).path
        if message.type == "error" and not (
            message.text.startswith(_NOT_OURS) or path in _NOT_THERE
        ):
            self.errors.append(f"console: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self.errors.append(f"{dialog.type}: {dialog.message}")
        dialog.dismiss()


# Links of Markdown pages.

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ELSEWHERE = ("http://", "https://", "mailto:")


def dead_links(page: Path) -> Iterator[str]:
    """Links to files that are not there, and to headings that the page has not."""
    for link in _LINK.findall(_text(page)):
        if link.startswith(_ELSEWHERE):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            yield link


def _anchors(page: Path) -> set[str]:
    """Headings as GitHub names them."""
    titles = re.findall(r"^#+ (.+)$", _text(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _text(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


# Pictures of the documentation, made small: they are installed with its pages.

COLOURS = 128  # nobody sees the difference, and files are a third as large


def shrink(path: Path) -> None:
    """The same picture with fewer colours."""
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(
            COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
        )
    small.save(path, optimize=True)


# The one port from which a UI elsewhere loads traces: for one test at a time.


@contextmanager
def free_ui_port() -> Iterator[None]:
    """It is free, and no test that runs beside this one uses it meanwhile."""
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", PORT))
            except OSError:
                missing(f"port {PORT}, the only one that a UI loads from, is in use")
        yield
