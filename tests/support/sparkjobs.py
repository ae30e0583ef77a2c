# SPDX-License-Identifier: Apache-2.0
"""Commands on Spark: jobs that wait where a test wants them, and many on one session."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from wbscope.ingest.program import find_ingester

from .cli import Wbscope
from .spark import Cluster
from .tools import wbscope_path
from .waits import GUARD_SECONDS, wait_until

__all__ = ["Held", "OneSession", "counts", "holding", "in_process", "one_session", "start", "told"]

# The ingester, which waits where it is told to; the first one says who it is.
_HELD = """#!/bin/sh
if mkdir {folder}/first 2> /dev/null; then
  echo $$ > {folder}/number && mv {folder}/number {folder}/pid
  while [ ! -e {folder}/go ]; do sleep 0.1; done
fi
exec {ingester} "$@"
"""


@dataclass
class Held:
    """A job whose first ingester waits until `go()`."""

    folder: Path

    def words(self) -> list[str]:
        return ["--conf", f"spark.executorEnv.WBSCOPE_INGEST={self.folder}/ingester"]

    def pid(self) -> int:
        wait_until((self.folder / "pid").exists, "the first ingester")
        return int((self.folder / "pid").read_text())

    def go(self) -> None:
        (self.folder / "go").touch()


@contextmanager
def holding(folder: Path) -> Iterator[Held]:
    """For one job; nothing waits any more when this is left."""
    folder.mkdir()
    program = folder / "ingester"
    program.write_text(_HELD.format(folder=folder, ingester=find_ingester()))
    program.chmod(0o755)
    job = Held(folder)
    try:
        yield job
    finally:
        job.go()


def start(wbscope: Wbscope, *words: str | Path, is_apart: bool = False) -> subprocess.Popen[str]:
    """`fleet ingest`; `is_apart`: in a group of processes of its own, for a signal to all."""
    command = [wbscope_path(), "fleet", "ingest", *words, "--json"]
    return subprocess.Popen(
        command,
        env=wbscope.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=is_apart,
    )


def told(job: subprocess.Popen[str]) -> dict[str, int]:
    """What it counted, when it has ended."""
    out, said = job.communicate(timeout=GUARD_SECONDS)
    return counts(out, job.returncode, said)


def counts(out: str, code: int, said: str) -> dict[str, int]:
    """Of the document of `fleet ingest`; its exit code says whether runs were refused."""
    assert code in (0, 4), said
    document = json.loads(out)
    assert code == (4 if document["failed_count"] else 0), said
    return {what: document[f"{what}_count"] for what in ("added", "known", "failed")}


def in_process(
    words: Sequence[str | Path], env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """A whole command in this process, which a test may have changed."""
    from wbscope.cli.main import main

    arguments = [str(word) for word in words]
    out, err = io.StringIO(), io.StringIO()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            for name, value in env.items():
                patch.setenv(name, value)
            code = main(arguments)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


@dataclass
class OneSession:
    """Whole commands in this process; only the start of Spark, 8 s each, is shared by them."""

    words: list[str]  # what a command needs to run there
    env: dict[str, str]

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """As Wbscope.run(), with `words` that have no master."""
        return in_process([*words, *self.words], self.env)

    def ingest(self, *words: str | Path) -> dict[str, int]:
        """Its counts."""
        done = self.run("fleet", "ingest", *words, "--json")
        return counts(done.stdout, done.returncode, done.stderr)

    def document(self, *words: str | Path) -> dict[str, Any]:
        """The JSON of a command that succeeds."""
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document


@contextmanager
def one_session(wbscope: Wbscope, cluster: Cluster, *settings: str) -> Iterator[OneSession]:
    """On a cluster, with more `settings`."""
    import wbscope.fleet.cluster.spark as module

    real = module.spark_session
    conf = module.parse_options([*cluster.settings, *settings])
    with real(cluster.url, conf) as session:

        @contextmanager
        def shared(_master: str, _options: Any) -> Iterator[Any]:
            yield session.newSession()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "spark_session", shared)
            yield OneSession(["--master", cluster.url], dict(wbscope.env))
