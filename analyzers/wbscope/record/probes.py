# SPDX-License-Identifier: Apache-2.0
"""Events that are made for the time of a recording: two probes and a synthetic one.

The probes are on balance_dirty_pages().

The entry tells of calls in free run, which fire no event, and of the pages that the task has
dirtied; the return, how long the call held it.  The group of both is of one recording:
wbscope_PID_HEX of the instance wbscope-PID-HEX.  Probes of others are never touched.
The synthetic event tells who woke a task that was blocked, and for how long it had been.
Source: Documentation/trace/kprobetrace.rst, fprobetrace.rst, histogram.rst;
kernel/trace/trace_kprobe.c, trace_events_synth.c.
"""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wbscope.base.errors import SetupError
from wbscope.record.choose import Instance, is_orphan
from wbscope.record.what import WHAT, version

_PROBE = WHAT["probe"]
_WAITS = WHAT["blocked"]
FUNCTION: str = _PROBE["function"]
# Of what compilers put behind a name, what leaves the arguments as they were.
_KEPT = re.compile(r"\.(?:llvm|lto_priv)\.\d+")
# Parts of a function that stands under its own name, too.
_PARTS = re.compile(r"\.cold(?:\.\d+)?")
_SYMBOL = re.compile(rf"^\w+ [tT] ({FUNCTION}(?:\.[\w.]+)?)$", re.MULTILINE)
_ERROR = re.compile(r"^\[[\s\d.]+\] \w+: error: (.*)\n  Command: (.*)$", re.MULTILINE)
_KALLSYMS = "proc/kallsyms"
_LOCKDOWN = "sys/kernel/security/lockdown"
_KPROBES = "sys/kernel/debug/kprobes"
_FTRACE = "proc/sys/kernel/ftrace_enabled"
_ANOTHER_BUILD = "another build of this kernel"


class Refused(Exception):
    """There are no probes: why, and what helps."""

    def __init__(self, why: str, fix: str) -> None:
        super().__init__(why)
        self.why = why
        self.fix = fix


def kinds_here(tracefs: Path, root: Path) -> list[str]:
    """The kinds of probes of this kernel, the better one first.

    Raises: Refused when there is none.
    """
    kinds = []
    if "f[:[<group>/]" in _text(tracefs / "README"):
        kinds.append("fprobe")
    switch = root / _KPROBES / "enabled"
    disarmed = _text(switch).strip() == "0"
    if (tracefs / "kprobe_events").exists() and not disarmed:
        kinds.append("kprobe")
    if kinds:
        return kinds
    if disarmed:
        raise Refused(f"kprobes are switched off: {switch} is 0", f"echo 1 > {switch}    # as root")
    raise Refused(
        "this kernel has no probe events (CONFIG_FPROBE_EVENTS, CONFIG_KPROBE_EVENTS)",
        "a kernel with CONFIG_KPROBE_EVENTS",
    )


def renamed_function(root: Path) -> str | None:
    """Its name where a compiler has given it another one, arguments as they were.

    Raises: Refused when the function is not there, or takes other arguments.
    """
    symbols = _text(root / _KALLSYMS)
    names: list[str] = _SYMBOL.findall(symbols)
    if FUNCTION in names or not symbols:
        return None
    whole = [name for name in names if not _PARTS.fullmatch(name.removeprefix(FUNCTION))]
    if not whole:
        raise Refused(f"the compiler has put {FUNCTION}() into its callers", _ANOTHER_BUILD)
    if len(whole) == 1 and _KEPT.fullmatch(whole[0].removeprefix(FUNCTION)):
        return whole[0]
    raise Refused(f"the compiler has changed {FUNCTION}(): {', '.join(whole)}", _ANOTHER_BUILD)


def refusal(tracefs: Path, group: str, said: str, root: Path) -> Refused:
    """What is known to keep a kernel from it; else what it said, in its log or to us."""
    if "[confidentiality]" in _text(root / _LOCKDOWN):
        return Refused(
            "the kernel is locked down (confidentiality)", "boot with lockdown=integrity"
        )
    if os.geteuid() != 0:
        return Refused(f"user {os.geteuid()} may make no probes: {said}", "sudo wbscope ...")
    if re.search(rf"\b{FUNCTION}$", _text(root / _KPROBES / "blacklist"), re.MULTILINE):
        return Refused(f"{FUNCTION} is on the kernel's list of what not to probe", _ANOTHER_BUILD)
    if _text(root / _FTRACE).strip() == "0":
        return Refused("kernel.ftrace_enabled is 0", "sysctl kernel.ftrace_enabled=1")
    logged = [text for text, command in _ERROR.findall(_text(tracefs / "error_log"))
              if group in command]  # fmt: skip
    why = f"the kernel refuses the probe: {logged[-1] if logged else said}"
    return Refused(why, "none known")


def _text(path: Path) -> str:
    """Of a file that cannot be read, nothing."""
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


ENTRY, RETURN = f"{FUNCTION}_entry", f"{FUNCTION}_return"
_SYSTEM = "wbscope"
_GROUP = re.compile(rf"{_SYSTEM}_\d+_(?:[0-9a-f]{{8}}|doctor|remote)")
# A line of dynamic_events and kprobe_events: "r1024:GROUP/EVENT PLACE ...".
_LISTED = re.compile(r"^[a-z]\d*:(\w+)/(\w+)\s", re.MULTILINE)
_SYNTHETIC, _BLOCKED = "synthetic", "_blocked"
PROBES = (f"{_SYSTEM}:{ENTRY}", f"{_SYSTEM}:{RETURN}")
BLOCKED = (f"{_SYSTEM}:{_BLOCKED[1:]}",)
_MISSED = f"hits of probes on {FUNCTION}() were missed: those calls are not known"
DROPPED = "wake-ups of more tasks than there is room for: those waits are not known"
_DROPPED = re.compile(r"^\s*Dropped: (\d+)$", re.MULTILINE)
_PROFILE = re.compile(r"^\s*\S+\s+\d+\s+(\d+)$", re.MULTILINE)
_REMOVE_SECONDS = 2.0
_STEP_SECONDS = 0.02
_TRIES = 5
_ROOT = Path("/")  # of the proc and sys that tell why there are none


@dataclass(frozen=True)
class Probes:
    """What was made: `events` as 'group:event'; with no kind, why not, and what helps."""

    kind: str | None  # fprobe or kprobe
    arguments: str = ""
    events: tuple[str, ...] = ()
    why: str = ""
    fix: str = ""

    def about(self) -> dict[str, Any]:
        """For meta.json; what was missed is known at the end."""
        if self.kind is None:
            return {"kind": None, "why": self.why}
        names = sorted(standard_name(event) for event in self.events)
        return {"kind": self.kind, "arguments": self.arguments, "events": names, "missed": None}


def group_of(instance: str) -> str:
    """The name of an instance as a C identifier."""
    return instance.replace("-", "_")


def standard_name(event: str) -> str:
    """'wbscope_PID_HEX:name' or 'synthetic:wbscope_PID_HEX_name' as every run calls it."""
    group, _, name = event.partition(":")
    if group == _SYNTHETIC and name.endswith(_BLOCKED):
        group, name = name.removesuffix(_BLOCKED), _BLOCKED[1:]
    return f"{_SYSTEM}:{name}" if _GROUP.fullmatch(group) else event


def make_probes(
    instance: Instance, release: str = platform.release(), root: Path = _ROOT
) -> Probes:
    """Both, not enabled; the instance is made to try them in it, and left as it was made.

    Raises: SetupError when there can be no instance.
    """
    instance.make()
    try:
        if not _is_since(release, "since"):
            raise Refused(f"Linux {release} is older than {_PROBE['since']}", "a newer kernel")
        kinds = kinds_here(instance.tracefs, root)
        try:
            return _made(instance, kinds, FUNCTION, release, root)
        except Refused:
            name = renamed_function(root)
            if name is None:
                raise
            return _made(instance, kinds, name, release, root)
    except Refused as refused:
        return Probes(None, why=refused.why, fix=refused.fix)


def make_waits(instance: Instance) -> Probes:
    """The synthetic event, not enabled, and what fires it, in an instance beside this one."""
    tracefs, name = instance.tracefs, f"{group_of(instance.name)}{_BLOCKED}"
    if not (tracefs / "synthetic_events").exists():
        needed = "CONFIG_SYNTH_EVENTS, CONFIG_HIST_TRIGGERS"
        why = f"this kernel has no synthetic events ({needed})"
        return Probes(None, why=why, fix=f"a kernel with {needed}")
    beside = Instance(tracefs, _beside(instance.name))
    try:
        _write(tracefs, f"s:{_SYNTHETIC}/{name} {_WAITS['fields']}")
        beside.make()
        beside.write("buffer_size_kb", "8")  # nothing is recorded there
        for event, trigger in _triggers(name):
            beside.write(beside.event_file(event, "trigger"), trigger)
        beside.write("tracing_on", "1")
    except (OSError, SetupError) as error:
        said = error.message if isinstance(error, SetupError) else error.strerror or str(error)
        _remove_beside(tracefs, instance.name)
        with suppress(OSError):  # the probes stay
            _write(tracefs, f"-:{_SYNTHETIC}/{name}")
        return Probes(None, why=f"the kernel refuses it: {said}", fix="none known")
    return Probes(_SYNTHETIC, events=(f"{_SYNTHETIC}:{name}",))


def filter_of(event: str) -> str | None:
    """What of an event is recorded; None: all."""
    return _WAITS["filter"] if standard_name(event) in BLOCKED else None


def _beside(instance: str) -> str:
    return f"waits-{instance}"


def _triggers(name: str) -> list[tuple[str, str]]:
    return [(event, text.replace("%s", name)) for event, text in _WAITS["triggers"].items()]


def _remove_beside(tracefs: Path, instance: str) -> list[str]:
    """It goes when its triggers have, in the opposite order; returns its name if it stays."""
    beside = Instance(tracefs, _beside(instance))
    if not beside.exists():
        return []
    for event, trigger in reversed(_triggers(f"{group_of(instance)}{_BLOCKED}")):
        with suppress(SetupError):
            beside.write(beside.event_file(event, "trigger"), f"!{trigger}")
    return [] if beside.remove(_REMOVE_SECONDS) else [beside.name]


def _made(instance: Instance, kinds: list[str], function: str, release: str, root: Path) -> Probes:
    """Of the first kind that this kernel takes."""
    group = group_of(instance.name)
    last: Refused | None = None
    for kind in kinds:
        try:
            arguments = _write_entry(instance.tracefs, kind, group, function, release, root)
            _write_return(instance.tracefs, kind, group, function, release, root)
            for name in (RETURN, ENTRY):  # what is refused is seen now, not when it records
                instance.write(instance.event_file(f"{group}:{name}"), "1")
        except Refused as refused:
            last = refused
        except SetupError as error:
            last = refusal(instance.tracefs, group, error.message, root)
        else:
            instance.stop()
            # In this order: a call that is seen to begin is seen to end.
            return Probes(kind, arguments, (f"{group}:{RETURN}", f"{group}:{ENTRY}"))
        instance.stop()
        remove_probes(instance.tracefs, instance.name)
    assert last is not None
    raise last


def _write_entry(
    tracefs: Path, kind: str, group: str, function: str, release: str, root: Path
) -> str:
    """Returns: by what the arguments are found."""
    letter, _, _ = _PROBE["kinds"][kind]
    ways = [_PROBE["names"]] if _is_since(release, "names_since") else []
    if not _is_since(release, "until"):
        registers = _PROBE["registers"].get(platform.machine())
        ways += [_PROBE["numbers"], *([registers] if registers else [])]
    said = ""
    for wb, pages in ways:
        line = f"{letter}:{group}/{ENTRY} {function} {_PROBE['entry'] % (wb, pages)}"
        try:
            _write(tracefs, line)
        except OSError as error:
            said = error.strerror or str(error)
            continue
        return f"{wb} {pages}"
    raise refusal(tracefs, group, said, root)


def _write_return(
    tracefs: Path, kind: str, group: str, function: str, release: str, root: Path
) -> None:
    """With room for many tasks that sleep in it, where that can be said."""
    _, letter, suffix = _PROBE["kinds"][kind]
    value = f" {_PROBE['value']}" if _is_since(release, "returns_since") else ""
    said = ""
    most_first = kind == "kprobe" or not _is_since(release, "no_most_since")
    for most in (str(_PROBE["most"]), "") if most_first else ("",):
        try:
            _write(tracefs, f"{letter}{most}:{group}/{RETURN} {function}{suffix}{value}")
        except OSError as error:
            said = error.strerror or str(error)
            continue
        return
    raise refusal(tracefs, group, said, root)


def remove_probes(tracefs: Path, instance: str, seconds: float = _REMOVE_SECONDS) -> list[str]:
    """Those of one recording, whose instance is gone or has them off; returns what is left.

    A probe that somebody else has enabled, too, stays until they have let go of it.
    """
    group, deadline = group_of(instance), time.monotonic() + seconds
    beside = _remove_beside(tracefs, instance)
    while True:
        for event in _listed_of(tracefs, group):
            with suppress(OSError):
                _write(tracefs, f"-:{event.replace(':', '/')}")
        left = _listed_of(tracefs, group)
        if not left or time.monotonic() > deadline:
            return left + beside
        time.sleep(_STEP_SECONDS)


def orphan_probes(tracefs: Path) -> list[str]:
    """Names of instances that are gone, of recorders that do not live, that have left others."""
    names = [_owner(*listed).replace("_", "-") for listed in _listed(tracefs)]
    names += [path.name.removeprefix("waits-") for path in tracefs.glob("instances/waits-*")]
    return [n for n in dict.fromkeys(names) if is_orphan(n) and not Instance(tracefs, n).exists()]


def missed_count(tracefs: Path, instance: str) -> int | None:
    """Hits that the kernel counts as missed; None where it counts none: of fprobes."""
    group = group_of(instance)
    for _ in range(_TRIES):
        # The profile names events without their group: in the order of the list.
        before = _listed(tracefs, "kprobe_events")
        try:
            missed = _PROFILE.findall((tracefs / "kprobe_profile").read_text(encoding="utf-8"))
        except OSError:
            return None
        if len(missed) == len(before) and before == _listed(tracefs, "kprobe_events"):
            ours = [
                int(count)
                for (owner, _), count in zip(before, missed, strict=True)
                if owner == group
            ]
            return sum(ours) if ours else None
    return None


def missed_facts(
    about: Mapping[str, Any], tracefs: Path, instance: str
) -> tuple[dict[str, Any], list[str]]:
    """Keys of meta.json at the end, while these events are there; and what is wrong."""
    facts: dict[str, Any] = {}
    problems = []
    for key, count, told in (
        ("probe", missed_count, _MISSED),
        ("waits", _dropped_count, DROPPED),
    ):
        about_one = about.get(key) or {}
        if about_one.get("kind"):
            missed = count(tracefs, instance)
            facts[key] = {**about_one, "missed": missed}
            problems += [f"{missed} {told}"] if missed else []
    return facts, problems


def _dropped_count(tracefs: Path, instance: str) -> int | None:
    beside, total = Instance(tracefs, _beside(instance)), 0
    for event in _WAITS["triggers"]:
        try:
            text = beside.read(beside.event_file(event, "hist"))
        except OSError:
            return None
        total += sum(int(count) for count in _DROPPED.findall(text))
    return total


def _owner(group: str, event: str) -> str:
    """The group of the recording that an event is of."""
    return event.removesuffix(_BLOCKED) if group == _SYNTHETIC else group


def _listed_of(tracefs: Path, group: str) -> list[str]:
    return [f"{of}:{event}" for of, event in _listed(tracefs) if _owner(of, event) == group]


def _listed(tracefs: Path, file: str = "dynamic_events") -> list[tuple[str, str]]:
    """Group and name of every dynamic event, whoever made it."""
    with suppress(OSError):
        return _LISTED.findall((tracefs / file).read_text(encoding="utf-8", errors="replace"))
    return []


def _write(tracefs: Path, line: str) -> None:
    """Appended: a file that is truncated loses all probes of everybody."""
    number = os.open(tracefs / "dynamic_events", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(number, f"{line}\n".encode())
    finally:
        os.close(number)


def _is_since(release: str, key: str) -> bool:
    """Whether it is the kernel that the table names there, or a later one."""
    found = re.match(r"\d+\.\d+", release)
    return found is not None and version(found[0]) >= version(_PROBE[key])
