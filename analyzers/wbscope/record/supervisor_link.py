# SPDX-License-Identifier: Apache-2.0
"""`wbscope record`'s end of the line to the process that records."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from wbscope.base import errors
from wbscope.base.arguments import Argument, Phrase
from wbscope.base.heldfolder import HeldFolder
from wbscope.record.finish import Recovered, recover
from wbscope.record.folders import PLAN
from wbscope.record.past_cache import save
from wbscope.record.recording_plan import Plan, dead_entries

__all__ = ["Link", "raised", "told_of"]

_MOST_BYTES = 1 << 16
_END_SECONDS = 30.0
# Of an error; they may name arguments.
_TEXTS = ("subject", "message", "have", "fix")


class Link:
    """Starts it; afterwards what it says is put into the queue, None when it has died.

    held  the folder of the run, whatever its name is by now
    """

    def __init__(self, plan: Plan, events: queue.Queue[Any]) -> None:
        self._plan = plan
        self._events = events
        self._keeps: list[int] = []
        self.held = HeldFolder(Path(plan.folder))
        self.held.check_new()
        save(self.held.inside / PLAN, plan.to_json())
        self._socket, theirs = socket.socketpair()
        try:
            self._begin(theirs)
        except BaseException:  # Ctrl-C: a recorder that hears nothing more lets all be
            self._socket.close()
            raise
        threading.Thread(target=self._listen, daemon=True).start()

    def _begin(self, theirs: socket.socket) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        log = self.held.open(".recorder.log", flags)
        with theirs, open(log, "wb"):
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "wbscope.record.supervisor", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        with contextlib.suppress(OSError):
            self._socket.sendall(self._plan.to_json().encode() + b"\n")

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self, ended: str, facts: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendall(json.dumps({"ended": ended, "facts": facts}).encode() + b"\n")

    def close(self) -> None:
        """It has done all: let go of the file that kept tracing on."""
        self._let_go()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)

    def put_back(self) -> Recovered:
        """After its death: everything as it was, and the run that is left, if there is one."""
        self._process.wait()
        found = None
        for entry in dead_entries(self._plan.instance):
            found = recover(entry, now=True, let_go=self._let_go)
        self._let_go()
        return found or Recovered(self._plan.instance)

    def _let_go(self) -> None:
        """Of the file that keeps the kernel from stopping the trace."""
        while self._keeps:
            os.close(self._keeps.pop())

    def _listen(self) -> None:
        data = b""
        while True:
            try:
                got, numbers, _, _ = socket.recv_fds(self._socket, _MOST_BYTES, 4)
            except OSError:
                got, numbers = b"", []
            self._keeps += numbers
            if not got:
                self._events.put(None)
                return
            *lines, data = (data + got).split(b"\n")
            for line in lines:
                told = json.loads(line)
                if "let_go" in told:
                    self._let_go()
                else:
                    self._events.put(told)


def told_of(error: errors.WbscopeError) -> dict[str, Any]:
    """An error as JSON, with the arguments that its texts name."""
    texts = {name: _packed(getattr(error, name)) for name in _TEXTS}
    return {"slug": error.slug, **texts}


def raised(told: dict[str, Any]) -> errors.SetupError:
    """The error that the other process met."""
    texts = {name: _unpacked(told[name]) for name in _TEXTS}
    subject, message = texts.pop("subject") or "", texts.pop("message") or ""
    return errors.SetupError(told["slug"], subject, message, **texts)


def _packed(text: str | None) -> Any:
    """A Phrase is a list: of texts, and of the name and the value of each argument."""
    if not isinstance(text, Phrase):
        return text
    return [
        part if isinstance(part, str) else [part.name, _plain(part.value)] for part in text.parts
    ]


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | str | None) else str(value)


def _unpacked(packed: Any) -> str | None:
    if not isinstance(packed, list):
        return None if packed is None else str(packed)
    return Phrase(*(part if isinstance(part, str) else Argument(*part) for part in packed))
