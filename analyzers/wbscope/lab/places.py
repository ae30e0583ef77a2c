# SPDX-License-Identifier: Apache-2.0
"""Where a run is made: in a guest, on this machine, on a host that ssh reaches."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wbscope.base.errors import InputError, SetupError
from wbscope.base.result import Notice
from wbscope.lab.guest import boot, require
from wbscope.lab.kernels import Image, Setup, call, find_image, last_line
from wbscope.library.library import Library
from wbscope.record.recorder import Recording, Request
from wbscope.record.recorder import record as record_here
from wbscope.record.remote import record_remote, script_of, unpack_file

_SAID_LINES = 3
_REACH_SECONDS = 10
_MAKE_TEMPORARY = """\
d=$(mktemp -d "${TMPDIR:-/tmp}/wbscope-lab.XXXXXX") && mkdir "$d/out" "$d/lab" && echo "$d"
"""
# What mktemp makes; nothing else is ever removed.
_TEMPORARY = re.compile(r"/\S*/wbscope-lab\.[A-Za-z0-9]{6}")
_LOCAL_SHELL = Path(__file__).with_name("workload.sh")


@dataclass(eq=False)
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
        self._checked: set[object] = set()

    def check(self, setup: Setup) -> None:
        """Whatever can be known to be missing, before the first run; kernels are fetched.

        Raises: SetupError, InputError, UsageError.
        """
        kinds = tuple(disk.filesystem for disk in setup.disks)
        key = (setup.kernel, kinds, setup.programs, setup.modules, setup.profile, setup.events,
               setup.data)  # fmt: skip
        if key in self._checked:
            return
        if setup.kernel.is_guest:
            require(setup, self._image(setup.kernel))
        else:
            _require_outside(setup)
        script_of(_request(setup, None, ("true",)), self._library)
        self._checked.add(key)

    def make(self, setup: Setup, work: Path, limit_s: float, boots: int) -> Path:
        """A run folder in `work`.

        Raises: Failure for a run that failed; OSError where the disk is full.
        """
        if not setup.kernel.is_guest:
            return self._outside(setup, work)
        image = self._image(setup.kernel)
        for number in range(1, boots + 1):
            folder = work / f"boot-{number}"
            folder.mkdir()
            try:
                return self._booted(setup, image, folder, limit_s)
            except SetupError as error:
                raise Failure(f"{error.subject}: {error.message}", {}) from error
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
                _shell(host, "prepare", f"{shell}{setup.prepare}\n")
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
        profile=setup.profile,
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


def _require_outside(setup: Setup) -> None:
    """Raises: SetupError where the host cannot be reached, or the workload cannot write."""
    host = setup.kernel.ssh
    try:
        _shell(
            host, "ssh" if host else "here", f"cd {shlex.quote(setup.data or '/')} && test -w .\n"
        )
    except Failure as failure:
        raise SetupError(
            "no-place",
            f"data = {setup.data!r}",
            f"cannot be written on {setup.kernel}: {failure.why}",
            fix='data = "/mnt/test"    # in the matrix: a folder that is there',
        ) from failure


@contextmanager
def _folder_there(host: str | None) -> Iterator[str]:
    """A new folder with out and lab in it, on this machine or the host; gone afterwards."""
    there = _shell(host, "a temporary folder", _MAKE_TEMPORARY).strip()
    if _TEMPORARY.fullmatch(there) is None:
        raise Failure(f"mktemp on {host or 'this machine'} answered {there!r}, no new folder", {})
    try:
        yield there
    finally:
        with suppress(Failure, SetupError):
            _shell(host, "cleaning up", f"rm -rf {shlex.quote(there)}\n")


def _shell(host: str | None, stage: str, text: str) -> str:
    """Raises: Failure with what it said, SetupError where there is no ssh."""
    command, package = (("sh", "-s"), "dash") if host is None else (_ssh(host), "openssh-client")
    done = call(command, package, given=os.fsencode(text))
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        raise Failure(f"{stage}: ended with {done.returncode}{_last_lines(said)}", {"said": said})
    return done.stdout.decode(errors="replace")


def _ssh(host: str) -> tuple[str, ...]:
    return ("ssh", "-o", f"ConnectTimeout={_REACH_SECONDS}", "--", host, "sh", "-s")


def _put_files(host: str | None, setup: Setup, there: str) -> None:
    for name in setup.files:
        if host is None:
            shutil.copy(name, there)
            continue
        done = call(("scp", "-q", name, f"{host}:{there}/"), "openssh-client")
        if done.returncode:
            raise Failure(f"files: {name}: scp to {host}: {last_line(done.stderr)}", {})


def _fetch(host: str | None, there: str, run: Path) -> None:
    if host is None:
        _move(Path(there), run)
        return
    with tempfile.TemporaryDirectory(dir=run.parent) as got:
        done = call(("scp", "-qr", f"{host}:{there}", got), "openssh-client")
        if done.returncode:
            raise Failure(f"$OUT: scp from {host}: {last_line(done.stderr)}", {})
        _move(Path(got) / "out", run)
