# SPDX-License-Identifier: Apache-2.0
"""The end of a recording: everything back as it was, and a run folder that is whole.

Each step can be done again, so that whoever finds a recorder dead goes through all of
them from the start.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from wbscope.errors import InputError
from wbscope.outputs import free_name
from wbscope.record.backends import HEAD, TRACE, assemble, cpu_stats, end_trace_cmd
from wbscope.record.facts import machine_facts, save_after, uname_text
from wbscope.record.pages import PageCopier
from wbscope.record.plan import Entry, Plan, dead_entries, register_folder
from wbscope.record.settings import restore
from wbscope.record.tracedat import Tail
from wbscope.record.tracefs import INSTANCE_PREFIX, Instance
from wbscope.version import __version__

__all__ = [
    "META",
    "META_SCHEMA",
    "NAMES",
    "PLAN",
    "left_behind",
    "private_folder",
    "publish",
    "recover",
    "recover_all",
    "recover_folder",
    "remove_leftovers",
    "save_meta",
    "tail_of",
    "write_meta",
]

META = "meta.json"
NAMES = ".names"
PLAN = ".plan"
META_SCHEMA = "wbscope.record/1"
# trace-cmd has its file to write when it was told to end.
_TRACE_CMD_SECONDS = 120.0
_COUNTERS = re.compile(r"^(entries|overrun|commit overrun|dropped events): (\d+)$", re.M)
_KEYS = {
    "entries": "left_count",
    "overrun": "overwritten_count",
    "commit overrun": "commit_overrun_count",
    "dropped events": "dropped_count",
}


def tail_of(plan: Plan, names: Mapping[int, str], stats: Mapping[int, str]) -> Tail:
    trace_id = int.from_bytes(plan.instance.encode()[-8:], "little")
    return Tail(plan.clock, uname_text(), trace_id, names, stats)


def write_meta(plan: Plan, ended: str, more: Mapping[str, Any], stats: Mapping[int, str]) -> None:
    """meta.json: what was recorded, how, and how it ended."""
    lost = dict.fromkeys(_KEYS.values(), 0)
    for text in stats.values():
        for name, count in _COUNTERS.findall(text):
            lost[_KEYS[name]] += int(count)
    lost.pop("left_count")
    content = {
        "schema": META_SCHEMA,
        "wbscope_version": __version__,
        "ended": ended,
        "profile": plan.profile,
        "backend": plan.backend,
        "clock": plan.clock,
        "buffer_kib_per_cpu": plan.buffer_kib,
        "sample_interval_s": plan.interval_s,
        "command": list(plan.command),
        "sysctls_for_the_run": plan.settings,
        "events": list(plan.events),
        "lost": lost if stats else None,
        "machine": machine_facts(),
        **plan.about,
        **more,
    }
    save_meta(Path(plan.folder), content)


def save_meta(folder: Path, content: Mapping[str, Any]) -> None:
    """There whole or not at all."""
    path = folder / META
    part = path.with_name(f".{META}.part")
    part.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    os.replace(part, path)


def publish(plan: Plan) -> Path:
    """The private folder gets its name: that of the user, or a free one beside it."""
    folder, target = Path(plan.folder), Path(plan.target)
    if not folder.exists():
        return target
    for path in folder.glob(".*"):
        path.unlink()
    if target.is_dir() and not any(target.iterdir()):
        target.rmdir()
    if os.path.lexists(target):
        if plan.force:
            old = folder.with_name(f"{folder.name}.old")
            target.rename(old)
            folder.rename(target)
            shutil.rmtree(old, ignore_errors=True)
            return target
        target = free_name(target)
    folder.rename(target)
    return target


def recover(
    entry: Entry,
    *,
    ended: str = "recorder killed",
    now: bool = False,
    drop: bool = False,
    let_go: Callable[[], None] = lambda: None,
) -> Path | None:
    """Put everything back after a recorder that was killed; the run that is left, if any.

    `now`: it was killed a moment ago, so the counters of /proc are still those of the run.
    `drop`: nothing was recorded.  `let_go` is called when the instance is not read any more.
    """
    read = entry.read()
    if read is None:
        entry.remove()
        return None
    plan, saved = read
    folder = Path(plan.folder)
    instance = Instance(Path(plan.tracefs), plan.instance)
    if instance.exists():
        instance.stop()
    restore(saved)
    if plan.backend == "trace-cmd":
        end_trace_cmd(plan.instance, _TRACE_CMD_SECONDS)
    stats = cpu_stats(instance)
    run = None
    if drop:
        shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        run = _recover_folder(plan, folder, instance, stats, ended, now)
    let_go()
    instance.remove()
    entry.remove()
    return run


def recover_all(tracefs: Path | None) -> list[str]:
    """Recover every dead recording; returns what was done, a line each."""
    done = []
    for entry in dead_entries():
        name = entry.path.stem
        run = recover(entry)
        done.append(
            f"{name}: tracing stopped, instance removed" + (f"; run in {run}" if run else "")
        )
    for instance in _orphans(tracefs):
        instance.stop()
        instance.remove()
        done.append(f"{instance.name}: tracing stopped, instance removed")
    return done


def left_behind(tracefs: Path) -> list[str]:
    """Names of the instances of recorders that were killed."""
    names = {instance.name for instance in _orphans(tracefs)}
    for entry in dead_entries():
        names.add(entry.path.stem)
        entry.close()
    return sorted(names)


def _orphans(tracefs: Path | None) -> list[Instance]:
    """Without an entry: their register was on a file system that is gone."""
    known = {entry.stem for entry in _live_entries()}
    paths = [] if tracefs is None else (tracefs / "instances").glob(f"{INSTANCE_PREFIX}*")
    return [
        Instance(path.parent.parent, path.name)
        for path in paths
        if path.name not in known and not _is_maker_alive(path.name)
    ]


def recover_folder(folder: Path) -> Path:
    """A run of a private folder that was left: its disk was full, or its register is gone.

    Raises: InputError when it is none; OSError when it still cannot be written.
    """
    try:
        plan = Plan.from_json((folder / PLAN).read_text())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            "not-a-recording",
            str(folder),
            "is no folder of a recording that was cut short",
            fix="wbscope record --recover    # finds those that it can",
        ) from error
    plan = replace(plan, folder=str(folder.absolute()))
    instance = Instance(Path(plan.tracefs), plan.instance)
    run = _recover_folder(plan, folder, instance, {}, "recorder failed", False)
    if run is None:
        raise InputError("not-a-recording", str(folder), "has no pages of a trace")
    return run


def private_folder(target: Path, instance: str) -> Path:
    """Where a run is until it is whole."""
    return target.with_name(f".{target.name}.{instance}")


def remove_leftovers(target: Path) -> None:
    """Folders of recorders that were killed before they recorded anything."""
    known = {entry.stem for entry in _live_entries()}
    for folder in target.parent.glob(f".{glob.escape(target.name)}.{INSTANCE_PREFIX}*"):
        instance = folder.name.removeprefix(f".{target.name}.")
        if not (folder / HEAD).exists() and instance not in known and not _is_maker_alive(instance):
            shutil.rmtree(folder, ignore_errors=True)


def _recover_folder(
    plan: Plan,
    folder: Path,
    instance: Instance,
    stats: Mapping[int, str],
    ended: str,
    now: bool,
) -> Path | None:
    if not (folder / HEAD).exists() and not (folder / TRACE).exists():
        shutil.rmtree(folder, ignore_errors=True)  # killed before anything was recorded
        return None
    if now:
        save_after(folder)
    if not (folder / TRACE).exists() or plan.copied_pages():
        if instance.exists():
            copier = PageCopier(instance, plan.pages_of)
            copier.finish()
        names = {}
        with contextlib.suppress(OSError, ValueError):
            names = {int(k): v for k, v in json.loads((folder / NAMES).read_text()).items()}
        assemble(plan, tail_of(plan, names, stats))
    else:
        assemble(plan, tail_of(plan, {}, stats))  # only the copies are removed
    if not (folder / META).exists():
        write_meta(plan, ended, {"recovered_unix_s": round(time.time(), 3)}, stats)
    return publish(plan)


def _live_entries() -> list[Path]:
    return list(register_folder().glob("*.json"))


def _is_maker_alive(instance: str) -> bool:
    """The pid is a part of the name."""
    pid = instance.removeprefix(INSTANCE_PREFIX).partition("-")[0]
    return pid.isdigit() and Path(f"/proc/{pid}").exists()
