# SPDX-License-Identifier: Apache-2.0
"""From the first event to the run: the command or the time, the end of both, or of the recorder."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wbscope.base.current import current_folder
from wbscope.base.errors import SetupError, UsageError
from wbscope.base.result import Notice
from wbscope.base.sudo_caller import give_to_caller
from wbscope.record.finish import Recovered, lost_count, save_meta
from wbscope.record.fio_output import FioResults, fio_results
from wbscope.record.folders import META
from wbscope.record.interrupts import Interrupts
from wbscope.record.recording_plan import COMPLETE, DISCARD, INTERRUPTED, RECORDER_KILLED, Plan
from wbscope.record.request import Recording, Request
from wbscope.record.series import CLOCK_IDS
from wbscope.record.supervisor_link import Link, raised
from wbscope.record.workload import Workload, end_descendants, processes_below

__all__ = ["Session"]

_NS_PER_S = 10**9


class Session:
    """Of one recorder, which records already."""

    def __init__(
        self,
        request: Request,
        plan: Plan,
        link: Link,
        events: queue.Queue[Any],
        warn: Callable[[Notice], None],
    ) -> None:
        self._request = request
        self._plan = plan
        self._link = link
        self._events = events
        self._warn = warn
        self._interrupts = Interrupts()
        self._facts: dict[str, Any] = {}
        self._fio: FioResults | None = None
        self._told: set[str] = set()
        self._was_told_to_end = False
        # How the recorder ended; one of them says that it did.
        self._run: Path | None = None
        self._error: SetupError | None = None
        self._left: Recovered | None = None

    def run(self, say: Callable[[str], None], show: Callable[[str], None]) -> Recording:
        """Raises: WbscopeError when there is no run."""
        with self._interrupts:
            try:
                say(_headline(self._plan, self._request))
                ended = self._work()
            except UsageError:
                with contextlib.suppress(SetupError):
                    self._finish(DISCARD)
                raise
            except KeyboardInterrupt:
                # The usual end when neither a command nor a time is given, however early.
                is_usual = not self._request.command and self._request.duration_ns is None
                ended = COMPLETE if is_usual else INTERRUPTED
            run, meta = self._finish(ended)
            self._take_fio_json(show)
            with contextlib.suppress(OSError):  # what was written since the recorder gave it away
                give_to_caller(self._link.held)
        return Recording(
            run,
            self._facts,
            ended == INTERRUPTED,
            tuple(text for text in meta.get("problems", ()) if text not in self._told),
            meta["ended"],
            lost_count(meta),
        )

    def _work(self) -> str:
        """The command, or the time, and the sync after it; how it ended."""
        request = self._request
        clock = CLOCK_IDS[self._plan.clock]
        if not request.command:
            return self._wait(request.duration_ns)
        self._fio = fio_results(request.command, self._link.held.inside, current_folder())
        command = request.command if self._fio is None else self._fio.command
        others = processes_below(os.getpid())
        workload: Workload | None = None
        ended = COMPLETE
        try:
            workload = Workload(command, clock, self._events)
            while workload.lives():
                self._take(self._events.get())
        except KeyboardInterrupt:
            ended = INTERRUPTED
        if ended == INTERRUPTED and workload is not None:
            workload.end(self._interrupts)
        if workload is not None:
            self._facts |= workload.facts
        if ended == INTERRUPTED:
            # What the command had started would write on while sysctls go back.
            end_descendants(self._link.pid, self._interrupts, others)
        elif request.sync:
            began = time.clock_gettime_ns(clock)
            os.sync()
            after = time.clock_gettime_ns(clock)
            self._facts |= {"sync_started_ts_ns": began, "sync_duration_ns": after - began}
        return ended

    def _wait(self, duration_ns: int | None) -> str:
        """Until the time is over, or the recorder is."""
        deadline = None if duration_ns is None else time.monotonic() + duration_ns / _NS_PER_S
        try:
            while not self._is_over():
                left = None if deadline is None else max(deadline - time.monotonic(), 0)
                self._take(self._events.get(timeout=left))
        except queue.Empty:
            return COMPLETE
        return RECORDER_KILLED

    def _take_fio_json(self, show: Callable[[str], None]) -> None:
        if self._fio is not None and (problem := self._fio.save(self._link.held.inside, show)):
            self._warn(Notice("no-fio-json", problem))

    def _take(self, told: Any) -> None:
        """What the recorder says, None when it has died; "ended" is of the command."""
        if told == "ended":
            return
        if told is None:
            self._put_back()
        elif "problem" in told:
            self._told.add(told["problem"])
            self._warn(Notice("record-problem", told["problem"]))
        elif "done" in told:
            self._run = Path(told["done"]["run"])
            self._warn_of_end("was told to end")
        elif "error" in told:
            self._error = raised(told["error"])
            self._warn_of_end(f"has ended: {self._error}")

    def _warn_of_end(self, what: str) -> None:
        """At once: the command may go on for long."""
        if not self._was_told_to_end:
            self._warn(Notice("recorder-ended", f"the recorder {what}; its run ends here"))

    def _put_back(self) -> None:
        if self._is_over():
            return
        self._warn(Notice("recorder-killed", "the recorder was killed; its run ends here"))
        self._left = Recovered(self._plan.instance)  # whatever happens now: it says no more
        with self._interrupts.held():
            self._left = self._link.put_back()
            self._run = self._left.run
        for name in self._left.left:
            self._warn(Notice("record-problem", f"{name} is not as it was"))

    def _is_over(self) -> bool:
        return (self._run or self._error or self._left) is not None

    def _finish(self, ended: str) -> tuple[Path, dict[str, Any]]:
        """Ctrl-C has been heard: now the run is written.

        Returns: it, and what its meta.json says.
        """
        self._interrupts.hold()
        if not self._is_over():
            self._was_told_to_end = True
            self._link.stop(ended, self._facts)
        while not self._is_over():
            self._take(self._events.get())
        self._link.close()
        if self._error is not None:
            raise self._error
        if self._run is None:
            raise (self._left or Recovered(self._plan.instance)).error()
        meta: dict[str, Any] = json.loads(self._link.held.read_text(META))
        if not self._facts.items() <= meta.items():  # it ended before it was told them
            meta |= self._facts
            try:
                save_meta(self._link.held.inside, meta)
            except OSError as error:
                problem = f"{META} says nothing of the command: {error.strerror}"
                self._warn(Notice("record-problem", problem))
        return self._run, meta


def _headline(plan: Plan, request: Request) -> str:
    until = shlex.join(plan.command) if plan.command else "until Ctrl-C"
    if request.duration_ns is not None:
        until = f"for {request.duration_ns / _NS_PER_S:g} s"
    return (
        f"recording {len(plan.events)} events ({plan.profile}, {plan.backend}, clock {plan.clock},"
        f" {plan.buffer_kib} KiB a CPU): {until}"
    )
