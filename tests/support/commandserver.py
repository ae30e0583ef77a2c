# SPDX-License-Identifier: Apache-2.0
"""Runs wbscope commands, each in a fork of this process, which has imported everything before.

usage: commandserver.py    one JSON document on each line of stdin and of stdout; see forkserver.py

Linux only: /proc, and orphans of a command become this process's children, so that none is missed.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import gc
import importlib
import json
import os
import pkgutil
import resource
import select
import signal
import stat
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.05
_WHERE = signal.SIGUSR2
_WHERE_SECONDS = 0.2
_PAGE_BYTES = resource.getpagesize()
_MEBIBYTE = 1 << 20

# Slow to import, and they start no thread. A command that has imported one wants it again.
_SLOW = ("matplotlib.backends.backend_agg", "matplotlib.figure", "numpy", "ruptures", "scipy.stats")

Job = dict[str, Any]


def descendants(pid: int) -> list[int]:
    """All that descend from the process, itself first."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                listed = Path(f"/proc/{parent}/task/{task}/children").read_text().split()
                found += map(int, listed)
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0  # it has ended


def _temporary(pids: list[int], folder: str) -> int:
    """Bytes of files below the folder, and of files without a name that these processes have."""
    files: dict[tuple[int, int], int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                status = os.lstat(f"{place}/{name}")
                files[status.st_dev, status.st_ino] = status.st_blocks * 512
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    status = os.stat(f"/proc/{pid}/fd/{name}")
                    if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                        files[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(files.values())


def _import_all(package: str) -> None:
    """The package and all modules in it."""
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if not found.name.endswith(".__main__"):
            importlib.import_module(found.name)


def _child(job: Job, wanted: int = -1) -> NoReturn:
    """Run the command as a process of its own would; write into `wanted` what it has imported."""
    if "seconds" in job:
        os.setsid()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, path in ((0, os.devnull), (1, job["out"]), (2, job["err"])):
        opened = os.open(path, os.O_RDONLY if number == 0 else flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    # Those that Python made take descriptors 1 and 2 for files of the kind that they were.
    sys.stdout = os.fdopen(1, "w", encoding=sys.stdout.encoding, closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding=sys.stderr.encoding, buffering=1, closefd=False)
    os.chdir(job["folder"])
    if job.get("only_env"):
        os.environ.clear()
    os.environ.update(job["env"])
    if "seconds" in job:
        faulthandler.register(_WHERE, file=2, all_threads=True)
        most = job["temp_mebibytes"] * _MEBIBYTE
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from wbscope.cli.main import main

    code = 255
    try:
        code = main(job["words"])
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 255
    except BaseException:
        traceback.print_exc()
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    if wanted >= 0:
        os.write(wanted, " ".join(name for name in _SLOW if name in sys.modules).encode())
    os._exit(code)


def _run(job: Job) -> dict[str, Any]:
    """Import what the job names, for all that follow; fork, and say how it ended."""
    for name in job["imports"]:
        importlib.import_module(name)
    if job["imports"]:
        importlib.import_module("wbscope.perfetto.perfetto_library").perfetto_library()  # kept
    told, wanted = os.pipe()
    gc.freeze()
    pid = os.fork()
    if pid == 0:
        _child(job, wanted)
    os.close(wanted)
    _, status = os.waitpid(pid, 0)
    os.set_blocking(told, False)  # a child of the command may have it, too
    with open(told, "rb") as names, contextlib.suppress(BlockingIOError):
        for name in (names.read() or b"").split():
            importlib.import_module(name.decode())
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass  # one that it left has ended
    return {"code": os.waitstatus_to_exitcode(status)}


def _run_watched(job: Job) -> dict[str, Any]:
    """Fork, watch its limits, and say how it ended."""
    base = _resident(os.getpid())
    begin = time.monotonic()
    gc.freeze()
    pid = os.fork()
    if pid == 0:
        _child(job)
    stopped = ""
    temporary = 0
    status, usage = 0, None
    pause = 0.005
    ended = select.poll()
    ended.register(watched := os.pidfd_open(pid), select.POLLIN)
    while usage is None:
        done, status, told = os.wait4(pid, os.WNOHANG)
        if done:
            usage = told
            continue
        pids = descendants(pid)
        temporary = max(temporary, _temporary(pids, job["temp"]))
        resident = max(_resident(number) for number in pids) - base
        if time.monotonic() - begin > job["seconds"]:
            stopped = "time"
        elif resident > job["mebibytes"] * _MEBIBYTE:
            stopped = "memory"
        elif temporary > job["temp_mebibytes"] * _MEBIBYTE:
            stopped = "temporary space"
        if stopped:
            _ask_where(pid)
            _kill(pids)
            _, status, usage = os.wait4(pid, 0)
            continue
        ended.poll(pause * 1000)
        pause = min(pause * 1.3, _POLL_SECONDS)
    os.close(watched)
    seconds = time.monotonic() - begin
    return {
        "code": os.waitstatus_to_exitcode(status),
        "stopped": stopped,
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "mebibytes": max(usage.ru_maxrss * 1024 - base, 0) / _MEBIBYTE,
        "temp_mebibytes": temporary / _MEBIBYTE,
        "left": _reap(bool(stopped), job["seconds"]),
    }


def _ask_where(pid: int) -> None:
    """Let it write what its threads do: who reads of a hang wants to know where."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, _WHERE)
    time.sleep(_WHERE_SECONDS)


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _reap(at_once: bool, seconds: float) -> list[str]:
    """Wait for what the command left, which knows that it is alone; what lives on is named."""
    left: list[str] = []
    end = time.monotonic() + (0 if at_once else seconds)
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return left
        if pid:
            continue
        if time.monotonic() > end:
            pids = descendants(os.getpid())[1:]
            if not at_once:
                left += [_name(pid) for pid in pids]
            _kill(pids)
            at_once = True
        time.sleep(0.01)


def _name(pid: int) -> str:
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:
        return str(pid)


def serve() -> None:
    """Answer jobs until stdin ends: "seconds" is the first of the limits of one that has limits.

    A job without "out" is run here, to import what it needs.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    answers = os.fdopen(os.dup(1), "w")
    os.set_inheritable(answers.fileno(), False)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    from wbscope.cli.main import main

    for line in sys.stdin:
        job = json.loads(line)
        if "seconds" in job:
            answer = _run_watched(job)
        elif "out" in job:
            answer = _run(job)
        else:
            os.environ.update(job["env"])
            for package in job.get("packages", ()):
                _import_all(package)
            answer = {"code": main(job["words"])}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
