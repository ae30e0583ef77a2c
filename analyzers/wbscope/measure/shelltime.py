# SPDX-License-Identifier: Apache-2.0
"""What `time` of shells prints, and GNU time without -v; also in other text.

bash and ksh: `real 0m3.629s`, then user and sys.  POSIX (`time -p`): `real 3.62`.
GNU time: `0.01user 3.61system 0:03.62elapsed ...`.  zsh: `... 0.01s user 3.61s system 99% cpu
3.629 total`.  mmtests (tests-timestamp): `time :: NAME 0.01 user 3.61 system 3.62 elapsed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wbscope.measure.bad import bad, decimal, scaled, shown
from wbscope.measure.known_metrics import known, metric
from wbscope.measure.metric import Scalars
from wbscope.measure.tool_units import unit_of_text

__all__ = ["TimeResult", "has_shell_time", "time_results"]

_FIX = "save what time printed, all three lines: { time COMMAND; } 2> time.txt"
_ORDER = ("real", "user", "sys")
_NUMBER = r"[0-9]{1,9}(?:[.,][0-9]{1,9})?"
# de_DE and others have a comma.
_LINE = re.compile(
    rf"(?P<which>real|user|sys)\s+(?:(?:(?P<hours>[0-9]{{1,6}})h)?(?P<minutes>[0-9]{{1,6}})m)?"
    rf"(?P<seconds>{_NUMBER})(?P<s>s?)"
)
_GNU = re.compile(
    rf"(?P<user>{_NUMBER})user (?P<sys>{_NUMBER})system (?P<real>[0-9:]+(?:\.[0-9]+)?)elapsed .*"
)
_ZSH = re.compile(
    rf"(?:.*\s)?(?P<user>{_NUMBER})s user\s+(?P<sys>{_NUMBER})s system\s+[0-9]+% cpu\s+"
    r"(?P<real>[0-9:]+(?:[.,][0-9]+)?) total"
)
_MMTESTS = re.compile(
    rf"time :: (?P<step>\S+) (?P<user>{_NUMBER}) user (?P<sys>{_NUMBER}) system"
    rf" (?P<real>{_NUMBER}) elapsed"
)
_NAMES = {"real": "elapsed", "user": "user", "sys": "sys"}


@dataclass(frozen=True)
class TimeResult:
    """One use of time: seconds of real, user and sys; the lines that it stands on.

    step  what was timed, where the line says so
    """

    first: int  # index of its first line
    last: int
    seconds: dict[str, float]
    step: str = ""

    def scalars(self, subject: str, step: str = "") -> Scalars:
        """The metrics time.elapsed_ns, user_ns and sys_ns."""
        keys = {"step": step} if step else {}
        scalars = Scalars()
        for which, value in self.seconds.items():
            name = _NAMES[which]
            made = metric("time", name, known("time", name), subject, keys)
            scalars.add(made, scaled(value, unit_of_text("s")[1]))
        return scalars


def has_shell_time(lines: Sequence[str]) -> bool:
    """True when one of the lines looks like one of these."""
    one = (_GNU, _ZSH, _MMTESTS)
    return any(
        ((found := _LINE.fullmatch(line)) and found["which"] == "real")
        or any(pattern.fullmatch(line) for pattern in one)
        for line in map(str.strip, lines)
    )


def time_results(lines: Sequence[str], subject: str) -> Iterator[TimeResult]:
    """Each result, in the order of the text.

    Raises: InputError when one is not whole.
    """
    index = 0
    while index < len(lines):
        line = lines[index].strip()
        whole = next((m for p in (_GNU, _ZSH, _MMTESTS) if (m := p.fullmatch(line))), None)
        if whole is not None:
            at = f"line {index + 1}"
            told = {which: _clock(whole[which], subject, at) for which in _ORDER}
            step = whole["step"] if "step" in whole.groupdict() else ""
            yield TimeResult(index, index, told, step)
        elif (match := _LINE.fullmatch(line)) and match["which"] == "real":
            found = _three_lines(lines, index, subject)
            yield found
            index = found.last
        index += 1


def _three_lines(lines: Sequence[str], first: int, subject: str) -> TimeResult:
    told: dict[str, float] = {}
    index = first
    for which in _ORDER:
        while index < len(lines) and not lines[index].strip() and index < first + 5:
            index += 1
        line = lines[index].strip() if index < len(lines) else ""
        match = _LINE.fullmatch(line)
        if match is None or match["which"] != which:
            problem = f"found {shown(line)}, wanted the line {which} of time"
            raise bad(subject, problem, _FIX, at=f"line {min(index + 1, len(lines))}")
        told[which] = _seconds(match, subject, f"line {index + 1}")
        last = index
        index += 1
    return TimeResult(first, last, told)


def _seconds(match: re.Match[str], subject: str, at: str) -> float:
    value = decimal(match["seconds"].replace(",", "."))
    if value is None or (match["minutes"] is not None and (value >= 60 or not match["s"])):
        raise bad(subject, f"found {shown(match[0])}, wanted a time", _FIX, at=at)
    return (int(match["hours"] or 0) * 60 + int(match["minutes"] or 0)) * 60 + value


def _clock(text: str, subject: str, at: str) -> float:
    """12.3, 1:02.30 or 1:02:03."""
    total = 0.0
    for part in text.replace(",", ".").split(":"):
        value = decimal(part)
        if value is None:
            raise bad(subject, f"found {shown(text)}, wanted a time", _FIX, at=at)
        total = total * 60 + value
    return total
