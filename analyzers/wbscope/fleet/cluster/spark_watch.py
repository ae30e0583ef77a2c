# SPDX-License-Identifier: Apache-2.0
"""What is told of a cluster that fails, also of one that has gone and that Spark would wait for."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from wbscope.base.errors import SetupError

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["LOST_SECONDS", "check_master", "cluster_failed", "watching_master"]

# A master that starts again, or another one of several, has found its jobs by then.
LOST_SECONDS = 60.0
_EVERY_SECONDS = 5.0
_MASTERS = re.compile(r"spark://(.+)", re.DOTALL)


def check_master(master: str) -> None:
    """Spark itself would try it for a minute, and end in the middle of its own start.

    Raises: SetupError where nobody listens at spark://HOST:PORT.
    """
    masters = _addresses(master)
    if masters and not any(map(_answers, masters)):
        raise SetupError(
            "spark-not-started",
            master,
            "does not answer",
            fix="start-master.sh and start-worker.sh of Spark, or on this machine alone: local[2]",
        )


def cluster_failed(error: Exception, subject: str) -> SetupError:
    """What Spark says of a job that failed, in one line."""
    java: Any = getattr(error, "java_exception", None)
    text = str(java if java is not None else error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # Of Python's own traceback the last line says it.
    raised = [line for line in lines if line.startswith("wbscope.base.errors.")]
    line = (raised or lines or [type(error).__name__])[-1 if raised else 0]
    return SetupError(
        "spark-failed",
        subject,
        f"the cluster gave up: {line[:400]}",
        effect="runs that are in the dataset stay",
        fix="look at the executors' logs, and start the same command again: it goes on",
    )


@contextmanager
def watching_master(context: SparkContext, master: str) -> Iterator[None]:
    """Of spark://HOST:PORT[,HOST:PORT]; others end a job themselves.

    As long as there is an executor the job goes on without a master.

    Raises: SetupError in the place of what a job says that was ended so.
    """
    if not (masters := _addresses(master)):
        yield
        return
    watch = _Watch(context, masters, LOST_SECONDS)
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        if watch.is_lost:
            raise _master_lost(master) from error
        raise
    finally:
        watch.done.set()
        thread.join()


class _Watch:
    """Looks every some seconds who is there."""

    def __init__(self, context: SparkContext, masters: list[str], seconds: float) -> None:
        self._context: Any = context
        self._masters = masters
        self._seconds = seconds
        self.done = threading.Event()
        self.is_lost = False

    def run(self) -> None:
        """Until `done`. A master that was lost may answer again, and not know of this job."""
        lost_since: float | None = None
        while not self.done.wait(min(_EVERY_SECONDS, self._seconds / 2)):
            if self._has_executors():
                lost_since = None
            elif lost_since is None:
                if not any(map(_answers, self._masters)):
                    lost_since = time.monotonic()
            elif time.monotonic() - lost_since > self._seconds:
                self.is_lost = True
                with suppress(Exception):  # of the JVM, which may have gone as well
                    self._context.cancelAllJobs()

    def _has_executors(self) -> bool:
        """Beside the driver, which counts itself."""
        try:
            return bool(self._context._jsc.sc().getExecutorMemoryStatus().size() > 1)
        except Exception:  # of py4j
            return True


def _addresses(master: str) -> list[str]:
    found = _MASTERS.fullmatch(master)
    return found[1].split(",") if found else []


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _EVERY_SECONDS):
            return True
    except (OSError, ValueError, OverflowError):
        return False


def _master_lost(master: str) -> SetupError:
    return SetupError(
        "master-lost",
        master,
        f"does not answer, and for {LOST_SECONDS:.0f} s there was no executor",
        effect="runs that are in the dataset stay",
        fix="start the master and its workers, then the same command again: it goes on",
    )
