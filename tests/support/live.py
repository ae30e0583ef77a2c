# SPDX-License-Identifier: Apache-2.0
"""Runs wbscope record, kills it, and looks at what it leaves on the machine.

Others may record, write and be throttled meanwhile: what is looked at is named by the processes
that a Recorder has started. Tests that record take turns, see alone_on_the_machine().
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .tools import wbscope_path
from .waits import GUARD_SECONDS, wait_until

__all__ = [
    "Recorder",
    "alone_on_the_machine",
    "lives",
    "problems",
    "program_of_ours",
    "remove_watches_of_the_dead",
    "report_counts",
    "sysctls_of_machine",
    "wait_while_it_runs",
    "watching",
]

_TRACEFS = Path("/sys/kernel/tracing")
_REGISTER = Path("/run/wbscope")
_LOCK = Path("/run/wbscope-tests.lock")
_SYSCTLS = (
    "dirty_bytes",
    "dirty_ratio",
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_expire_centisecs",
    "swappiness",
)
# Of an instance, a group of probes and a file of the register: the pid of who made it.
_MADE_BY = re.compile(r"wbscope[-_](\d+)[-_](?:[0-9a-f]{8}|doctor|remote)\b")
_WATCH = re.compile(r"tests-of-wbscope-(\d+)-\d+")
_watches = itertools.count()
_held = 0


@contextmanager
def alone_on_the_machine() -> Iterator[None]:
    """No test of another process, worker or checkout records meanwhile. Can be nested.

    A recording removes what killed ones have left, and two cannot change sysctls at a time.
    """
    global _held
    if _held:
        yield
        return
    with _LOCK.open("w") as lock:  # not inherited by what is started
        fcntl.flock(lock, fcntl.LOCK_EX)
        _held = 1
        try:
            yield
        finally:
            _held = 0


def sysctls_of_machine() -> dict[str, str]:
    """What a recording must leave as it was."""
    return {name: Path(f"/proc/sys/vm/{name}").read_text() for name in _SYSCTLS}


def lives(pid: int) -> bool:
    """Not one that has ended and waits for its parent, which may be in no hurry."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_while_it_runs(
    process: subprocess.Popen[str], condition: Callable[[], object], what: str
) -> None:
    """As wait_until(), and fail at once where the process ends before that."""
    wait_until(lambda: condition() or process.poll() is not None, what)
    assert condition(), f"ended with {process.returncode} before: {what}"


def program_of_ours(folder: Path, name: str) -> Path:
    """A copy of a program under a name that nobody else on the machine runs."""
    found = shutil.which(name)
    assert found is not None
    return Path(shutil.copy(found, folder / f"{name}-{os.getpid()}"))


def problems(meta: Mapping[str, Any]) -> list[str]:
    """But for pauses of the recorder: what others on the machine dirty counts for its limits."""
    return [told for told in meta["problems"] if "held in balance_dirty_pages" not in told]


@contextmanager
def watching(event: str, wanted: str) -> Iterator[Callable[[], bool]]:
    """Whether the event has come since, with these values: of an instance that is the test's own.

    A workload goes on until then, however fast the machine writes.
    """
    folder = _TRACEFS / "instances" / f"tests-of-wbscope-{os.getpid()}-{next(_watches)}"
    event_folder = folder / "events" / event.replace(":", "/")
    folder.mkdir()
    try:
        (folder / "buffer_size_kb").write_text("64")
        (event_folder / "filter").write_text(wanted)
        (event_folder / "enable").write_text("1")
        yield lambda: any(line[0] != "#" for line in (folder / "trace").open())
    finally:
        (event_folder / "enable").write_text("0")
        folder.rmdir()


def remove_watches_of_the_dead() -> None:
    """Of tests that were killed."""
    for folder in (_TRACEFS / "instances").iterdir():
        if (found := _WATCH.fullmatch(folder.name)) and not lives(int(found[1])):
            folder.rmdir()


def report_counts(trace: Path) -> Counter[str]:
    """Events of a trace by name, as trace-cmd report reads it."""
    # Linux 7.2 records what system calls write, and that is not always text.
    done = subprocess.run(
        ["trace-cmd", "report", trace], capture_output=True, errors="replace", check=False
    )
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^.*\[\d+\][^:\n]*?\d+(?:\.\d+)?: (\w+):", done.stdout, re.MULTILINE)
    return Counter(lines)


class Recorder:
    """One folder with runs in it, and what its processes have made on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = f"WBSCOPE_TEST={folder}"  # of all that it starts
        self.env = dict(os.environ, NO_COLOR="1", WBSCOPE_CACHE_DIR=str(folder / "cache"))
        self.env |= dict([self.mark.split("=", 1)])
        self._started: list[subprocess.Popen[str]] = []
        self._pids = {os.getpid()}  # a test may make an instance itself

    def record(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return self.run(wbscope_path(), "record", *arguments)

    def wbscope(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return self.run(wbscope_path(), *arguments)

    def run(self, *command: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
        """The exit code is for the test to judge."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        words: dict[str, Any] = {"cwd": self.folder, "env": self.env, "text": True} | pipes | more
        given = words.pop("input", None)
        words["stdin"] = None if given is None else subprocess.PIPE
        with subprocess.Popen(command, **words) as process:
            self._pids.add(process.pid)
            out, said = process.communicate(given)
        return subprocess.CompletedProcess(command, process.returncode, out, said)

    def script(self, text: str, shell: str = "sh", **more: Any) -> Path:
        """What a script of --print wrote, as its machine runs it: the archive."""
        archive = self.folder / "run.tar"
        done = self.run_script(text, archive, shell, **more)
        assert done.returncode == 0, done.stderr
        return archive

    def run_script(
        self, text: str, archive: Path, shell: str = "sh", **more: Any
    ) -> subprocess.CompletedProcess[str]:
        with archive.open("wb") as out:
            return self.run(*shell.split(), "-s", input=text, stdout=out, **more)

    def apart(self, setup: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """In mounts of its own, after shell commands that change them."""
        words = ["unshare", "-m", "sh", "-c", f'{setup}; exec "$@"', "sh", wbscope_path()]
        return self.run(*words, *arguments)

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """A recording in a session of its own, as a terminal has it."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return self.start_command(wbscope_path(), "record", *arguments, **pipes)

    def start_command(self, *command: str | Path, **more: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.env,
            text=True,
            start_new_session=True,
            **more,
        )
        self._pids.add(process.pid)
        self._started.append(process)
        return process

    def instances(self) -> list[Path]:
        """Those that are there of what it has started."""
        return sorted(path for path in (_TRACEFS / "instances").iterdir() if self._made(path.name))

    def probes(self) -> list[str]:
        """Lines of their dynamic events."""
        try:
            lines = (_TRACEFS / "dynamic_events").read_text().splitlines()
        except OSError:
            return []
        return [line for line in lines if self._made(line)]

    def registered(self) -> list[str]:
        """What is known of recordings that go on or were cut short."""
        names = (path.name for path in _REGISTER.glob("*.json"))
        return sorted(name for name in names if self._made(name))

    def left(self) -> list[str]:
        """All three; the register goes last."""
        return [path.name for path in self.instances()] + self.probes() + self.registered()

    def nothing_is_left(self) -> bool:
        return not self.left()

    def _made(self, text: str) -> bool:
        found = _MADE_BY.search(text)
        return found is not None and int(found[1]) in self._pids

    def tracing_is_on(self, front: int) -> bool:
        """The instance of that recording takes events."""
        for path in self.instances():
            if path.name.startswith(f"wbscope-{front}-"):
                try:
                    return (path / "tracing_on").read_text().strip() == "1"
                except OSError:
                    return False
        return False

    def tracing_has_stopped(self) -> bool:
        """Of all of them."""
        for instance in self.instances():
            try:
                on = (instance / "tracing_on").read_text().strip() == "1"
                if on and (instance / "events/enable").read_text().strip() != "0":
                    return False
            except OSError:
                continue  # it is being removed
        return True

    def supervisors(self, front: int) -> list[int]:
        """The processes that record for it; none before it has started one."""
        command = ["pgrep", "-P", str(front), "-f", "wbscope.record.supervisor"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return [int(pid) for pid in done.stdout.split()]

    def living(self) -> list[int]:
        """Processes that it has started, and theirs."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if self.mark.encode() in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
        return [pid for pid in found if lives(pid)]

    def meta(self, name: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / name / "meta.json").read_text())
        return content

    def counts(self, name: str) -> dict[str, int]:
        done = self.wbscope("query", "event_counts", name, "--json")
        assert done.returncode == 0, done.stderr
        return {row["event"]: row["count"] for row in json.loads(done.stdout)["rows"]}

    def sql(self, name: str, statement: str) -> list[dict[str, Any]]:
        done = self.wbscope("sql", name, statement, "--json")
        assert done.returncode == 0, done.stderr
        rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
        return rows

    def end(self) -> None:
        """Nothing that was started goes on: workloads are killed, recorders end by themselves."""
        for process in self._started:
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            with suppress(ProcessLookupError):  # what a front that was killed has left, too
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(GUARD_SECONDS)
        wait_until(lambda: not self.living(), "what the test has started ends")
