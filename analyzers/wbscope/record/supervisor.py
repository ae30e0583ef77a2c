# SPDX-License-Identifier: Apache-2.0
"""The process that records, in a session of its own.

`wbscope record` starts it, runs the workload and tells it how that ended.  When that
process dies, however, this one stops tracing, puts everything back and leaves a whole run.
When this one dies, `wbscope record` does so; when both do, tracing stops by itself (plain
tracefs: the last close of free_buffer; trace-cmd: the end of its stdin), and the next
wbscope record puts the rest back.

Lines of JSON on a socket.  To this process: the plan, then {"ended", "facts"}.  From it:
{"ready"}; {"problem"} as often as one is met; {"let_go"} when the other end may close the
file that keeps tracing on; at last {"done"} or {"error"}.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import queue
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from wbscope.base import errors
from wbscope.base.errors import Argument, Phrase, SetupError, WbscopeError
from wbscope.base.held_folder import HeldFolder, remove_own
from wbscope.record.backends import HEAD, Backend, backend_of, cpu_stats, trace_cmd_pids
from wbscope.record.choose import Instance
from wbscope.record.finish import Recovered, recover, save_started, tail_of, write_meta
from wbscope.record.folders import PLAN, publish
from wbscope.record.machine import save_after, save_before
from wbscope.record.pages import head_of
from wbscope.record.probes import make_probes, make_waits, missed_facts, remove_probes
from wbscope.record.register import (
    COMPLETE,
    DISCARD,
    NOT_WHOLE,
    Entry,
    Plan,
    dead_entries,
    lock_sysctls,
    open_entry,
    save,
)
from wbscope.record.series import CLOCK_IDS, OwnPauses, Sampler
from wbscope.record.settings import change, read_back, restore, saved_values
from wbscope.record.tasks import TaskIo

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


_SAYING = threading.Lock()
_CPU_CLOCK = 2  # CPUCLOCK_SCHED
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_HELD = re.compile(rf"/proc/{os.getpid()}/fd/\d+")


class _Terminated(Exception):
    """A plain kill."""


def main() -> int:
    """argv: the file descriptor of the socket; the plan comes over it."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    _be_spared()
    link = socket.socket(fileno=int(sys.argv[1]))
    lines = link.makefile("r", encoding="utf-8")
    text = lines.readline()
    if not text:
        return 0
    plan = Plan.from_json(text)
    if _is_alone(link):
        remove_own(Path(plan.folder))
        return 0
    entry: Entry | None = None
    began: list[Backend] = []
    pauses = OwnPauses(Path(plan.tracefs), plan.instance)
    try:
        entry = open_entry(plan.instance)
        held = HeldFolder(Path(plan.folder))  # to the end of this process
        held.check_own()
        _check_same(held, plan)
        done = _record(plan, held, entry, link, lines, began, pauses)
    except (WbscopeError, OSError) as error:
        pauses.finish()
        # Nothing was recorded, or it cannot be written: keep what there is.
        for backend in began:
            backend.close()
        if entry is not None:
            found = recover(
                entry,
                ended="recorder failed",
                now=True,
                drop=not began,
                let_go=lambda: _say(link, let_go=True),
            )
            for name in () if found is None else found.left:
                _say(link, problem=f"{name} is not as it was")
        _say(link, error=_as_dict(error, plan))
        return 0
    _say(link, done=done)
    entry.remove()  # not before: a run that nobody was told of would be taken for lost
    return 0


def _record(
    plan: Plan,
    held: HeldFolder,
    entry: Entry,
    link: socket.socket,
    lines: Any,
    began: list[Backend],
    pauses: OwnPauses,
) -> dict[str, Any]:
    folder = held.inside
    instance = Instance(Path(plan.tracefs), plan.instance)
    lock = lock_sysctls() if plan.settings else None
    saved = saved_values(plan.settings)
    entry.write(plan, saved)
    pauses.start([os.getpid()])
    plan = _with_probes(plan, instance)
    change(plan.settings)
    entry.write(plan, saved, read_back(plan.settings))
    inside = replace(plan, folder=str(folder))
    save_before(folder)
    save(folder / HEAD, head_of(instance, plan.events))
    sampler = Sampler(folder, Path(plan.tracefs), plan.clock, plan.interval_s)
    backend = backend_of(inside, lambda text: _say(link, problem=text))
    task_io = TaskIo(folder, CLOCK_IDS[plan.clock])
    task_io.start()
    began_ts = time.clock_gettime_ns(CLOCK_IDS[plan.clock])
    started = {
        "recorder_pid": os.getpid(),
        "sampler_tid": sampler.start(),
        "started_ts_ns": began_ts,
        "task_io": task_io.facts(),
    }
    save_started(folder, started)
    filtered = _started(backend, sampler.tid, began)
    others = trace_cmd_pids(plan.instance) if plan.backend == "trace-cmd" else []
    own = [*_own_threads(), *others]
    # Not after the workload began: it may fill the disk at once.
    save(folder / "recorder_tasks", "".join(f"{tid}\n" for tid in own))
    keep = backend.keep_alive()
    message = json.dumps({"ready": {"keeps": keep is not None}}).encode() + b"\n"
    with contextlib.suppress(OSError):
        socket.send_fds(link, [message], [] if keep is None else [keep])
    sampler.go(filtered)
    pauses.follow(own)
    taken = _cpu_ns([os.getpid(), *others])
    try:
        signal.signal(signal.SIGTERM, _terminate)
        told = json.loads(lines.readline() or '{"ended": "wbscope record killed"}')
    except (_Terminated, ValueError, OSError):
        told = {"ended": "recorder terminated"}
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(SetupError):
        instance.write("tracing_on", "0")
    ended_ts = time.clock_gettime_ns(CLOCK_IDS[plan.clock])
    taken_later = _cpu_ns(taken)
    problems = []
    try:
        save_after(folder)
    except OSError as error:  # a disk that is full: the trace matters more
        problems.append(f"{Path(str(error.filename)).name}: {error.strerror}")
    task_io.finish()
    sampler.finish()  # before its samples are of other settings
    restored = restore(saved)
    if lock is not None:
        os.close(lock)
    stats = cpu_stats(instance)
    if told["ended"] == DISCARD:
        held.remove()
        raise SetupError("discarded", plan.target, "nothing was to be recorded")
    backend.stop(tail_of(plan, sampler.names, stats))
    _say(link, let_go=True)
    probe, missed = missed_facts(plan.about, instance.tracefs, plan.instance)
    removed = instance.remove()
    left = remove_probes(instance.tracefs, plan.instance)
    problems += [*missed, *(f"probe {name} is in use and was not removed" for name in left)]
    problems += [*backend.problems, *(f"{name} is not as it was" for name in restored)]
    problems += [*task_io.problems(), *sampler.problems()]
    if not removed:
        problems.append(f"instance {plan.instance} is in use and was not removed")
    pauses.finish()
    problems += _held(plan, pauses)
    ended = told["ended"]
    if ended == COMPLETE and not backend.is_whole:
        ended = NOT_WHOLE
    problems = [_named(text, plan) for text in problems]
    more = {**started, "ended_ts_ns": ended_ts, "problems": problems, **told.get("facts", {})}
    more |= {**probe, "task_io": task_io.facts(), **pauses.facts()}
    is_known = os.getpid() in taken and taken.keys() == taken_later.keys()
    took = sum(taken_later.values()) - sum(taken.values())
    more["recorder_cpu_ns"] = took if is_known else None
    write_meta(inside, ended, more, stats)
    return {"run": str(publish(plan, held))}


def _check_same(held: HeldFolder, plan: Plan) -> None:
    """The folder that wbscope record has made for it.  Raises: OSError."""
    if held.read_text(PLAN) != plan.to_json():
        raise OSError(None, "another folder has the name of its own")


def _with_probes(plan: Plan, instance: Instance) -> Plan:
    """With the events that are made for it, where they are wanted and the kernel takes them."""
    for key, is_wanted, make in (
        ("probe", plan.probes, make_probes),
        ("waits", plan.waits, make_waits),
    ):
        if is_wanted:
            made = make(instance)
            events = (*plan.events, *made.events)
            plan = replace(plan, events=events, about=plan.about | {key: made.about()})
    if plan.backend == "trace-cmd" and plan.probes:
        instance.remove()  # or trace-cmd would leave it when it ends
    return plan


def _own_threads() -> list[int]:
    return [int(path.name) for path in Path("/proc/self/task").iterdir()]


def _cpu_ns(pids: Iterable[int]) -> dict[int, int]:
    """CPU time of each process that lives, with all of its threads."""
    taken = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            # As clock_getcpuclockid(3) numbers the clock of a process.
            taken[pid] = time.clock_gettime_ns((~pid << 3) | _CPU_CLOCK)
    return taken


def _held(plan: Plan, pauses: OwnPauses) -> list[str]:
    if not pauses.paused_ns():
        return []
    held = f"the recorder was held in balance_dirty_pages for {pauses.paused_ns() // 10**6} ms"
    if plan.backend == "trace-cmd":
        held += ", for trace-cmd writes through the page cache; the backend tracefs does not"
    return [held]


def _is_alone(link: socket.socket) -> bool:
    """wbscope record was killed before we had started."""
    try:
        return link.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _started(backend: Backend, sampler_tid: int, began: list[Backend]) -> bool:
    try:
        filtered = backend.start(sampler_tid)
    except (WbscopeError, OSError):
        backend.close()
        raise
    began.append(backend)
    return filtered


def _say(link: socket.socket, **message: Any) -> None:
    """From any thread."""
    with _SAYING, contextlib.suppress(OSError):  # nobody listens
        link.sendall(json.dumps(message).encode() + b"\n")


def _as_dict(error: WbscopeError | OSError, plan: Plan) -> dict[str, Any]:
    if isinstance(error, OSError):
        subject = _named(str(error.filename or plan.folder), plan)
        reason = _named(error.strerror or str(error), plan)
        left = plan.folder if Path(plan.folder).exists() else None
        if left is not None:
            fix = f"wbscope record --recover {shlex.quote(left)}"
            fix = f"make room, then: {fix}" if error.errno in _NO_ROOM else fix
        elif error.errno in _NO_ROOM:
            fix = "make room, or record to a disk that has some"
        else:
            fix = "wbscope doctor"
        error = SetupError("record-failed", subject, reason, have=left, fix=fix)
    return told_of(error)


def _named(text: str, plan: Plan) -> str:
    """With the folder's name, not that of its open file."""
    return _HELD.sub(lambda _: plan.folder, text)


def _terminate(_number: int, _frame: object) -> None:
    raise _Terminated


def _be_spared() -> None:
    """Where memory runs out, the workload is what should end."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("-1000")


if __name__ == "__main__":
    sys.exit(main())
