# SPDX-License-Identifier: Apache-2.0
"""Which events a recording profile has, and how trace-cmd is asked for events."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import Any

from wbscope.base.errors import SetupError

__all__ = [
    "NOT_ASKED_FOR",
    "Profile",
    "event_options",
    "pattern_options",
    "profile_of",
    "read_profiles",
]

# In meta.json, of probes that somebody did not want: the kernel may take them.
NOT_ASKED_FOR = "not asked for"
# Shorter than this, what two names have in common says nothing.
_COMMON = 6


@dataclass(frozen=True)
class Profile:
    """Its events with those of the smaller profiles; `names` has the older ones and probes too.

    `options` are for `trace-cmd record`; those of a file system are in `file_systems`.
    `probes` are made by `wbscope record` where the kernel lets it.
    """

    name: str
    summary: str
    events: tuple[tuple[str, ...], ...]
    options: tuple[str, ...]
    file_systems: tuple[str, ...]
    probes: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        return frozenset([*self.probes, *(name for names in self.events for name in names)])


def read_profiles(path: Path) -> tuple[Profile, ...]:
    """The profiles of a catalog, the smallest first; none when there is no such file."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))["profile"]
        return _cumulated(entries)
    except FileNotFoundError:
        return ()
    except (OSError, KeyError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SetupError(
            "broken-sql-library",
            str(path),
            f"is no list of profiles: {error!r}",
            fix="make setup    # or point WBSCOPE_SQL_DIR at a whole sql/ folder",
        ) from error


def profile_of(groups: Iterable[tuple[str, ...]], profiles: Sequence[Profile]) -> Profile | None:
    """The smallest profile that has one event of each group."""
    wanted = [set(group) for group in groups]
    for profile in profiles:
        if all(group & profile.names for group in wanted):
            return profile
    return None


def event_options(groups: Iterable[tuple[str, ...]], profiles: Sequence[Profile]) -> str:
    """Options of `trace-cmd record` for one event of each group.

    An event that was renamed is asked for by what its names have in common: trace-cmd
    refuses a name that its kernel does not have.
    """
    known = {name: names for profile in profiles for names in profile.events for name in names}
    options: dict[str, None] = {}
    for group in groups:
        chosen = next((event for event in group if event in known), group[0])
        options[f"-e {shlex.quote(_pattern(known.get(chosen, (chosen,))))}"] = None
    return " ".join(options)


def pattern_options(profile: Profile, events: Iterable[str]) -> str:
    """Those options of a profile that record one of the events, and what goes with it.

    An event that starts something is of no use without the one that ends it: the
    patterns of a profile have both.
    """
    wanted = list(events)
    found = _matching((profile.options,), wanted)
    if not found:
        # Of one file system only: trace-cmd refuses events of those that are not there.
        named = (text.partition(": ")[2] for text in profile.file_systems)
        found = _matching((_split(text) for text in named), wanted)
    return " ".join(found)


def _matching(lists: Iterable[Sequence[str]], events: Sequence[str]) -> list[str]:
    """The options of the first list that has one for any of the events."""
    for options in lists:
        found = []
        for option in options:
            pattern = shlex.split(option)[-1]
            whole = pattern if ":" in pattern else f"{pattern}:*"
            if any(fnmatchcase(event, whole) for event in events):
                found.append(option)
        if found:
            return found
    return []


def _split(text: str) -> list[str]:
    """Options one by one."""
    words = shlex.split(text)
    return [shlex.join(pair) for pair in zip(words[::2], words[1::2], strict=True)]


def _pattern(names: tuple[str, ...]) -> str:
    system, _, first = names[0].partition(":")
    shorts = [name.partition(":")[2] for name in names]
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*shorts, strict=False))
    common = "".join(letters[0] for letters in same)
    if len(names) == 1 or len(common) < _COMMON:
        return names[0]
    return f"{system}:{common}*" if common != first else names[0]


def _cumulated(entries: list[dict[str, Any]]) -> tuple[Profile, ...]:
    profiles: list[Profile] = []
    events: tuple[tuple[str, ...], ...] = ()
    options: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    for entry in entries:
        events += tuple(tuple(names.split("|")) for names in entry["events"])
        options += tuple(entry["options"])
        probes += tuple(entry.get("probes", ()))
        profiles.append(
            Profile(
                name=entry["name"],
                summary=entry["summary"],
                events=events,
                options=options,
                file_systems=tuple(entry.get("file_systems", ())),
                probes=probes,
            )
        )
    return tuple(profiles)
