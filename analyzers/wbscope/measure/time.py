# SPDX-License-Identifier: Apache-2.0
"""What time of GNU and of shells writes.

bash and ksh: `real 0m3.629s`, then user and sys.  POSIX (`time -p`): `real 3.62`.
GNU time: `0.01user 3.61system 0:03.62elapsed ...`.  zsh: `... 0.01s user 3.61s system 99% cpu
3.629 total`.  mmtests (tests-timestamp): `time :: NAME 0.01 user 3.61 system 3.62 elapsed`.

A time.txt of a shell's `time` is read, too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from wbscope.base.units import BYTES_PER_BLOCK, unit_of_text
from wbscope.measure.document import bad, decimal, failed, scaled, shown
from wbscope.measure.metric import Scalars, known, metric

_SHELL_FIX = "save what time printed, all three lines: { time COMMAND; } 2> time.txt"
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
            told = {which: _shell_clock(whole[which], subject, at) for which in _ORDER}
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
            raise bad(subject, problem, _SHELL_FIX, at=f"line {min(index + 1, len(lines))}")
        told[which] = _seconds(match, subject, f"line {index + 1}")
        last = index
        index += 1
    return TimeResult(first, last, told)


def _seconds(match: re.Match[str], subject: str, at: str) -> float:
    value = decimal(match["seconds"].replace(",", "."))
    if value is None or (match["minutes"] is not None and (value >= 60 or not match["s"])):
        raise bad(subject, f"found {shown(match[0])}, wanted a time", _SHELL_FIX, at=at)
    return (int(match["hours"] or 0) * 60 + int(match["minutes"] or 0)) * 60 + value


def _shell_clock(text: str, subject: str, at: str) -> float:
    """12.3, 1:02.30 or 1:02:03."""
    total = 0.0
    for part in text.replace(",", ".").split(":"):
        value = decimal(part)
        if value is None:
            raise bad(subject, f"found {shown(text)}, wanted a time", _SHELL_FIX, at=at)
        total = total * 60 + value
    return total


_FIX = "record it with: /usr/bin/time -v -o time.txt COMMAND"
_COMMAND = "\tCommand being timed: "
_EXIT = "Exit status"
_SECONDS = unit_of_text("s")[1]
_KIB = unit_of_text("KiB")[1]

Number = Callable[[str], float | None]


def parse_time(text: str, subject: str = "time.txt") -> Scalars:
    """The metrics time.* of one command: of time -v, or of the time of a shell.

    Raises: InputError, also when the command ended with a status or a signal.
    """
    lines = text.split("\n")
    if not any(line.startswith(_COMMAND) for line in lines) and has_shell_time(lines):
        return _of_shell(lines, subject)
    reports = time_reports(text, subject)
    if len(reports) > 1:
        at = f"line {reports[1][0]}"
        raise bad(subject, f"holds {len(reports)} reports of time -v, wanted one", _FIX, at=at)
    return reports[0][1]


def time_reports(text: str, subject: str) -> list[tuple[int, Scalars]]:
    """(line, metrics) of each report of time -v; what a command itself printed goes before.

    Raises: InputError.
    """
    lines = text.split("\n")
    starts = [index for index, line in enumerate(lines) if line.startswith(_COMMAND)]
    if not starts:
        raise bad(subject, "holds no report of time", _FIX)
    return [(start + 1, _report(lines, start, subject)) for start in starts]


def _of_shell(lines: Sequence[str], subject: str) -> Scalars:
    results = list(time_results(lines, subject))
    if len(results) > 1:
        at = f"line {results[1].first + 1}"
        fix = f"give the file itself, whose results are runs: {shlex.quote(subject)}"
        raise bad(subject, f"holds {len(results)} results of time, wanted one", fix, at=at)
    return results[0].scalars(subject)


def _report(lines: Sequence[str], start: int, subject: str) -> Scalars:
    values = _values(lines, start, subject)
    scalars = Scalars()
    for label, (name, read) in _LINES.items():
        if label not in values:
            raise bad(subject, f'has no line "{label}"', _FIX, at=f"line {start + 1}")
        line, found = values[label]
        # A command too short to measure has no share of CPU.
        value = None if (label, found) == ("Percent of CPU this job got", "?%") else read(found)
        if value is None and found != "?%":
            raise bad(subject, f"{label}: found {shown(found)}", _FIX, at=f"line {line}")
        if name:
            scalars.add(metric("time", name, known("time", name), subject), value)
    return scalars


def _values(lines: Sequence[str], first: int, subject: str) -> dict[str, tuple[int, str]]:
    """Label -> (line, value) of the report that begins at this index."""
    _check_ended(lines[first - 1] if first else "", subject)
    # A command may have newlines.
    while first + 1 < len(lines) and not lines[first + 1].startswith("\tUser time (seconds): "):
        first += 1
    values: dict[str, tuple[int, str]] = {}
    is_last = not any(line.startswith(_COMMAND) for line in lines[first + 1 :])
    for number, line in enumerate(lines[first + 1 :], first + 2):
        if _EXIT in values and not is_last:
            break  # what the next command printed
        if not line.strip():
            continue
        label, colon, value = line.strip().rpartition(": ")
        if not line.startswith("\t") or not colon or label in values or _EXIT in values:
            raise bad(subject, f"found {shown(line)} in the report", _FIX, at=f"line {number}")
        values[label] = (number, value)
    _check_status(values.get(_EXIT, (0, "0"))[1], subject)
    return values


def _check_ended(line: str, subject: str) -> None:
    if re.fullmatch(r"Command (?:terminated by|stopped by) signal [0-9]+", line):
        raise failed(subject, f"the command was ended by signal {line.rpartition(' ')[2]}")


def _check_status(status: str, subject: str) -> None:
    if re.fullmatch("[0-9]+", status) and status.strip("0"):
        raise failed(subject, f"the command ended with status {status}")


def _times(scale: float) -> Number:
    def read(text: str) -> float | None:
        value = decimal(text)
        return None if value is None else scaled(value, scale)

    return read


def _percent(text: str) -> float | None:
    value = decimal(text.removesuffix("%")) if text.endswith("%") else None
    return None if value is None else scaled(value, unit_of_text("%")[1])


def _clock(text: str) -> float | None:
    """h:mm:ss or m:ss.cc of GNU time; `1h 2m 03s`, `0m 4.65s` of busybox."""
    match = re.fullmatch(
        r"(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{2}(?:\.[0-9]+)?)", text
    ) or re.fullmatch(r"(?:([0-9]{1,6})h )?([0-9]{1,6})m ([0-9]{1,2}(?:\.[0-9]+)?)s", text)
    if match is None:
        return None
    hours, minutes, seconds = int(match[1] or 0), int(match[2]), float(match[3])
    if seconds >= 60 or (hours and minutes >= 60):
        return None
    return scaled((hours * 60 + minutes) * 60 + seconds, _SECONDS)


# Label of the report -> name of the metric ("" = checked, no metric), and how it is read.
_LINES: dict[str, tuple[str, Number]] = {
    "User time (seconds)": ("user", _times(_SECONDS)),
    "System time (seconds)": ("sys", _times(_SECONDS)),
    "Percent of CPU this job got": ("cpu", _percent),
    "Elapsed (wall clock) time (h:mm:ss or m:ss)": ("elapsed", _clock),
    "Maximum resident set size (kbytes)": ("max_rss", _times(_KIB)),
    "Major (requiring I/O) page faults": ("major_faults", decimal),
    "Minor (reclaiming a frame) page faults": ("minor_faults", decimal),
    "Voluntary context switches": ("voluntary_switches", decimal),
    "Involuntary context switches": ("involuntary_switches", decimal),
    "Swaps": ("swaps", decimal),
    "File system inputs": ("fs_in", _times(BYTES_PER_BLOCK)),
    "File system outputs": ("fs_out", _times(BYTES_PER_BLOCK)),
    _EXIT: ("", decimal),
}
