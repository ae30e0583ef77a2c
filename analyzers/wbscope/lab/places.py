# SPDX-License-Identifier: Apache-2.0
"""Where a run is made: in a guest, on this machine, on a host that ssh reaches."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wbscope.base.errors import InputError, SetupError, WbscopeError
from wbscope.base.result import Notice
from wbscope.lab.guest import boot
from wbscope.lab.kernels import Image, find_image
from wbscope.lab.setup import Kernel, Setup
from wbscope.library.library import Library
from wbscope.record.elsewhere import record_remote, script_of, unpack_file
from wbscope.record.recorder import record as record_here
from wbscope.record.request import Recording, Request

__all__ = ["Failure", "Places"]

_SAID_LINES = 3
_LOCAL_SHELL = Path(__file__).with_name("workload.sh")


@dataclass
class Failure(Exception):
    """A run that is none: why, and texts that may tell more, by file name.

    again  another boot may do better: the guest did not come to an end
    """

    why: str
    left: dict[str, str]
    again: bool = False


class Places:
    """Makes runs; `say` is told what takes long."""

    def __init__(self, library: Library, say: Callable[[str], None]) -> None:
        self._library = library
        self._say = say
        self._image = cache(lambda kernel: find_image(kernel, say))
        self._warned: set[str] = set()

    def check(self, kernel: Kernel) -> None:
        """Fetch what is missing, before anything is made.

        Raises: SetupError, InputError.
        """
        if kernel.is_guest:
            self._image(kernel)

    def make(self, setup: Setup, work: Path, limit_s: float, boots: int) -> Path:
        """A run folder in `work`.

        Raises: Failure for a run that failed; SetupError for a machine that can make none.
        """
        if not setup.kernel.is_guest:
            return self._outside(setup, work)
        image = self._image(setup.kernel)
        for number in range(1, boots + 1):
            folder = work / f"boot-{number}"
            folder.mkdir()
            try:
                return self._booted(setup, image, folder, limit_s)
            except Failure as failure:
                if not failure.again or number == boots:
                    raise
                shutil.rmtree(folder)
        raise AssertionError("a matrix boots at least once")

    def _booted(self, setup: Setup, image: Image, work: Path, limit_s: float) -> Path:
        request = _request(setup, None, ("sh", "/lab/workload"))
        script = script_of(request, self._library)
        beside = work / "out"
        beside.mkdir()
        ended = boot(setup, image, script, work, beside, limit_s)
        left = {"console": ended.console, "said": ended.said}
        if ended.stage != "done":
            where = f"{ended.stage}: " if ended.stage else ""
            told = _last_lines(ended.said) if ended.stage else ""
            raise Failure(f"{where}{ended.why}{told}", left, again=ended.stage is None)
        run = work / "run"
        try:
            recording = unpack_file(ended.recording, _request(setup, run, ()))
        except InputError as error:
            raise Failure(f"record: {error.message}{_last_lines(ended.said)}", left) from error
        _check(recording, ended.said, left)
        _move(beside, run)
        (run / "said.txt").write_text(ended.said)
        return run

    def _outside(self, setup: Setup, work: Path) -> Path:
        """With the same shell text; what the workload says is shown as it comes."""
        run = work / "run"
        host = setup.kernel.ssh
        with _folder_there(host) as there:
            names = {"DATA": setup.data or "", "OUT": f"{there}/out", "LAB": f"{there}/lab"}
            text = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in names.items())
            shell = text + _LOCAL_SHELL.read_text(encoding="utf-8")
            _put_files(host, setup, f"{there}/lab")
            if setup.prepare:
                _shell(host, f"{shell}{setup.prepare}\n")
            request = _request(setup, run, ("sh", "-c", f"{shell}{setup.workload}\n"))
            try:
                if host is not None:
                    recording = record_remote(host, request, self._library, self._say)
                else:
                    recording = record_here(
                        request, self._library, self._warn, lambda _: None, show=self._say
                    )
            except SetupError as error:
                raise Failure(f"record: {error.subject}: {error.message}", {}) from error
            if recording.interrupted:
                raise KeyboardInterrupt
            _check(recording, "", {})
            _fetch(host, f"{there}/out", run)
        return run

    def _warn(self, notice: Notice) -> None:
        """Once, not for each run."""
        if notice.message not in self._warned:
            self._warned.add(notice.message)
            self._say(str(notice.message))


def _request(setup: Setup, output: Path | None, command: tuple[str, ...]) -> Request:
    """In a guest the sysctls are set before anything is prepared."""
    outside = not setup.kernel.is_guest
    return Request(
        profile="custom" if setup.profile == "custom" else setup.profile,
        events=setup.events,
        output=output,
        command=command,
        sync=setup.sync,
        buffer_kib=setup.buffer_kib,
        sysctls=tuple(f"{key}={value}" for key, value in setup.sysctls.items()) if outside else (),
    )


def _check(recording: Recording, said: str, left: dict[str, str]) -> None:
    """A workload that failed is a run that failed."""
    if code := recording.facts.get("command_exit_code"):
        raise Failure(f"the workload exited with {code}{_last_lines(said)}", left)
    if number := recording.facts.get("command_signal"):
        raise Failure(f"the workload was ended by signal {number}{_last_lines(said)}", left)
    if recording.ended != "complete":
        raise Failure(f"the recording is not whole: {recording.ended}", left)


def _last_lines(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()][-_SAID_LINES:]
    return f": {' | '.join(lines)}" if lines else ""


def _move(beside: Path, run: Path) -> None:
    """What the trace has already stays."""
    for path in sorted(beside.iterdir()):
        if not (run / path.name).exists():
            shutil.move(path, run / path.name)


@contextmanager
def _folder_there(host: str | None) -> Iterator[str]:
    """A new folder with out and lab in it, on this machine or the host; gone afterwards."""
    make = "d=$(mktemp -d) && mkdir $d/out $d/lab && echo $d"
    there = _shell(host, make).strip()
    if not there.startswith("/"):
        raise SetupError("no-folder", host or "this machine", "makes no temporary folder",
                         fix="make room in /tmp there")  # fmt: skip
    try:
        yield there
    finally:
        with suppress(WbscopeError):
            _shell(host, f"rm -rf {shlex.quote(there)}")


def _shell(host: str | None, text: str) -> str:
    """Raises: Failure with what it said."""
    command = ["sh", "-s"] if host is None else ["ssh", "--", host, "sh", "-s"]
    done = subprocess.run(command, input=os.fsencode(text), capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        raise Failure(f"prepare: ended with {done.returncode}{_last_lines(said)}", {"said": said})
    return done.stdout.decode(errors="replace")


def _put_files(host: str | None, setup: Setup, there: str) -> None:
    for name in setup.files:
        command = ["cp", name, there] if host is None else ["scp", "-q", name, f"{host}:{there}/"]
        if subprocess.run(command, check=False).returncode:
            raise Failure(f"files: {name} cannot be copied to {host or there}", {})


def _fetch(host: str | None, there: str, run: Path) -> None:
    with tempfile.TemporaryDirectory(dir=run.parent) as got:
        if host is None:
            _move(Path(there), run)
            return
        command = ["scp", "-qr", f"{host}:{there}", got]
        if subprocess.run(command, check=False).returncode:
            raise Failure(f"what the workload wrote cannot be copied from {host}", {})
        _move(Path(got) / "out", run)
