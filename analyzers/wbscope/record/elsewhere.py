# SPDX-License-Identifier: Apache-2.0
"""A run of another machine: over ssh, or from a file that the script wrote there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import InputError, SetupError, UsageError
from wbscope.base.heldfolder import HeldFolder
from wbscope.base.outputs import short_name
from wbscope.base.version import __version__
from wbscope.library.library import Library
from wbscope.record import choose
from wbscope.record.finish import META_SCHEMA, lost_count, save_meta
from wbscope.record.folders import make_private, take_name, target_of
from wbscope.record.remote import remote_script, run_remote, unpack
from wbscope.record.request import CUSTOM, Recording, Request
from wbscope.record.settings import split_settings

__all__ = ["record_remote", "script_of", "unpack_file"]

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
