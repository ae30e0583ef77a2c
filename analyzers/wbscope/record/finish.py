# SPDX-License-Identifier: Apache-2.0
"""The end of a recording: everything back as it was, and a run folder that is whole.

Each step can be done again, so that whoever finds a recorder dead goes through all of
them from the start.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wbscope.base.errors import InputError, SetupError
from wbscope.base.held_folder import HeldFolder, remove_own
from wbscope.base.system import absolute
from wbscope.base.version import __version__
from wbscope.record.backends import TRACE, assemble, cpu_stats, end_trace_cmd, left_text
from wbscope.record.choose import INSTANCE_PREFIX, Instance, is_orphan, mounted_tracefs, pauses_name
from wbscope.record.folders import (
    META,
    PLAN,
    holds_recording,
    is_replaceable,
    private_folder,
    publish,
    published,
)
from wbscope.record.machine import machine_facts, save_after, uname_text
from wbscope.record.pages import PageCopier, Tail
from wbscope.record.probes import missed_facts, orphan_probes, remove_probes, standard_name
from wbscope.record.register import Entry, Plan, cut_zeros, dead_entries, registered, save
from wbscope.record.series import CLOCK_IDS, remove_pauses
from wbscope.record.settings import PROC_SYS, restore, still_ours
from wbscope.record.tasks import FILE as TASK_IO
from wbscope.record.tasks import add_living, add_names, ended_task_names, read_names, task_names

_STARTED = ".started"
META_SCHEMA = "wbscope.record/1"
# trace-cmd has its file to write when it was told to end.
_TRACE_CMD_SECONDS = 120.0
_ORPHAN_SECONDS = 1.0
_COUNTERS = re.compile(r"^(overrun|commit overrun|dropped events): (\d+)$", re.M)
_KEYS = {
    "overrun": "overwritten_count",
    "commit overrun": "commit_overrun_count",
    "dropped events": "dropped_count",
}


@dataclass(frozen=True)
class Recovered:
    """What was put back after a recorder that was killed."""

    instance: str
    run: Path | None = None
    removed: bool = True
    put_back: tuple[str, ...] = ()  # NAME = VALUE
    left: tuple[str, ...] = ()  # sysctls that somebody has set since, or that refuse their value
    folder: Path | None = None  # that has what was recorded, but could not be made a run
    reason: str = ""  # why not
    probes_left: tuple[str, ...] = ()
    pids_left: tuple[int, ...] = ()  # of trace-cmd, which no signal ended

    def __str__(self) -> str:
        parts = ["tracing stopped"]
        parts.append("instance removed" if self.removed else "instance in use, not removed")
        parts += [f"probe {name} in use, not removed" for name in self.probes_left]
        if self.pids_left:
            parts.append(left_text(self.pids_left))
        parts += [f"{setting} put back" for setting in self.put_back]
        parts += [f"{name} left as it was set since" for name in self.left]
        told = f"{self.instance}: {', '.join(parts)}"
        if self.folder is not None:
            return f"{told}; {self.folder} is no run yet: {self.reason}; {self._remedy()}"
        return told if self.run is None else f"{told}; run in {self.run}"

    def error(self) -> SetupError:
        """When there is no run."""
        if self.folder is None:
            return SetupError(
                "recorder-died", "the recorder", "was killed, and left nothing to read",
                fix="wbscope doctor",
            )  # fmt: skip
        folder = str(self.folder)
        return SetupError("record-failed", folder, self.reason, have=folder, fix=self._remedy())

    def _remedy(self) -> str:
        return f"make room, then: wbscope record --recover {shlex.quote(str(self.folder))}"


def tail_of(plan: Plan, names: Mapping[int, str], stats: Mapping[int, str]) -> Tail:
    trace_id = int.from_bytes(plan.instance.encode()[-8:], "little")
    return Tail(plan.clock, uname_text(), trace_id, names, stats)


def write_meta(plan: Plan, ended: str, more: Mapping[str, Any], stats: Mapping[int, str]) -> None:
    """meta.json: what was recorded, how, and how it ended."""
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
        "events": sorted(map(standard_name, plan.events)),
        "lost": lost_of(stats.values()) if stats else None,
        "machine": machine_facts(),
        "written_unix_s": int(time.time()),
        **plan.about,
        **more,
    }
    save_meta(Path(plan.folder), content)


def save_started(folder: Path, facts: Mapping[str, Any]) -> None:
    """What only the recorder knows, for the one who finds it killed."""
    save(folder / _STARTED, json.dumps(facts))


def lost_count(meta: Mapping[str, Any]) -> int | None:
    """All events of a run that did not fit into the buffers."""
    lost = meta.get("lost")
    return sum(lost.values()) if isinstance(lost, dict) else None


def lost_of(stats: Iterable[str]) -> dict[str, int]:
    """What the buffers of the CPUs count as lost, summed up."""
    lost = dict.fromkeys(_KEYS.values(), 0)
    for text in stats:
        for name, count in _COUNTERS.findall(text):
            lost[_KEYS[name]] += int(count)
    return lost


def save_meta(folder: Path, content: Mapping[str, Any]) -> None:
    """There whole or not at all."""
    save(folder / META, json.dumps(content, indent=2) + "\n")


def recover(
    entry: Entry,
    *,
    ended: str = "recorder killed",
    now: bool = False,
    drop: bool = False,
    let_go: Callable[[], None] = lambda: None,
    moved_to: Path | None = None,
    sysctls: Path = PROC_SYS,
) -> Recovered | None:
    """Put everything back after a recorder that was killed; None when it had changed nothing.

    `now`: it was killed a moment ago, so the counters of /proc are still those of the run,
    and every sysctl is put back.  Later, those are left that have another value than ours.
    `drop`: nothing was recorded.  `let_go` is called when the instance is not read any more.
    `moved_to`: where its private folder is now, if that has been given another name.
    `sysctls`: where they are.
    """
    read = entry.read()
    if read is None:
        entry.remove()
        return None
    plan, saved, ours = read
    if moved_to is not None:
        plan = replace(plan, folder=str(moved_to))
    back = saved if now else still_ours(saved, ours, sysctls)
    folder = Path(plan.folder)
    instance = Instance(Path(plan.tracefs), plan.instance)
    if instance.exists():
        instance.stop()
    wrong = restore(back, sysctls)
    pids_left: list[int] = []
    if plan.backend == "trace-cmd":
        pids_left = end_trace_cmd(plan.instance, _TRACE_CMD_SECONDS)
    stats = cpu_stats(instance)
    run, reason = None, ""
    if drop:
        remove_own(folder)
    try:
        run = _recover_folder(plan, instance, stats, ended, now)
    except OSError as error:
        reason = error.strerror or str(error)
    let_go()
    removed = instance.remove()
    remove_pauses(instance.tracefs, plan.instance)
    probes_left = remove_probes(instance.tracefs, plan.instance)
    entry.remove()
    return Recovered(
        plan.instance,
        run,
        removed,
        tuple(f"{name} = {value}" for name, value in back.items() if name not in wrong),
        tuple(sorted((saved.keys() - back.keys()) | set(wrong))),
        folder if reason and holds_recording(folder) else None,
        reason,
        tuple(probes_left),
        tuple(pids_left),
    )


def recover_all(tracefs: Path | None) -> list[Recovered | str]:
    """Recover every dead recording; returns what was done, and a text for what was not."""
    done: list[Recovered | str] = []
    for entry in dead_entries():
        done.append(recover(entry) or f"{entry.path.stem}: it had changed nothing")
    for instance in _orphans(tracefs):
        # Not stopped: who has it open may be a recorder that lives, whose process is not to
        # be seen from here (a container with this tracefs).
        if instance.remove(_ORPHAN_SECONDS):
            left = remove_probes(instance.tracefs, instance.name)
            done.append(Recovered(instance.name, probes_left=tuple(left)))
        else:
            done.append(f"{instance.name}: in use, and not by a process that is here; left alone")
    if tracefs is not None:
        for name in _probe_orphans(tracefs):
            used = ", ".join(remove_probes(tracefs, name))
            done.append(f"{name}: {f'probe {used} in use, not' if used else 'probes'} removed")
    return done


def left_behind(tracefs: Path) -> list[str]:
    """Names of the instances of recorders that were killed."""
    names = {instance.name for instance in _orphans(tracefs)} | {*_probe_orphans(tracefs)}
    for entry in dead_entries():
        names.add(entry.path.stem)
        entry.close()
    return sorted(names)


def _orphans(tracefs: Path | None) -> list[Instance]:
    """Without an entry: their register was on a file system that is gone."""
    known = registered()
    known |= {pauses_name(name) for name in known}
    paths = [] if tracefs is None else (tracefs / "instances").glob(f"*{INSTANCE_PREFIX}*")
    return [
        Instance(path.parent.parent, path.name)
        for path in paths
        if path.name not in known and is_orphan(path.name)
    ]


def _probe_orphans(tracefs: Path) -> list[str]:
    """Recordings of which nothing is left but probes: somebody else had enabled them, too."""
    known = registered()
    return [name for name in orphan_probes(tracefs) if name not in known]


def recover_folder(folder: Path, told: Callable[[Recovered], None] = lambda _: None) -> Path:
    """A run of a private folder that was left: its disk was full, or its register is gone.

    `told` is called with what was put back, where its recorder was killed.
    Raises: SetupError when its recorder lives, or there is no run yet; InputError when it is
    no such folder, or another user can have written what is in it; OSError when it still cannot
    be written.
    """
    plan = _plan_of(folder)
    instance = Instance(Path(plan.tracefs), plan.instance)
    found = None
    if plan.instance in registered():
        entry = next(dead_entries(plan.instance), None)
        if entry is None:
            raise _in_use(folder)
        found = recover(entry, moved_to=Path(plan.folder))
    elif not is_orphan(plan.instance) and (instance.exists() or not holds_recording(folder)):
        raise _in_use(folder)  # its register is not to be seen from here, or not made yet
    if found is None:
        run = _recover_folder(plan, instance, {}, "recorder failed", False)
    elif found.folder is not None:
        raise found.error()
    else:
        told(found)
        run = found.run
    if run is None:
        raise InputError("not-a-recording", str(folder), "has no pages of a trace")
    return run


def _plan_of(folder: Path) -> Plan:
    """What the folder itself tells, as far as it is to be believed.

    It says what is replaced and where root writes, so it must be this user's own. The run goes
    beside the folder, and replaces nothing but the older run that the folder is called after.
    Raises: InputError.
    """
    path = absolute(folder)
    try:
        with HeldFolder(path) as held:
            plan = Plan.from_json(held.read_text(PLAN))
            try:
                held.check_closed()
            except PermissionError as error:
                raise _foreign(folder, str(error.strerror)) from error
        target = path.with_name(Path(plan.target).name)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            "not-a-recording",
            str(folder),
            "is no folder of a recording that was cut short",
            fix="wbscope record --recover    # finds those that it can",
        ) from error
    is_called_so = private_folder(target, plan.instance) == path
    return replace(
        plan,
        folder=str(path),
        target=str(target),
        tracefs=str(mounted_tracefs() or plan.tracefs),
        force=plan.force and is_called_so and is_replaceable(target),
    )


def _foreign(folder: Path, why: str) -> InputError:
    shown = shlex.quote(str(folder))
    return InputError(
        "foreign-recording",
        str(folder),
        f"{why}, wanted a folder that only uid {os.geteuid()} can write to",
        effect="it was left alone: what is in it says what is written, and where",
        fix=f"cp -r {shown} .    # in a folder of yours, if you trust it; and recover that one",
    )


def _in_use(folder: Path) -> SetupError:
    return SetupError(
        "recording-in-use",
        str(folder),
        "is of a recording that still goes on",
        fix="wait until it has ended, or end it: then there is a run",
    )


def _recover_folder(
    plan: Plan, instance: Instance, stats: Mapping[int, str], ended: str, now: bool
) -> Path | None:
    """Raises: OSError, also where the folder is another user's by now."""
    try:
        held = HeldFolder(Path(plan.folder))
    except FileNotFoundError:
        return published(plan)
    with held:
        held.check_own()
        if not holds_recording(held.inside):
            held.remove()  # killed before anything was recorded
            return None
        _make_whole(replace(plan, folder=str(held.inside)), instance, stats, ended, now)
        return publish(plan, held)


def _make_whole(
    plan: Plan, instance: Instance, stats: Mapping[int, str], ended: str, now: bool
) -> None:
    """All that a run has but its name."""
    folder = Path(plan.folder)
    for path in (*folder.glob("*.samples"), *folder.glob(TASK_IO)):
        with contextlib.suppress(OSError):
            cut_zeros(path)
    if now:
        with contextlib.suppress(OSError):  # the trace matters more
            save_after(folder)
            add_living(folder, CLOCK_IDS[plan.clock])
    names = _all_names(plan, folder, now)
    copier: PageCopier | None = None
    if not (folder / TRACE).exists() or plan.copied_pages():
        if instance.exists():
            copier = PageCopier(instance, plan.pages_of)
            copier.finish()
        assemble(plan, tail_of(plan, names, stats))
    else:
        assemble(plan, tail_of(plan, {}, stats))  # only the copies are removed
    if not (folder / META).exists():
        facts: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            facts |= json.loads((folder / _STARTED).read_text(encoding="utf-8"))
        if now:
            facts["ended_ts_ns"] = time.clock_gettime_ns(CLOCK_IDS[plan.clock])
        probe, missed = missed_facts(plan.about, instance.tracefs, plan.instance)
        facts |= probe
        facts["problems"] = [*([] if copier is None else copier.errors), *missed]
        facts["recovered_unix_s"] = round(time.time(), 3)
        write_meta(plan, ended, facts, stats)


def _all_names(plan: Plan, folder: Path, now: bool) -> dict[int, str]:
    """Those that the recorder had saved, and what the kernel still knows."""
    names = task_names() if now else {}
    if now or Path(plan.tracefs, "instances", plan.instance).exists():  # of the same boot
        names |= ended_task_names(Path(plan.tracefs))
    kept = read_names(folder)
    with contextlib.suppress(OSError):  # for --recover, when there is no room for the trace
        add_names(folder, {tid: comm for tid, comm in names.items() if tid not in kept})
    return names | kept
