# SPDX-License-Identifier: Apache-2.0
"""Starts a recording: chooses what can be recorded here, starts the process that does it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import shlex
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wbscope.base.errors import Argument, Phrase, SetupError, UsageError
from wbscope.base.held_folder import remove_own
from wbscope.base.outputs import give_to_caller
from wbscope.base.result import Notice
from wbscope.base.system import current_folder
from wbscope.library.catalog import NOT_ASKED_FOR
from wbscope.library.library import Library
from wbscope.record import choose
from wbscope.record.choose import INSTANCE_PREFIX, mount_debugfs, the_tracefs
from wbscope.record.finish import Recovered, lost_count, recover_all, save_meta
from wbscope.record.folders import META, private_folder, remove_leftovers, target_of
from wbscope.record.machine import shared_disks
from wbscope.record.register import COMPLETE, DISCARD, INTERRUPTED, RECORDER_KILLED, Plan
from wbscope.record.series import CLOCK_IDS
from wbscope.record.settings import parse_settings
from wbscope.record.supervisor import Link, raised
from wbscope.record.what import WHAT
from wbscope.record.workload import (
    FioResults,
    Interrupts,
    Workload,
    end_descendants,
    fio_results,
    processes_below,
)

CUSTOM = "custom"
_NS_PER_S = 10**9


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    profile: str = "stalls"
    events: tuple[str, ...] = ()
    output: Path | None = None
    command: tuple[str, ...] = ()
    duration_ns: int | None = None
    sync: bool = False
    clock: str | None = None
    buffer_kib: int | None = None
    interval_ns: int = WHAT["sampling"]["seconds"] * _NS_PER_S
    sysctls: tuple[str, ...] = ()
    backend: str = "auto"
    probe: str = "auto"
    force: bool = False


@dataclass
class Recording:
    """A run that was recorded.

    ended        as in meta.json; anything but complete and interrupted is a failure
    interrupted  by Ctrl-C, which was not the usual end
    problems     what went wrong and was not told yet
    lost_count   events that did not fit into the buffers; None where nobody counted
    """

    run: Path
    facts: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    problems: tuple[str, ...] = ()
    ended: str = COMPLETE
    lost_count: int | None = None


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


def record(
    request: Request,
    library: Library,
    warn: Callable[[Notice], None],
    say: Callable[[str], None],
    show: Callable[[str], None],
) -> Recording:
    """`show` is called with output of the command that had to go through a file.

    Raises: WbscopeError when nothing could be recorded; the machine is then as it was.
    """
    target = target_of(request.output, request.force)
    if request.command and shutil.which(request.command[0]) is None:
        raise UsageError(
            "no-command", request.command[0], "is no program that can be run",
            fix="wbscope record -o RUN -- CMD...",
        )  # fmt: skip
    tracefs = the_tracefs()
    remove_leftovers(target)
    for found in recover_all(tracefs):
        if isinstance(found, Recovered) and found.folder is not None:
            warn(Notice("recorder-killed", str(found)))
        else:
            say(f"found a recording that was killed: {found}")
    if problem := mount_debugfs():
        warn(Notice("no-bdi-statistics", f"{problem}; the run has none of backing devices"))
    plan = _plan(request, library, tracefs, target, warn)
    shared = shared_disks(target.parent, request.command, current_folder())
    if shared:
        others = "the command can" if request.command else "what is recorded may"
        text = f"the run is written to {', '.join(shared)}, which {others} write to as well"
        told = Phrase(f"{text}; ", Argument("output"), " on another disk or a tmpfs is better")
        warn(Notice("output-on-tested-disk", told))
    events: queue.Queue[Any] = queue.Queue()
    link = _started(plan, events, warn)
    try:
        return Session(request, plan, link, events, warn).run(say, show)
    finally:
        link.held.close()


def _plan(
    request: Request,
    library: Library,
    tracefs: Path,
    target: Path,
    warn: Callable[[Notice], None],
) -> Plan:
    available = choose.available_events(tracefs)
    about: dict[str, Any] = {}
    events: tuple[str, ...] = ()
    probes = waits = False
    if request.profile != CUSTOM:
        profile = choose.choose_profile(request.profile, library.profiles)
        chosen = choose.choose_events(profile, available)
        events = chosen.events
        about |= {"renamed": dict(chosen.renamed), "missing": list(chosen.missing)}
        made = profile.probes if request.probe == "auto" else ()
        probes, waits = bool(made), bool(made) and profile.has_blocked
    elif not request.events:
        raise UsageError(
            "no-events",
            Phrase(Argument("profile", "custom")),
            Phrase("records the events of ", Argument("event"), " only"),
            fix=Phrase(Argument("event", "writeback")),
        )
    if not probes:
        about["probe"] = {"kind": None, "why": NOT_ASKED_FOR}
    events = tuple(sorted({*events, *choose.matching_events(request.events, available)}))
    cpus = os.cpu_count() or 1
    kib = request.buffer_kib or choose.buffer_kib(
        request.profile, cpus, choose.memory_kib("MemAvailable")
    )
    # auto: trace-cmd writes through the page cache, and is held by what it records.
    backend = "tracefs" if request.backend == "auto" else request.backend
    if backend == "trace-cmd" and (problem := choose.trace_cmd_problem()):
        raise SetupError(
            "no-trace-cmd",
            Phrase(Argument("backend", "trace-cmd")),
            problem,
            fix=Phrase(Argument("backend", "tracefs")),
        )
    name = f"{INSTANCE_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    return Plan(
        folder=str(private_folder(target, name)),
        target=str(target),
        tracefs=str(tracefs),
        instance=name,
        backend=backend,
        profile=request.profile,
        events=events,
        clock=choose.choose_clock(request.clock, tracefs),
        buffer_kib=kib,
        interval_s=request.interval_ns / _NS_PER_S,
        command=request.command,
        force=request.force,
        probes=probes,
        waits=waits,
        settings=parse_settings(request.sysctls),
        about=about,
    )


def _started(
    plan: Plan,
    events: queue.Queue[Any],
    warn: Callable[[Notice], None],
    link_of: Callable[[Plan, queue.Queue[Any]], Link] = Link,
) -> Link:
    """The recorder, recording."""
    folder = Path(plan.folder)
    try:
        folder.mkdir(0o700)  # until it is known what is in it
    except OSError as error:
        raise SetupError(
            "cannot-write", str(folder.parent), f"cannot be written: {error.strerror}",
            fix=Phrase("choose a folder with room and write permission: ", Argument("output")),
        ) from error  # fmt: skip
    link = None
    try:
        link = link_of(plan, events)
        told = events.get()
        while told is not None and "problem" in told:
            warn(Notice("record-problem", told["problem"]))
            told = events.get()
    except BaseException:
        if link is not None:
            link.stop(DISCARD, {})
            link.close()
        remove_own(folder)
        raise
    if told is not None and "ready" in told:
        return link
    said: list[str] = []
    with contextlib.suppress(OSError):
        said = link.held.read_text(".recorder.log").strip().splitlines()[-3:]
    link.put_back()
    remove_own(folder)
    if told is None:
        raise SetupError(
            "recorder-died", "the recorder", "ended before it recorded anything",
            have=" / ".join(said) or None, fix="wbscope doctor",
        )  # fmt: skip
    raise raised(told["error"])
