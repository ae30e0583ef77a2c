# SPDX-License-Identifier: Apache-2.0
"""The folder of a run: refused early, private until it is whole, and how it gets its name."""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import re
import shlex
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wbscope.base.errors import Argument, Phrase, SetupError, UsageError
from wbscope.base.held_folder import RECORDED_NAMES, HeldFolder, remove_own
from wbscope.base.outputs import (
    belongs_to_us,
    check_parent,
    foreign_in,
    free_name,
    give_to_caller,
    remove_ours,
    short_name,
)
from wbscope.base.system import absolute
from wbscope.record.backends import ELSEWHERE, HEAD, TRACE
from wbscope.record.choose import INSTANCE_PREFIX, is_orphan
from wbscope.record.register import Plan, registered
from wbscope.record.workload import FIO_JSON, fio_results

META = "meta.json"
PLAN = ".plan"
_OF_RECORD = "wbscope.record/"
_MOST_META = 16 << 20
_MOST_NAMED = 8
# An older run, from when it has lost its name until the new one has it.
_ASIDE = ".old"
# What is in a folder before anything is recorded.
_OF_A_START = {PLAN, f"{PLAN}.part", ".recorder.log"}
# From Linux 6.19 on these events have bytes of the traced programs.
_OF_PROGRAMS = "syscalls:"
_PRIVATE = re.compile(rf"\..+\.({INSTANCE_PREFIX}[^.]+)((?:{re.escape(_ASIDE)})?)")
# Somebody has made something of that name meanwhile, or has mounted on it.
_TAKEN = (errno.EBUSY, errno.EEXIST, errno.ENOTDIR, errno.ENOTEMPTY)
_TRIES = 100


def target_of(output: Path | None, force: bool) -> Path:
    """Where the run will be; an older one is replaced only if it is one, and at the end.

    Raises: UsageError for a name that a folder cannot be given by rename(2).
    """
    path = output or Path(time.strftime("run-%Y%m%d-%H%M%S"))
    target = absolute(path)
    shown = str(path)
    check_parent(path)
    if target.is_symlink():
        other = Phrase(Argument("output", os.path.realpath(target)))
        raise UsageError("output-exists", shown, "is a symbolic link", fix=other)
    if os.path.ismount(target):
        raise UsageError(
            "output-exists", shown, "is a mount point, which a run cannot replace",
            fix=Phrase(Argument("output", path / "run")),
        )  # fmt: skip
    if _is_free(target):
        return target
    other = Phrase(Argument("output", free_name(path)))
    if not _is_run(target):
        raise UsageError("output-exists", shown, "exists and is no run folder", fix=other)
    if foreign := _foreign_in(target):
        raise UsageError(
            "output-exists",
            shown,
            f"is a run with other files in it ({len(foreign)}), wanted only those of the recording",
            have=", ".join(foreign[:_MOST_NAMED]),
            effect="they would be lost",
            fix=other,
        )
    if not force:
        raise UsageError(
            "output-exists",
            shown,
            "is a run already",
            fix=Phrase(
                "add ",
                Argument("force", True),
                " to replace it, or ",
                *other.parts,
            ),
        )
    return target


def is_replaceable(target: Path) -> bool:
    """An older run and nothing else, or a name that nothing has: what is anything else stays."""
    if _is_free(target):
        return True
    return not target.is_symlink() and _is_run(target) and not _foreign_in(target)


def _is_run(target: Path) -> bool:
    """Whether record made it: other programs have a file of that name, too."""
    return str(_meta_of(target).get("schema")).startswith(_OF_RECORD)


def _meta_of(run: Path) -> dict[str, Any]:
    """Nothing of one that has none."""
    try:
        with (run / META).open(encoding="utf-8", errors="replace") as file:
            meta = json.loads(file.read(_MOST_META))
    except (OSError, ValueError, RecursionError):
        return {}
    return meta if isinstance(meta, dict) else {}


def _is_ours(path: Path) -> bool:
    """Whether record wrote this file of a run; of fio.json it does so for some commands only."""
    if path.name != FIO_JSON:
        return path.name in RECORDED_NAMES or path.name in (TRACE, PLAN)
    meta = _meta_of(path.parent)
    command = meta.get("command")
    if meta.get("backend") == ELSEWHERE or not isinstance(command, list):
        return False
    results = fio_results([str(word) for word in command], path.parent, path.parent)
    return results is not None and results.problem is None


def _foreign_in(run: Path) -> list[str]:
    """What it has besides the files of a recording.  Raises: SetupError."""
    try:
        return foreign_in(run, _is_ours)
    except OSError as error:
        raise SetupError(
            "cannot-read", str(run), f"cannot be read: {error.strerror or error}",
            fix=f"ls -ld {shlex.quote(str(run))}",
        ) from error  # fmt: skip


def _is_free(target: Path) -> bool:
    """Not there, or an empty folder."""
    if target.is_symlink() or not target.is_dir():
        return not os.path.lexists(target)
    return not any(target.iterdir())


def private_folder(target: Path, instance: str) -> Path:
    """Where a run is until it is whole."""
    return target.with_name(f".{short_name(target.name)}.{instance}")


def holds_recording(folder: Path) -> bool:
    """A run, or the pages of one."""
    return any((folder / name).exists() for name in (HEAD, TRACE, META))


def make_private(folder: Path, events: Iterable[str]) -> None:
    """What system calls write, or are given, is for its owner; other runs are for everybody."""
    private = any(event.startswith(_OF_PROGRAMS) for event in events)
    mask = os.umask(0o077)
    os.umask(mask)
    folder.chmod(0o700 if private else 0o755 & ~mask)
    if private:
        (folder / TRACE).chmod(0o600)


def publish(plan: Plan, held: HeldFolder) -> Path:
    """The private folder, which is whole, gets its name: that of the user, or one beside it.

    It belongs to whoever called sudo, once it has its name: until then nobody else can write to
    it.  The plan goes last: a folder that has it can be published by whoever finds it.

    Raises: OSError, also where the folder has been put away.
    """
    make_private(held.inside, plan.events)
    for name in held.names():
        if name.startswith(".") and name != PLAN:
            held.unlink(name)
    held.check_in_place()
    run = take_name(held.path, Path(plan.target), plan.force)
    _finish(held)
    return run


def _finish(held: HeldFolder) -> None:
    """What is left to do of a run that has its name."""
    with contextlib.suppress(OSError):  # a file system without owners: the run matters more
        give_to_caller(held)
    held.unlink(PLAN)


def published(plan: Plan) -> Path | None:
    """The run of a recorder that was killed when it had its name; what is left to do is done."""
    target = Path(plan.target)
    names = f"{glob.escape(target.stem)}*{glob.escape(target.suffix)}"
    for path in target.parent.glob(f"{names}/{PLAN}"):
        with (
            contextlib.suppress(OSError, ValueError, KeyError, TypeError),
            HeldFolder(path.parent) as held,
        ):
            # Names of instances can be seen beside the run.
            is_ours = belongs_to_us(held)
            if is_ours and Plan.from_json(held.read_text(PLAN)).instance == plan.instance:
                _remove_run(_aside(Path(plan.folder)))
                _finish(held)
                return path.parent
    return None


def take_name(folder: Path, target: Path, replace: bool) -> Path:
    """Rename a whole folder; returns the name that it has: one beside it where it is taken.

    An older run that it replaces is put aside, and goes when the new one has the name: one that
    somebody has put a file into meanwhile is kept.
    """
    if folder == target:
        return target
    aside = _aside(folder)
    try:
        if replace and not _is_free(target) and is_replaceable(target):
            with contextlib.suppress(OSError):  # it cannot be moved: both are kept
                target.rename(aside)
        run = _renamed(folder, target)
    except BaseException:
        if aside.exists() and not os.path.lexists(target):
            aside.rename(target)
        raise
    _remove_run(aside)
    return run


def _remove_run(aside: Path) -> None:
    """The one that was replaced; one that got another file at the last moment stays as it is."""
    with contextlib.suppress(OSError):
        if not foreign_in(aside, _is_ours):
            remove_ours(aside, _is_ours)


def _renamed(folder: Path, target: Path) -> Path:
    for _ in range(_TRIES):
        if not _is_free(target):
            target = free_name(target)
        try:
            return folder.rename(target)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            target = free_name(target)
    return folder.rename(target)


def _aside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{_ASIDE}")


def remove_leftovers(target: Path) -> None:
    """Folders of recorders that were killed before they recorded anything."""
    known = registered()
    start = f".{short_name(target.name)}."
    for folder in target.parent.glob(f"{glob.escape(start)}{INSTANCE_PREFIX}*"):
        instance = folder.name.removeprefix(start)
        if instance not in known and is_orphan(instance) and not holds_recording(folder):
            remove_own(folder)


def remove_unused(place: Path) -> list[str]:
    """Every such folder in a folder, whatever run it was for, and what others are for.

    Returns a line for each.
    """
    known = registered()
    done = []
    for folder in sorted(place.glob(f".*.{INSTANCE_PREFIX}*")):
        name = _PRIVATE.fullmatch(folder.name)
        if name is None or name[1] in known or not is_orphan(name[1]):
            continue
        if why := _foreign(folder):
            done.append(f"{folder.name}: {why}: left alone")
        elif name[2]:
            done.append(f"{folder.name}: a run that was to be replaced; kept")
        elif holds_recording(folder):
            command = f"wbscope record --recover {shlex.quote(folder.name)}"
            done.append(f"{folder.name}: a recording; to make a run of it: {command}")
        elif {path.name for path in folder.iterdir()} <= _OF_A_START:
            remove_own(folder)
            done.append(f"{folder.name}: removed, nothing had been recorded")
    return done


def _foreign(folder: Path) -> str | None:
    """Why it may be somebody else's work; None when it is not."""
    try:
        with HeldFolder(folder) as held:
            held.check_closed()
    except OSError as error:
        return error.strerror or str(error)
    return None
