# SPDX-License-Identifier: Apache-2.0
"""A real standalone cluster of Spark on this machine: a master and workers, each its own JVM."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .waits import wait_until

__all__ = [
    "QUICK_JVM",
    "Cluster",
    "children_of",
    "frozen",
    "kill",
    "needs_spark",
    "standalone",
    "thaw",
]

# Less time for what runs for seconds.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_URL = re.compile(r"Starting Spark master at (spark://\S+)")


def _why_not() -> str | None:
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed: make test installs it, or pip install '.[spark]'"
    return None if shutil.which("java") else "no java: apt-get install openjdk-17-jre-headless"


needs_spark = pytest.mark.skipif(_why_not() is not None, reason=_why_not() or "")


@dataclass
class Cluster:
    """Its URL, and the processes of its workers."""

    url: str
    settings: tuple[str, ...]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    start: Callable[[], None] = lambda: None  # one more worker
    master: subprocess.Popen[bytes] | None = None

    def words(self) -> list[str]:
        """What a command needs to run there."""
        conf = [word for one in self.settings for word in ("--conf", one)]
        return ["--master", self.url, *conf]

    def worker_of(self, pid: int) -> subprocess.Popen[bytes]:
        """The one that a process is below."""
        (worker,) = [one for one in self.workers if pid in children_of(one.pid)]
        return worker

    def lose(self, worker: subprocess.Popen[bytes]) -> None:
        """A worker's JVM is killed; another one comes in its place."""
        kill(worker.pid)
        worker.wait()
        self.workers.remove(worker)
        self.start()

    def vanish(self) -> None:
        """All of it is killed."""
        assert self.master is not None
        for process in (self.master, *self.workers):
            for one in frozen(process.pid):
                kill(one)
            process.wait()


@contextmanager
def standalone(
    folder: Path, workers: int = 2, memory: str = "512m", env: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """A master and workers of one core, on ports of their own choice, only for this machine."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = dict(
        os.environ,
        SPARK_HOME=str(home),
        SPARK_LOCAL_IP="127.0.0.1",
        SPARK_DAEMON_MEMORY="192m",
        SPARK_DAEMON_JAVA_OPTS=f"{QUICK_JVM} -Dspark.master.rest.enabled=false",
        PYSPARK_PYTHON=sys.executable,
        **(env or {}),
    )
    started: list[subprocess.Popen[bytes]] = []

    def start(kind: str, *words: str) -> Path:
        log = folder / f"{kind.lower()}-{len(started)}.log"
        with log.open("wb") as out:
            command = [home / "bin/spark-class", f"org.apache.spark.deploy.{kind.lower()}.{kind}"]
            own = [*command, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *words]
            started.append(subprocess.Popen(own, env=environment, stdout=out, stderr=out))
        return log

    def start_worker() -> None:
        work = folder / f"work-{len(started)}"
        log = start(
            *("Worker", "--cores", "1", "--memory", memory, "--work-dir", str(work), cluster.url)
        )
        wait_until(lambda: "Successfully registered" in log.read_text(), f"a worker: {log}")
        cluster.workers.append(started[-1])

    try:
        log = start("Master")
        wait_until(lambda: _URL.search(log.read_text()) is not None, f"the master: {log}")
        found = _URL.search(log.read_text())
        assert found is not None
        settings = (
            f"spark.executor.memory={memory}",
            f"spark.executor.extraJavaOptions={QUICK_JVM}",
            f"spark.driver.extraJavaOptions={QUICK_JVM}",
        )
        cluster = Cluster(found[1], settings, start=start_worker, master=started[0])
        for _ in range(workers):
            start_worker()
        yield cluster
    finally:
        # An executor ends when its worker has gone.
        for process in reversed(started):
            process.kill()
            process.wait()


def children_of(pid: int) -> dict[int, str]:
    """All processes below this one, and their command lines."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except (OSError, ValueError):
                continue  # it has ended
            parents[int(folder.name)] = (int(stat.rpartition(")")[2].split()[1]), words)
    below, found = {pid}, dict[int, str]()
    while new := {one for one, (parent, _) in parents.items() if parent in below} - set(found):
        below |= new
        found |= {one: parents[one][1] for one in new}
    return found


def kill(pid: int) -> None:
    """As the kernel does when memory is short."""
    os.kill(pid, signal.SIGKILL)


def frozen(pid: int) -> set[int]:
    """Stop a process and all below it, those that it starts meanwhile as well; which these are."""
    stopped: set[int] = set()
    while new := {pid, *children_of(pid)} - stopped:
        for one in new:
            _send(one, signal.SIGSTOP)
        stopped |= new
    return stopped


def thaw(pids: set[int]) -> None:
    """They go on."""
    for one in pids:
        _send(one, signal.SIGCONT)


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
