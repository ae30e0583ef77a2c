# SPDX-License-Identifier: Apache-2.0
"""Starts a recording: chooses what can be recorded here, starts the process that does it."""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.current import current_folder
from wbscope.base.errors import SetupError, UsageError
from wbscope.base.heldfolder import remove_own
from wbscope.base.result import Notice
from wbscope.library.library import Library
from wbscope.library.profiles import NOT_ASKED_FOR
from wbscope.record import choose
from wbscope.record.disks import shared_disks
from wbscope.record.finish import Recovered, recover_all
from wbscope.record.folders import private_folder, remove_leftovers, target_of
from wbscope.record.recording import Session
from wbscope.record.recording_plan import DISCARD, Plan
from wbscope.record.request import CUSTOM, Recording, Request
from wbscope.record.settings import parse_settings
from wbscope.record.supervisor_link import Link, raised
from wbscope.record.tracefs import INSTANCE_PREFIX, mount_debugfs, the_tracefs

__all__ = ["record"]

_NS_PER_S = 10**9


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
    probes = False
    if request.profile != CUSTOM:
        profile = choose.choose_profile(request.profile, library.profiles)
        chosen = choose.choose_events(profile, available)
        events = chosen.events
        about |= {"renamed": dict(chosen.renamed), "missing": list(chosen.missing)}
        probes = request.probe == "auto" and bool(profile.probes)
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
