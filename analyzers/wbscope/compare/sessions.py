# SPDX-License-Identifier: Apache-2.0
"""Which runs were made together: what is not the same next time is no change of the code."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wbscope.base.result import Notice
from wbscope.compare.rundata import RunData, Session
from wbscope.source.plain_files import first_bytes
from wbscope.stats.estimates import Scale, Shift
from wbscope.stats.repeated import Block, blocked_shift, session_shift
from wbscope.stats.tests import smallest_p_of

if TYPE_CHECKING:
    from wbscope.compare.comparison import Side
    from wbscope.compare.policy import Policy


SESSION_FILES = ("session", "meta.json")

_MOST_BYTES = 1 << 20
_NAME_CHARACTERS = 80
_BOOT, _LAB = "boot:", "lab:"
# Of runs whose session nothing tells: no name has a line break.
_UNKNOWN = "\nunknown"
_NOT_TESTED = "drift between sessions is not in this test"
# A machine that was up all night is not the one of yesterday: load, temperature, fill of the disk.
_PAUSE_S = 6 * 3600

Kind = Literal["runs", "blocks", "sessions"]


@dataclass(frozen=True)
class Design:
    """How sessions enter the test of two sides.

    kind      runs: no word on them, or one session for all; blocks: runs of a session are
              compared with those of the other side in the same one; sessions: no session is on
              both sides, so a session counts as one value
    side, base  the session of each run, one name for all where it is "runs"; of blocks, "" is
              a run that is left out
    is_apart  no session is on both sides, so that a slow one may be all there is to see
    """

    kind: Kind
    side: tuple[str, ...]
    base: tuple[str, ...]
    warnings: tuple[Notice, ...] = ()
    is_apart: bool = False

    @property
    def runs(self) -> tuple[int, int]:
        """Of each side, without those that are left out."""
        mine, theirs = (sum(bool(label) for label in one) for one in (self.side, self.base))
        return mine, theirs

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Runs of both sides that are compared with each other, block by block."""
        if self.kind != "blocks":
            return (self.runs,)
        mine, theirs = Counter(self.side), Counter(self.base)
        return tuple((mine[name], theirs[name]) for name in mine if name and name in theirs)

    def smallest_p(self) -> float:
        """The least p that so many runs without ties can give."""
        return smallest_p_of(self.sizes)

    def blocks(self, side: Sequence[float], base: Sequence[float]) -> list[Block]:
        """The values of both sides, session by session.

        Shape: the values of all runs, in their order.
        """
        mine, theirs = _by_session(self.side, side), _by_session(self.base, base)
        return [(mine[name], theirs[name]) for name in mine if name in theirs]

    def tested(
        self, side: Sequence[float], base: Sequence[float], scale: Scale, confidence: float
    ) -> Shift | None:
        """The shift by this design; None where the test of runs is the right one.

        Shape: the values of all runs, in their order.
        """
        if self.kind == "runs":
            return None
        if self.kind == "blocks":
            return blocked_shift(self.blocks(side, base), confidence, scale)
        mine, theirs = _by_session(self.side, side), _by_session(self.base, base)
        return session_shift(list(mine.values()), list(theirs.values()), confidence, scale)


def session_of(texts: Mapping[str, str]) -> Session | None:
    """By the file `session`, the start of the lab, or the boot that meta.json names.

    The file has any name in its first line; meta.json may be anybody's.
    """
    meta = _object(texts.get("meta.json", ""))
    unix_s = meta.get("written_unix_s")
    when = unix_s if isinstance(unix_s, int) and 0 <= unix_s < 1 << 40 else None
    if named := texts.get("session", "").strip():
        return Session(" ".join(named.splitlines()[0].split())[:_NAME_CHARACTERS], when)
    lab, machine = meta.get("lab"), meta.get("machine")
    for prefix, told in ((_LAB, _text(lab, "session")), (_BOOT, _text(machine, "boot_id"))):
        if told:
            return Session(f"{prefix}{told}"[:_NAME_CHARACTERS], when)
    return None


def session_of_folder(folder: Path) -> Session | None:
    """Of a run without a trace: the same files, where they are there."""
    starts = {name: first_bytes(folder / name, _MOST_BYTES) for name in SESSION_FILES}
    return session_of({name: data.decode("utf-8", "replace") for name, data in starts.items()})


def meta_of_folder(folder: Path) -> Mapping[str, Any]:
    """What meta.json of a run without a trace says; nothing where it is not JSON."""
    return _object(first_bytes(folder / "meta.json", _MOST_BYTES).decode("utf-8", "replace"))


def session_labels(runs: Sequence[RunData]) -> list[str] | None:
    """The session of each run, those of an unknown one together; None where no run has one.

    A boot is several sessions where hours are between two runs.
    """
    sessions = [run.session for run in runs]
    names: dict[Session, str] = {}
    last: dict[str, tuple[int, int]] = {}
    known = {one for one in sessions if one is not None}
    for one in sorted(known, key=lambda one: (one.name, one.unix_s or 0)):
        names[one] = one.name
        if one.name.startswith(_BOOT) and one.unix_s is not None:
            before, part = last.get(one.name, (one.unix_s, 0))
            part += one.unix_s - before > _PAUSE_S
            last[one.name] = one.unix_s, part
            names[one] = f"{one.name}/{part}" if part else one.name
    return [_UNKNOWN if one is None else names[one] for one in sessions] if names else None


def design_of(
    side: Side, base: Side, policy: Policy, metric: str | None = None, *, itself: bool = False
) -> Design:
    """How these two sides have to be compared; in one metric, by the runs that have it.

    itself   the base is the side again
    """
    if metric is not None:
        sides = [[run for run in s.runs if run.value(metric) is not None] for s in (side, base)]
        side, base = replace(side, runs=tuple(sides[0])), replace(base, runs=tuple(sides[1]))
    labels = session_labels([*side.runs, *base.runs])
    alike = ("all",) * len(side.runs), ("all",) * len(base.runs)
    is_ignored = itself or policy.sessions == "ignore"
    if is_ignored or labels is None or len(set(labels)) == 1:
        return Design("runs", *alike)
    mine = _with_unknown(labels[: len(side.runs)], "A", policy)
    theirs = _with_unknown(labels[len(side.runs) :], "B", policy)
    told = _unknown(side, base, (mine, theirs), "they are left out of tests by session")
    in_runs = _unknown(side, base, (mine, theirs), "they count as the others, in a test of runs")
    shared = (set(mine) & set(theirs)) - {""}
    if shared and all(sum(one in shared for one in s) >= policy.min_runs for s in (mine, theirs)):
        kept = [tuple(one if one in shared else "" for one in s) for s in (mine, theirs)]
        return Design("blocks", kept[0], kept[1], (*told, *_left_out(side, base, kept)))
    if len({*mine, *theirs} - {""}) == 1:
        return Design("runs", *alike, tuple(in_runs))
    if len({*mine} - {""}) + len({*theirs} - {""}) == 2:
        untold = (*in_runs, *_single(side, base, (mine, theirs), tested=False))
        return Design("runs", *alike, untold, is_apart=True)
    single = _single(side, base, (mine, theirs), tested=True)
    return Design("sessions", mine, theirs, (*told, *single), is_apart=not shared)


def _with_unknown(labels: Sequence[str], side: str, policy: Policy) -> tuple[str, ...]:
    """Without runs of unknown sessions, or as one session where nearly nothing else is left.

    As a session of their own beside others they could be half of one of these, which would count
    twice. As the only one of a side, they vary no more than one session does.
    """
    known = sum(one != _UNKNOWN for one in labels)
    if known < min(policy.min_runs, len(labels)):
        return (_UNKNOWN + side,) * len(labels)
    return tuple("" if one == _UNKNOWN else one for one in labels)


def _unknown(side: Side, base: Side, labels: tuple[Sequence[str], ...], made: str) -> list[Notice]:
    """Runs without a session where others have one, and what is made of them."""
    found = []
    for one, names in zip((base, side), reversed(labels), strict=True):
        if count := sum(run.session is None for run in one.runs):
            is_one = any(name.startswith(_UNKNOWN) for name in names)
            what = f"{one.name} counts as one session" if is_one else made
            told = (
                f"the session of {count} of {len(one.runs)} runs of {one.name} is unknown: {what};"
            )
            told += " name it in a file `session` of the run folder"
            found.append(Notice("unknown-session", told))
    return found


def _left_out(side: Side, base: Side, kept: Sequence[tuple[str, ...]]) -> list[Notice]:
    found = []
    for one, labels in zip((side, base), kept, strict=True):
        runs = zip(one.runs, labels, strict=True)
        if count := sum(run.session is not None and not label for run, label in runs):
            told = f"{count} of {len(labels)} runs of {one.name} are of sessions that the other"
            told += " side has no run of: the test is of the others, made in turns"
            found.append(Notice("other-session", told))
    return found


def _single(
    side: Side, base: Side, labels: tuple[Sequence[str], ...], tested: bool
) -> list[Notice]:
    """What one session of a side leaves open."""
    found = []
    for one, names in zip((base, side), reversed(labels), strict=True):
        if len({*names} - {""}) != 1:
            continue
        what = f"{one.name} is one session{_when(one.runs)}"
        if tested:
            told = f"{what}: how much sessions differ is taken from the other ones"
            found.append(Notice("one-session", told))
        else:
            told = f"{what}: {_NOT_TESTED}; record both sides in turns"
            found.append(Notice("one-session", told))
    return found


def _when(runs: Sequence[RunData]) -> str:
    times = [run.session.unix_s for run in runs if run.session and run.session.unix_s is not None]
    if times:
        return f" of {datetime.fromtimestamp(min(times), UTC):%Y-%m-%d}"
    names = [run.session.name for run in runs if run.session]
    return f" ({names[0]})" if names else ""


def _by_session(labels: Sequence[str], values: Sequence[float]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for label, value in zip(labels, values, strict=True):
        if label:
            found.setdefault(label, []).append(value)
    return found


def _text(table: object, key: str) -> str:
    value = table.get(key) if isinstance(table, dict) else None
    return " ".join(value.split()) if isinstance(value, str) else ""


def _object(text: str) -> dict[str, object]:
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
