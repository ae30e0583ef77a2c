# SPDX-License-Identifier: Apache-2.0
"""Runs wbscope record, kills it, and looks at what it leaves on the machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

from .tools import run, wbscope_path

__all__ = [
    "Recorder",
    "instances",
    "nothing_is_left",
    "probes",
    "program_of_ours",
    "report_counts",
    "state_of_machine",
    "wait_until",
]

_TRACEFS = Path("/sys/kernel/tracing")
_REGISTER = Path("/run/wbscope")
_SYSCTLS = (
    "dirty_bytes",
    "dirty_ratio",
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_expire_centisecs",
)


def instances() -> list[Path]:
    """Those of wbscope."""
    return sorted((_TRACEFS / "instances").glob("*wbscope-*"))


def probes() -> list[str]:
    """Lines of the dynamic events that wbscope has made."""
    try:
        lines = (_TRACEFS / "dynamic_events").read_text().splitlines()
    except OSError:
        return []
    return [line for line in lines if ":wbscope_" in line]


def registered() -> list[str]:
    """What is known of recordings that go on or were cut short."""
    return sorted(path.name for path in _REGISTER.glob("*.json"))


def nothing_is_left() -> bool:
    """Of any recording: its register goes last."""
    return not instances() and not registered()


def state_of_machine() -> dict[str, Any]:
    """What a recording must leave as it was."""
    return {
        "sysctls": {name: Path(f"/proc/sys/vm/{name}").read_text() for name in _SYSCTLS},
        "instances": [path.name for path in instances()],
        "probes": probes(),
        "register": registered(),
        "top_events": (_TRACEFS / "set_event").read_text(),
        "tracing_on": (_TRACEFS / "tracing_on").read_text(),
    }


def wait_until(condition: Any, seconds: float) -> bool:
    """Whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def program_of_ours(folder: Path, name: str) -> Path:
    """A copy of a program under a name that nobody else on the machine runs."""
    found = shutil.which(name)
    assert found is not None
    return Path(shutil.copy(found, folder / f"{name}-{os.getpid()}"))


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
    """One folder with runs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = dict(os.environ, NO_COLOR="1", WBSCOPE_CACHE_DIR=str(folder / "cache"))
        self._started: list[subprocess.Popen[str]] = []

    def record(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return run([wbscope_path(), "record", *arguments], cwd=self.folder, env=self.env)

    def wbscope(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return run([wbscope_path(), *arguments], cwd=self.folder, env=self.env)

    def apart(self, setup: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """In mounts of its own, after shell commands that change them."""
        return run(
            ["unshare", "-m", "sh", "-c", f'{setup}; exec "$@"', "sh", wbscope_path(), *arguments],
            cwd=self.folder,
            env=self.env,
        )

    def tracing_is_on(self, front: int) -> bool:
        """The instance of that recording takes events."""
        for path in instances():
            if path.name.startswith(f"wbscope-{front}-"):
                try:
                    return (path / "tracing_on").read_text().strip() == "1"
                except OSError:
                    return False
        return False

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """In a session of its own, as a terminal has it."""
        process = subprocess.Popen(
            [wbscope_path(), "record", *arguments],
            cwd=self.folder,
            env=self.env,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def supervisors(self, front: int) -> list[int]:
        """The processes that record for it; none before it has started one."""
        command = ["pgrep", "-P", str(front), "-f", "wbscope.record.supervisor"]
        return [int(pid) for pid in run(command).stdout.split()]

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
        """Nothing that was started goes on."""
        for process in self._started:
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        wait_until(nothing_is_left, 20)
