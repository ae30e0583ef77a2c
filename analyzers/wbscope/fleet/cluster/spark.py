# SPDX-License-Identifier: Apache-2.0
"""A Spark session for as long as a command needs it, and what is told of a cluster that fails."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wbscope.base.cache import scratch_folder
from wbscope.base.errors import Argument, Phrase, SetupError, UsageError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


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


# Attempts at one task; the local master has one unless it is told.
ATTEMPTS = 4

_MASTER = re.compile(
    r"local(\[[^\]]*\])?|local-cluster\[\d+,\d+,\d+\]|yarn|spark://.+|k8s://.+", re.DOTALL
)
_LOCAL = re.compile(r"local(?:\[(\d+|\*)\])?")
_HERE = re.compile(r"local.*|spark://(127\.0\.0\.1|localhost)[:,].*", re.DOTALL)
_SETTINGS = {
    "spark.app.name": "wbscope fleet",
    "spark.log.level": "ERROR",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.files.openCostInBytes": str(256 << 10),  # a run's files have some KB
    "spark.sql.runSQLOnFiles": "false",  # a SELECT reads the dataset's tables only
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",  # nor the environment
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.task.maxFailures": str(ATTEMPTS),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# Of a master on this machine: no port is open to others.
_SETTINGS_HERE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
}
_SECONDS_TO_END = 20


def parse_options(texts: list[str]) -> dict[str, str]:
    """Spark's settings, NAME=VALUE each.

    Raises: UsageError.
    """
    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise UsageError(
                "bad-setting",
                text,
                "is no setting of Spark, wanted spark.NAME=VALUE",
                fix="spark.executor.memory=2g",
            )
        options[name] = value
    return options


def check_spark(master: str) -> None:
    """What can be known before any work.

    Raises: UsageError for what is no master; SetupError without Java; ImportError without PySpark.
    """
    if not _MASTER.fullmatch(master):
        raise UsageError(
            "bad-master",
            master or "''",
            "is no master of Spark",
            have="local[N], spark://HOST:PORT, yarn, k8s://https://HOST:PORT",
            fix=Phrase(Argument("master", "local[*]")),
        )
    import pyspark  # noqa: F401 - one error for what is missing, this first

    _check_java()


@contextmanager
def spark_session(master: str, options: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session on this master; its JVM has ended when this is left.

    Raises: UsageError for what is no master; SetupError without Java or where Spark does not
    start, or its master and executors have gone; ImportError without PySpark; KeyboardInterrupt
    also where another error came of it.
    """
    check_spark(master)
    check_master(master)
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    settings = dict(_SETTINGS)
    if is_here := bool(_HERE.fullmatch(master)):
        settings |= _SETTINGS_HERE
    if one := _LOCAL.fullmatch(master):
        master = f"local[{one[1] or 1},{ATTEMPTS}]"
    with _quiet(), scratch_folder() as scratch, (scratch / "said").open("w+b") as said:
        settings |= {"spark.sql.warehouse.dir": str(scratch / "warehouse"), **options}
        if is_here:
            settings.setdefault("spark.local.dir", str(scratch))
        conf = SparkConf(loadDefaults=False).setMaster(master).setAll(list(settings.items()))
        gateway = context = None
        try:
            with _environment(settings, scratch if is_here else None), _own_interrupt():
                gateway = launch_gateway(conf, {"stdout": said, "stderr": said})
                context = SparkContext(gateway=gateway, conf=conf)
            with watching_master(context, master):
                yield SparkSession(context)
        except Exception as error:  # py4j's, of a JVM that said no
            if _is_interrupt(error):
                raise KeyboardInterrupt from error
            if context is not None:
                # It can be read as long as there is a JVM.
                if isinstance(error, Py4JError | PySparkException):
                    raise cluster_failed(error, "wbscope fleet") from error
                raise
            raise _no_start(master, said, error) from error
        finally:
            _end(context, gateway)


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin/java")) if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        raise SetupError(
            "no-java",
            java or "java",
            "is not there; Spark needs Java 17 or newer",
            fix="apt-get install openjdk-17-jre-headless",
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """What is wrong is told once, by the error that is raised; Ctrl-C is the command's."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            for category in (FutureWarning, RuntimeWarning):
                warnings.filterwarnings("ignore", category=category, module=r"pyspark\.")
            yield
    finally:
        logging.disable(before)


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """SparkContext puts a handler of its own in the place of ours."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def _environment(settings: Mapping[str, str], scratch: Path | None) -> Iterator[None]:
    """What Spark takes from the environment only: which Python, which address, where logs go."""
    python = settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    wanted = {"PYSPARK_PYTHON": python or sys.executable}
    if scratch is not None:
        wanted |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(scratch / "work")}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether it hides one: PySpark tidies up after Ctrl-C in the JVM, which may have gone."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        # Also where `from None` leaves the context out of a traceback.
        error = error.__cause__ or error.__context__
    return False


def _no_start(master: str, said: Any, error: Exception) -> SetupError:
    said.seek(0)
    lines = [line.strip() for line in said.read().decode("utf-8", "replace").splitlines()]
    told = [line for line in lines if "Exception" in line or "ERROR" in line] or lines
    why = str(error).splitlines()
    return SetupError(
        "spark-not-started",
        master,
        f"Spark does not start: {(told or why or ['no word of it'])[0][:300]}",
        have=" | ".join(told[1:4])[:600] or None,
        fix="try it on this machine alone: local[2]",
    )


def _end(context: Any, gateway: Any) -> None:
    """Stop the context, and the JVM with it, however the session went."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if context is not None:
        with suppress(Exception):  # a JVM that was killed cannot be asked
            context.stop()
    if gateway is None:
        return
    # Also where it could not be stopped: else no other one starts in this process.
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    with suppress(Exception):
        gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    process.stdin.close()
    try:
        process.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
