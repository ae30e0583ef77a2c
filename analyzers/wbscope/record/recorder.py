# SPDX-License-Identifier: Apache-2.0
"""Records a run: chooses what can be recorded here, runs the command, waits for the end."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import shlex
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wbscope.engine.library import Library
from wbscope.engine.result import Notice
from wbscope.errors import SetupError, UsageError
from wbscope.record import choose
from wbscope.record.disks import shared_disks
from wbscope.record.finish import (
    META,
    lost_count,
    private_folder,
    recover_all,
    remove_leftovers,
    save_meta,
)
from wbscope.record.fio import FioResults, fio_results
from wbscope.record.link import Link, raised
from wbscope.record.plan import COMPLETE, DISCARD, INTERRUPTED, RECORDER_KILLED, Plan
from wbscope.record.series import CLOCK_IDS
from wbscope.record.settings import parse_settings
from wbscope.record.tracefs import INSTANCE_PREFIX, mount_debugfs, the_tracefs
from wbscope.record.workload import Workload, end_descendants

__all__ = ["CUSTOM", "Recording", "Request", "record", "target_of"]

CUSTOM = "custom"
_PATIENCE_SECONDS = 5.0
_NS_PER_S = 10**9


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    profile: str = "writeback"
    events: tuple[str, ...] = ()
    output: Path | None = None
    command: tuple[str, ...] = ()
    duration_ns: int | None = None
    sync: bool = False
    clock: str | None = None
    buffer_kib: int | None = None
    interval_ns: int = _NS_PER_S
    sysctls: tuple[str, ...] = ()
    backend: str = "auto"
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
    target = target_of(request)
    if request.command and shutil.which(request.command[0]) is None:
        raise UsageError(
            "no-command", request.command[0], "is no program that can be run",
            fix="wbscope record -o RUN -- CMD...",
        )  # fmt: skip
    tracefs = the_tracefs()
    remove_leftovers(target)
    for line in recover_all(tracefs):
        say(f"found a recording that was killed: {line}")
    if problem := mount_debugfs():
        warn(Notice("no-bdi-statistics", f"{problem}; the run has none of backing devices"))
    plan = _plan(request, library, tracefs, target, warn)
    shared = shared_disks(target.parent, request.command, Path.cwd())
    if shared:
        others = "the command can" if request.command else "what is recorded may"
        text = f"the run is written to {', '.join(shared)}, which {others} write to as well"
        warn(Notice("output-on-tested-disk", f"{text}; -o on another disk or a tmpfs is better"))
    events: queue.Queue[Any] = queue.Queue()
    link, plan = _started(plan, request, events, warn)
    return _Session(request, plan, link, events, warn).run(say, show)


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
    if request.profile != CUSTOM:
        profile = choose.choose_profile(request.profile, library.profiles)
        chosen = choose.choose_events(profile, available)
        events = chosen.events
        about |= {"renamed": dict(chosen.renamed), "missing": list(chosen.missing)}
    elif not request.events:
        raise UsageError(
            "no-events",
            "--profile custom",
            "records the events of --event only",
            fix="-e writeback",
        )
    events = tuple(sorted({*events, *choose.matching_events(request.events, available)}))
    cpus = os.cpu_count() or 1
    kib = request.buffer_kib or choose.buffer_kib(
        request.profile, cpus, choose.memory_kib("MemAvailable")
    )
    backend = request.backend
    if backend != "tracefs" and (problem := choose.trace_cmd_problem()):
        if backend == "trace-cmd":
            raise SetupError(
                "no-trace-cmd", "--backend trace-cmd", problem, fix="--backend tracefs"
            )
        about["no_trace_cmd"] = problem
        backend = "tracefs"
    name = f"{INSTANCE_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    return Plan(
        folder=str(private_folder(target, name)),
        target=str(target),
        tracefs=str(tracefs),
        instance=name,
        backend="trace-cmd" if backend == "auto" else backend,
        profile=request.profile,
        events=events,
        clock=choose.choose_clock(request.clock, tracefs),
        buffer_kib=kib,
        interval_s=request.interval_ns / _NS_PER_S,
        command=request.command,
        force=request.force,
        settings=parse_settings(request.sysctls),
        about=about,
    )


def target_of(request: Request) -> Path:
    """Where the run will be; an older one is replaced only if it is one, and at the end."""
    path = request.output or Path(time.strftime("run-%Y%m%d-%H%M%S"))
    target = path.absolute()
    shown = str(path)
    if not target.parent.is_dir():
        raise SetupError(
            "no-output-folder",
            shown,
            f"folder {path.parent} does not exist",
            fix=f"mkdir -p {shlex.quote(str(path.parent))}",
        )
    if not os.path.lexists(target) or (target.is_dir() and not any(target.iterdir())):
        return target
    if not (target / META).is_file() or target.is_symlink():
        raise UsageError("output-exists", shown, "exists and is no run folder", fix="-o OTHER")
    if not request.force:
        raise UsageError(
            "output-exists", shown, "is a run already", fix="add --force to replace it, or -o OTHER"
        )
    return target


def _started(
    plan: Plan, request: Request, events: queue.Queue[Any], warn: Callable[[Notice], None]
) -> tuple[Link, Plan]:
    """The recorder, recording; by tracefs when trace-cmd does not start."""
    while True:
        folder = Path(plan.folder)
        try:
            folder.mkdir(0o700)  # until it is known what is in it
        except OSError as error:
            raise SetupError(
                "cannot-write", str(folder.parent), f"cannot be written: {error.strerror}",
                fix="choose a folder with room and write permission with -o",
            ) from error  # fmt: skip
        link = Link(plan, events)
        try:
            told = events.get()
            while told is not None and "problem" in told:
                warn(Notice("record-problem", told["problem"]))
                told = events.get()
        except BaseException:
            link.stop(DISCARD, {})
            link.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if told is not None and "ready" in told:
            return link, plan
        log = folder / ".recorder.log"
        said = log.read_text(errors="replace").strip().splitlines()[-3:] if log.exists() else []
        link.put_back()
        shutil.rmtree(folder, ignore_errors=True)
        if told is None:
            raise SetupError(
                "recorder-died", "the recorder", "ended before it recorded anything",
                have=" / ".join(said) or None, fix="wbscope doctor",
            )  # fmt: skip
        if request.backend != "auto" or plan.backend != "trace-cmd":
            raise raised(told["error"])
        warn(Notice("no-trace-cmd", f"{told['error']['have']}; recording by tracefs instead"))
        plan = replace(
            plan, backend="tracefs", about=plan.about | {"no_trace_cmd": told["error"]["message"]}
        )


def _headline(plan: Plan) -> str:
    until = "until Ctrl-C" if not plan.command else shlex.join(plan.command)
    return (
        f"recording {len(plan.events)} events ({plan.profile}, {plan.backend}, clock {plan.clock},"
        f" {plan.buffer_kib} KiB a CPU): {until}"
    )


class _Session:
    """From the first event to the run folder."""

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
        self._interrupts = 0
        self._facts: dict[str, Any] = {}
        self._run: Path | None = None
        self._fio: FioResults | None = None
        self._told: set[str] = set()

    def run(self, say: Callable[[str], None], show: Callable[[str], None]) -> Recording:
        ended = COMPLETE
        try:
            say(_headline(self._plan))
            ended = self._work()
        except UsageError:
            with contextlib.suppress(SetupError):
                self._finish(DISCARD)
            raise
        except KeyboardInterrupt:
            ended = INTERRUPTED
        self._finish(ended)
        if self._run is None:
            raise SetupError(
                "recorder-died", "the recorder", "was killed, and left nothing to read",
                fix="wbscope doctor",
            )  # fmt: skip
        self._take_fio_json(show)
        meta = json.loads((self._run / META).read_text(encoding="utf-8"))
        return Recording(
            self._run,
            self._facts,
            ended == INTERRUPTED and bool(self._request.command),
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
        self._fio = fio_results(request.command, Path(self._plan.folder), Path.cwd())
        command = request.command if self._fio is None else self._fio.command
        workload: Workload | None = None
        try:
            workload = Workload(command, clock, self._events)
            while workload.lives():
                self._take(self._events.get())
            ended = COMPLETE
        except KeyboardInterrupt:
            ended = INTERRUPTED
            if workload is not None:
                self._end(workload)
            # What the command had started would write on while sysctls go back.
            end_descendants(spared=self._link.pid)
        if workload is not None:
            self._facts |= workload.facts
        if request.sync and ended == COMPLETE:
            began = time.clock_gettime_ns(clock)
            os.sync()
            after = time.clock_gettime_ns(clock)
            self._facts |= {"sync_started_ts_ns": began, "sync_duration_ns": after - began}
        return ended

    def _take_fio_json(self, show: Callable[[str], None]) -> None:
        if self._fio is None or self._run is None:
            return
        if problem := self._fio.save(self._run, show):
            self._warn(Notice("no-fio-json", problem))

    def _wait(self, duration_ns: int | None) -> str:
        """Ctrl-C is the usual end when no time is given."""
        deadline = None if duration_ns is None else time.monotonic() + duration_ns / _NS_PER_S
        try:
            while not self._link.died:
                left = None if deadline is None else max(deadline - time.monotonic(), 0)
                self._take(self._events.get(timeout=left))
        except queue.Empty:
            return COMPLETE
        except KeyboardInterrupt:
            return COMPLETE if duration_ns is None else INTERRUPTED
        return RECORDER_KILLED

    def _end(self, workload: Workload) -> None:
        """A terminal told it too; a plain kill of ours did not."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + _PATIENCE_SECONDS
            try:
                while workload.lives() and time.monotonic() < deadline:
                    time.sleep(0.02)
                    if number == signal.SIGINT and time.monotonic() > deadline - 4:
                        break
            except KeyboardInterrupt:
                number = signal.SIGKILL
            workload.kill(number)
        while workload.lives():
            time.sleep(0.02)

    def _take(self, told: Any) -> None:
        if isinstance(told, dict) and "problem" in told:
            self._told.add(told["problem"])
            self._warn(Notice("record-problem", told["problem"]))
        if told is not None or self._run is not None:
            return
        self._warn(Notice("recorder-killed", "the recorder was killed; its run ends here"))
        self._run = self._link.put_back()

    def _finish(self, ended: str) -> None:
        """Ctrl-C has been heard: now the run is written."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._write(ended)
        finally:
            signal.signal(signal.SIGINT, before)

    def _write(self, ended: str) -> None:
        if self._run is None:
            self._link.stop(ended, self._facts)
        while self._run is None:
            told = self._events.get()
            if told is None:
                self._take(None)
                break
            if told == "ended" or "problem" in told:
                self._take(told)
                continue
            self._link.close()
            if "error" in told:
                raise raised(told["error"])
            self._run = Path(told["done"]["run"])
            return
        if self._run is not None:
            # It was killed: what it was not told goes into its run now.
            meta = json.loads((self._run / META).read_text(encoding="utf-8"))
            save_meta(self._run, meta | self._facts)
