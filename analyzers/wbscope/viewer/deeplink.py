# SPDX-License-Identifier: Apache-2.0
"""The address of a Perfetto UI, and the link that lets it load a trace and run commands."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urlsplit

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import UsageError
from wbscope.viewer.commands import Command

__all__ = ["PORT", "PUBLIC_UI", "Ui", "find_ui"]

PUBLIC_UI = "https://ui.perfetto.dev"
PORT = 9001
"""The only port that the UI's Content-Security-Policy lets it load from."""

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Ui:
    """Where a UI is, and the origin that its pages have."""

    address: str
    origin: str

    def link(
        self, trace: str, commands: Iterable[Command], look: tuple[int, int] | None = None
    ) -> str:
        """Opens the trace of that address, then runs the commands.

        look  what is shown first: from and to on the trace clock, within the trace
        """
        records = [command.record() for command in commands]
        arguments = f"url={quote(trace, safe='')}"
        if records:
            text = json.dumps(records, separators=(",", ":"), ensure_ascii=False)
            arguments += f"&startupCommands={quote(text, safe='')}"
        if look is not None:
            arguments += f"&visStart={look[0]}&visEnd={look[1]}"
        return f"{self.address}/#!/?{arguments}"


def find_ui(address: str = PUBLIC_UI) -> Ui:
    """The UI at an address as a browser would show it.

    Raises: UsageError.
    """
    parts = _split(address)
    if parts is None or parts.hostname is None:
        raise _bad(address, "is no address of a web page")
    if parts.username is not None or parts.query or parts.fragment:
        raise _bad(address, "has more than a host and a path")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if not host.isascii():
        raise _bad(address, "has a host that is not written in ASCII")
    port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    origin = f"{parts.scheme}://{host}{port}"
    path = parts.path.removesuffix("index.html").rstrip("/")
    return Ui(origin + quote(path, safe="/%~!$&'()*+,;=:@"), origin)


def _split(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        _ = parts.port  # ValueError: no number, or none of a port
    except ValueError:
        return None
    return parts if parts.scheme in _PORTS else None


def _bad(address: str, what: str) -> UsageError:
    return UsageError(
        "bad-ui",
        Phrase(Argument("ui", address)),
        f"{what}, wanted one such as https://perfetto.example.org",
        fix=f"wbscope open RUN --ui {PUBLIC_UI}",
    )
