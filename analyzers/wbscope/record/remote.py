# SPDX-License-Identifier: Apache-2.0
"""Recording on another machine: a script for its shell, and a run folder of what it sends."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from wbscope.base.errors import Argument, InputError, Phrase, SetupError, UsageError
from wbscope.base.held_folder import HeldFolder
from wbscope.base.outputs import short_name
from wbscope.base.version import __version__
from wbscope.library.catalog import NOT_ASKED_FOR, Profile
from wbscope.library.library import Library
from wbscope.record import choose
from wbscope.record.backends import ELSEWHERE
from wbscope.record.choose import Instance
from wbscope.record.finish import META_SCHEMA, lost_count, lost_of, save_meta
from wbscope.record.folders import make_private, take_name, target_of
from wbscope.record.pages import Machine, Tail, head_of, write_trace
from wbscope.record.probes import BLOCKED, DROPPED, PROBES, Probes, standard_name
from wbscope.record.recorder import CUSTOM, Recording, Request
from wbscope.record.register import COMPLETE, NOT_WHOLE
from wbscope.record.settings import split_settings
from wbscope.record.what import script_text

_SCRIPT = Path(__file__).with_name("remote.sh")
_MOST_BYTES = 1 << 36
_END_SECONDS = 10.0
_SIGNALLED = 128
# Of the machine here; any other error of the system is of what the archive holds.
_OUR_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES)
_BIG_ENDIAN = 2  # e_ident[EI_DATA] of an ELF file
# As the ingester (kMaxCpus): the trace.dat has a place for each up to the last one.
_MOST_CPUS = 16384
_CPU_FILE = re.compile(r"cpu(\d{1,9})\.(?:pages|stats)", re.ASCII)
# They become paths below the formats; other systems than the kernel's own have a hyphen.
_EVENT = re.compile(r"[\w-]+:[\w-]+", re.ASCII)
_TRACE = "trace.dat"


def remote_script(
    profile: Profile | None,
    events: Sequence[str],
    command: Sequence[str],
    duration_s: float | None,
    buffer_kib: int | None,
    sync: bool,
    watched: bool = False,
    probe: bool = False,
    sysctls: Mapping[str, str] | None = None,
) -> str:
    """What a POSIX shell runs as root over there; `watched`: it ends when its stdin does."""
    choose = [] if profile is None else [f"add {shlex.join(group)}" for group in profile.events]
    choose += [f"add_all {shlex.quote(_path_pattern(event))}" for event in events]
    settings = [
        f"PROFILE={shlex.quote(profile.name if profile else 'custom')}",
        f"COMMAND={shlex.quote(json.dumps(list(command)))}",
        f"DURATION={'' if duration_s is None else f'{duration_s:g}'}",
        f"BUFFER_KIB={buffer_kib or 0}",
        f"SYNC={'1' if sync else ''}",
        f"WATCHED={'1' if watched else ''}",
        f"PROBE={'1' if probe else ''}",
        f"WAITS={'1' if probe and profile is not None and profile.has_blocked else ''}",
        f"SYSCTLS={shlex.quote(_lines_of(sysctls or {}))}",
        f"SYSCTLS_TOLD={shlex.quote(json.dumps(dict(sysctls or {})))}",
        "choose_events() {",
        *(f"  {line}" for line in choose),
        "}",
        f"workload() {{ {_as_group(command)}; }}",
    ]
    return _SCRIPT.read_text(encoding="utf-8").replace(
        "\n@settings@\n", "\n" + "\n".join(settings) + "\n" + script_text()
    )


def _lines_of(sysctls: Mapping[str, str]) -> str:
    return "\n".join(f"{name} {value}" for name, value in sysctls.items())


def _as_group(command: Sequence[str]) -> str:
    """In a process group of its own, where the machine can: then all of it can be ended."""
    if not command:
        return ":"
    words = shlex.join(command)
    return f"if command -v setsid > /dev/null; then exec setsid {words}; else exec {words}; fi"


def run_remote(host: str, script: str, archive: IO[bytes]) -> None:
    """ssh asks for a password itself; what the workload prints goes to stderr.

    The stdin of the script stays open: its end, also when this program or ssh is killed,
    ends the recording there.  Raises: SetupError with the exit code of ssh or of the script.
    """
    program = shutil.which("ssh")
    if program is None:
        remote = Phrase(Argument("remote"))
        raise SetupError("no-ssh", remote, "needs ssh", fix="apt install openssh-client")
    with subprocess.Popen(
        [program, "--", host, "sh", "-s"], stdin=subprocess.PIPE, stdout=archive
    ) as ssh:
        assert ssh.stdin is not None  # it is a pipe
        try:
            with contextlib.suppress(BrokenPipeError):
                ssh.stdin.write(os.fsencode(script))  # a command may be any bytes
                ssh.stdin.flush()
            code = ssh.wait()
        except BaseException:
            with contextlib.suppress(OSError):
                ssh.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                ssh.wait(_END_SECONDS)
            ssh.kill()
            raise
    if code:
        raise SetupError(
            "remote-failed",
            Phrase(Argument("remote", host)),
            f"the script ended with {code}",
            fix=f"ssh {shlex.quote(host)} id    # root is needed there",
        )


def unpack(archive: IO[bytes], folder: Path) -> dict[str, Any]:
    """Make the folder a run: the files beside the trace, and a trace.dat; returns facts.

    Raises: InputError when the archive is no such recording.
    """
    with tempfile.TemporaryDirectory(prefix="wbscope-", dir=folder) as made:
        work = Path(made)
        extract_files(archive, work)
        try:
            facts = dict(line.split(" ", 1) for line in _lines(work / "facts"))
            events = _lines(work / "events")
            stats = _write(work, folder / _TRACE, facts["clock"], events)
            for path in (work / "run").iterdir():
                if path.name != _TRACE:
                    path.rename(folder / path.name)
            missing = _lines(work / "missing") if (work / "missing").exists() else []
            lost = lost_of(stats.values()) if stats else None
            return _meta(facts, events, missing, folder) | {"lost": lost}
        except (OSError, KeyError, ValueError, IndexError, RecursionError, struct.error) as error:
            if isinstance(error, OSError) and error.errno in _OUR_DISK:
                raise
            raise InputError(
                "not-a-recording", "the archive", f"is none of the remote script: {error}",
                fix="wbscope record --print --duration 30s > script    # and run that there",
            ) from error  # fmt: skip


def _write(work: Path, output: Path, clock: str, events: list[str]) -> dict[int, str]:
    """trace.dat; returns what the buffers of each CPU counted."""
    for event in events:
        if not _EVENT.fullmatch(event):
            raise ValueError(f"{event!r} is no name of an event")
    instance = Instance(work / "tracefs", "")
    header_page = (work / "tracefs/events/header_page").read_text()
    commit = re.search(r"commit;.*size:(\d+)", header_page)
    if commit is None:
        raise ValueError("header_page has no commit")
    big = (work / "elf").read_bytes()[5] == _BIG_ENDIAN
    machine = Machine(">" if big else "<", int(commit[1]), work / "kallsyms")
    names = _names(work / "comms") | _names(work / "saved_cmdlines")
    stats = {_cpu_of(path): path.read_text() for path in work.glob("cpu*.stats")}
    pages = {_cpu_of(path): path for path in work.glob("cpu*.pages")}
    uname = (work / "run/uname").read_text().strip()
    tail = Tail(clock, uname, 0, names, stats)
    write_trace(output, head_of(instance, events, machine), tail, pages)
    return stats


def _cpu_of(path: Path) -> int:
    match = _CPU_FILE.fullmatch(path.name)
    if match is None or int(match[1]) >= _MOST_CPUS:
        raise ValueError(f"{path.name} is of no CPU below {_MOST_CPUS}")
    return int(match[1])


def _meta(
    facts: dict[str, str], events: list[str], missing: list[str], folder: Path
) -> dict[str, Any]:
    """As the recorder of this machine writes it, as far as the script knows it."""
    words = (folder / "uname").read_text().split()
    texts = ("clock", "profile", "command", "probe", "waits", "sysctls", "boot_id")
    numbers = {key: int(value) for key, value in facts.items() if key not in texts}
    meta: dict[str, Any] = {
        "ended": NOT_WHOLE if numbers.get("left") else COMPLETE,
        "problems": [f"{count} events were not read"] if (count := numbers.get("left")) else [],
        "profile": facts["profile"],
        "command": json.loads(facts["command"]),
        "backend": ELSEWHERE,
        "clock": facts["clock"],
        "buffer_kib_per_cpu": numbers["buffer_kib"],
        "probe": _probe(facts.get("probe"), events),
        **({"waits": _probe(facts["waits"], events, BLOCKED)} if "waits" in facts else {}),
        "events": sorted(map(standard_name, events)),
        "missing": missing,
        "sysctls_for_the_run": json.loads(facts.get("sysctls", "{}")),
        "machine": {
            "hostname": words[1],
            "kernel_release": words[2],
            "boot_id": facts.get("boot_id") or None,
        },
        "written_unix_s": numbers.get("written_unix_s"),
        "started_ts_ns": numbers["started"],
        "ended_ts_ns": numbers["ended"],
    }
    for name in ("command", "sync"):
        if f"{name}_ended" in numbers:
            began, ended = numbers[f"{name}_started"], numbers[f"{name}_ended"]
            meta |= {f"{name}_started_ts_ns": began, f"{name}_duration_ns": ended - began}
    if "waits" in meta and (missed := numbers.get("waits_missed")) is not None:
        meta["waits"]["missed"] = missed
        meta["problems"] += [f"{missed} {DROPPED}"] if missed else []
    if "exit_code" in numbers:
        # A shell tells of a signal by a number above 128, and so do programs that pass it on.
        code = numbers["exit_code"]
        number = code - _SIGNALLED if _SIGNALLED < code <= _SIGNALLED + signal.NSIG else None
        meta["command_exit_code"] = code if number is None else None
        meta["command_signal"] = number
    return meta


def _probe(told: str | None, events: list[str], names: Container[str] = PROBES) -> dict[str, Any]:
    """As probes.py of the recorder tells it, but for the reason."""
    if told is None:
        return {"kind": None, "why": NOT_ASKED_FOR}
    if told == "none":
        return {"kind": None, "why": "the kernel there takes none"}
    kind, _, arguments = told.partition(" ")
    made = tuple(e for e in events if standard_name(e) != e and standard_name(e) in names)
    return Probes(kind, arguments, made).about()


def _names(path: Path) -> dict[int, str]:
    names = {}
    for line in _lines(path) if path.exists() else []:
        tid, _, comm = line.partition(" ")
        if tid.isdigit() and comm not in ("", "<...>"):
            names[int(tid)] = comm
    return names


def extract_files(archive: IO[bytes], folder: Path) -> None:
    """What the script has packed: files and folders, with the guards of every archive.

    Raises: InputError.
    """
    # A machine that only records may have no library for zstd.
    from wbscope.source.archives import DAMAGES, Budget, unpack_tar

    budget = Budget("the archive", _MOST_BYTES, fix="record again: the script writes no such")
    try:
        unpack_tar(archive, folder, budget)
    except (OSError, *DAMAGES) as error:
        if isinstance(error, OSError) and error.errno in (*_OUR_DISK, errno.EFBIG):
            raise
        raise InputError(
            "not-a-recording", "the archive", f"is no whole tar file: {error}",
            fix="record again; the script writes it to stdout when it ends",
        ) from error  # fmt: skip


def _path_pattern(event: str) -> str:
    system, colon, name = event.partition(":")
    return f"{system}/{name if colon else '*'}"


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


_NS_PER_S = 10**9
_KEPT = ("command_duration_ns", "command_exit_code", "command_signal", "sync_duration_ns")


def script_of(request: Request, library: Library, watched: bool = False) -> str:
    """Raises: UsageError for what the script cannot do."""
    if not request.command and request.duration_ns is None:
        raise UsageError(
            "no-command",
            Phrase(Argument("remote")),
            "needs a command or a time",
            fix=Phrase(Argument("duration", "30s")),
        )
    profile = None
    if request.profile != CUSTOM:
        profile = choose.choose_profile(request.profile, library.profiles)
    seconds = None if request.duration_ns is None else request.duration_ns / _NS_PER_S
    return remote_script(
        profile,
        request.events,
        request.command,
        seconds,
        request.buffer_kib,
        request.sync,
        watched,
        profile is not None and request.probe == "auto",
        split_settings(request.sysctls),
    )


def record_remote(
    host: str, request: Request, library: Library, say: Callable[[str], None]
) -> Recording:
    """Record there, write the run here."""
    script = script_of(request, library, watched=True)
    target = target_of(request.output, request.force)
    with tempfile.TemporaryFile(dir=target.parent) as archive:
        say(f"recording on {host}")
        run_remote(host, script, archive)
        archive.seek(0)
        return _written(archive, target, request.force)


def unpack_file(path: Path, request: Request) -> Recording:
    """What the printed script wrote."""
    target = target_of(request.output, request.force)
    try:
        archive = path.open("rb")
    except OSError as error:
        raise InputError(
            "cannot-read", str(path), f"cannot be read: {error.strerror}", fix="name the tar file"
        ) from error
    with archive:
        try:
            return _written(archive, target, request.force)
        except InputError as error:
            raise error.with_path("the archive", str(path)) from error


def _written(archive: IO[bytes], target: Path, replace: bool) -> Recording:
    """Raises: InputError for what is no recording, SetupError when it cannot be written."""
    try:
        path = Path(tempfile.mkdtemp(prefix=f".{short_name(target.name)}.", dir=target.parent))
        with HeldFolder(path) as held:
            try:
                held.check_new()
                facts = unpack(archive, held.inside)
                head = {"schema": META_SCHEMA, "wbscope_version": __version__}
                save_meta(held.inside, head | facts)
                make_private(held.inside, facts["events"])
                held.check_in_place()
                run = take_name(path, target, replace)
            except BaseException:
                if held.is_in_place():  # else it is the run
                    held.remove()
                raise
    except OSError as error:
        raise SetupError(
            "cannot-write", str(target), f"cannot be written: {error.strerror or error}",
            fix=Phrase("make room on its disk, or ", Argument("output"), " on another one"),
        ) from error  # fmt: skip
    kept = {key: facts[key] for key in _KEPT if key in facts}
    return Recording(run, kept, ended=facts["ended"], lost_count=lost_count(facts))
