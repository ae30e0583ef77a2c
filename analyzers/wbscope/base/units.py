# SPDX-License-Identifier: Apache-2.0
"""Numbers and tasks for people, and units of other tools: the only place with powers of ten."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from wbscope.base.errors import Argument, Phrase, UsageError

_BINARY = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DURATIONS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
# getrusage(2) counts file system input and output in these.
BYTES_PER_BLOCK = 512

# A unit's name in metrics, and how many of it one of the text's is.
Unit = tuple[str, float]

_TOOL_TIMES = {"ns": 1, "us": 1_000, "ms": 1_000_000, "msec": 1_000_000, "s": 1_000_000_000}
_TOOL_BYTES = {
    **{"B": 1, "bytes": 1, "kB": 1000, "KB": 1000, "MB": 1000**2, "GB": 1000**3},
    **{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
}
_NS_PER_S = _DURATIONS["s"]
_NS_PER_US = _DURATIONS["us"]
_MAX_NS = 2**63 - 1
_MAX_COUNT = 2**63 - 1
# From here on three, or six, digits are all before the point.
_THREE_WHOLE = 99.95
_SIX_WHOLE = 99_999.95
# Digits behind that are no digits of the number.
_MOST_WHOLE = 1e15


def format_value(column: str, unit: str | None, value: Any) -> str:
    """One cell of a table; '-' is a value that was not recorded."""
    if value is None:
        return "-"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, str):
        return value
    if unit in (None, "count", "pages/s"):
        return f"{_number(value)} {unit}" if unit == "pages/s" else _number(value)
    if is_instant(column):
        return _instant(value)
    if unit == "ns":
        return _duration(value)
    if unit == "ratio":
        return f"{value * 100:.1f} %"
    if unit in ("bytes", "bytes/s"):
        return _bytes(value) + unit.removeprefix("bytes")
    return f"{_counted(value)} {unit}".rstrip()


def counted(count: int, noun: str) -> str:
    """1 run, 2 runs."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def short_name(column: str, unit: str | None) -> str:
    """A column's name for people: the unit is written in each cell instead."""
    suffixes = {"bytes/s": "_bytes_per_s", "pages/s": "_pages_per_s", "ns": "_ns"}
    suffix = suffixes.get(unit or "", f"_{unit}")
    return column.removesuffix(suffix).replace("_", " ") or column


def prefix_step(unit: str) -> int:
    """From one prefix of a unit to the next: what round numbers of it are."""
    return 1 << 10 if unit in ("bytes", "bytes/s") else 1_000


def is_instant(column: str) -> bool:
    """True for a point in time, which keeps its digits; a duration is rounded."""
    return column == "ts" or column.endswith(("_ts", "_start_ns"))


def parse_duration(argument: str, text: str, *, positive: bool = False) -> int:
    """'2s', '500ms', '1.5s' as ns; UsageError says what is wrong with others."""
    _check_text(argument, text)
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h)", text)
    if match is None:
        number = re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text)
        problem = "has no unit" if number else "is not a duration"
        seconds = float(text) if number else -1.0
        taken = (seconds > 0 if positive else seconds >= 0) and seconds * _NS_PER_S < _MAX_NS
        example = f"{text}s" if taken else "2s"
        raise UsageError(
            "bad-duration",
            Phrase(Argument(argument, text)),
            f"{problem}, wanted a number with ns, us, ms, s, m or h",
            fix=Phrase(Argument(argument, example)),
        )
    # Exact: a time of the trace clock may have more digits than a float.
    exact = Decimal(match[1]) * _DURATIONS[match[2]]
    if exact > _MAX_NS:
        raise UsageError(
            "bad-duration",
            Phrase(Argument(argument, text)),
            f"is longer than {_MAX_NS} ns",
            fix=Phrase(Argument(argument, "2s")),
        )
    nanoseconds = round(exact)
    if positive and nanoseconds == 0:
        raise UsageError(
            "bad-duration",
            Phrase(Argument(argument, text)),
            "is zero, wanted more",
            fix=Phrase(Argument(argument, "2s")),
        )
    return nanoseconds


def parse_number(
    argument: str, text: str, fix: str | None = None, *, negative: bool = False
) -> int:
    """A tid or an inode number; negative ones stand for cgroup paths of 4.3 to 4.5."""
    if re.fullmatch(r"-?[0-9]{1,18}" if negative else r"[0-9]{1,18}", text) is None:
        raise UsageError(
            "bad-number",
            Phrase(Argument(argument, text)),
            "is not a whole number, wanted one such as 1234",
            fix=fix or Phrase(Argument(argument, "1234")),
        )
    return int(text)


def parse_kib(argument: str, text: str) -> int:
    """'16M' or '512K' as KiB; UsageError for others."""
    match = re.fullmatch(r"([1-9][0-9]{0,8})([KMG])(?:iB|B)?", text)
    if match is None:
        raise UsageError(
            "bad-size",
            Phrase(Argument(argument, text)),
            "is no size, wanted a number with K, M or G",
            fix=Phrase(Argument(argument, "16M")),
        )
    return int(match[1]) * {"K": 1, "M": 1024, "G": 1024 * 1024}[match[2]]


def parse_count(argument: str, text: str, fix: str) -> int:
    """How many: from 1 to what an SQLite integer holds."""
    if re.fullmatch(r"[0-9]{1,19}", text) is None or not 1 <= int(text) <= _MAX_COUNT:
        raise UsageError(
            "bad-number",
            Phrase(Argument(argument)),
            f'found "{text}", wanted 1 to {_MAX_COUNT}',
            fix=fix,
        )
    return int(text)


def _check_text(argument: str, value: object) -> None:
    """Python code may give a number, which has no unit."""
    if not isinstance(value, str):
        raise UsageError(
            "bad-duration",
            Phrase(Argument(argument, value)),
            f"is of type {type(value).__name__}, wanted a text such as '2s'",
            fix=Phrase(Argument(argument, "2s")),
        )


def _number(value: float) -> str:
    """Six digits, and all before the point."""
    if isinstance(value, float) and not _SIX_WHOLE <= abs(value) < _MOST_WHOLE:
        return f"{value:.6g}"
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def _counted(value: float) -> str:
    """What other tools count, in groups of three: three digits, and all before the point."""
    size = abs(value)
    if size < _MOST_WHOLE and (size >= _THREE_WHOLE or float(value).is_integer()):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _bytes(value: float) -> str:
    size = abs(value)
    if _rounded(size) < 1024:
        return f"{value:.0f} B"
    for prefix in _BINARY:
        size /= 1024
        if _rounded(size) < 1024 or prefix == _BINARY[-1]:
            break
    return f"{'-' if value < 0 else ''}{_three_digits(size)} {prefix}"


def _duration(value: float) -> str:
    size = abs(value)
    sign = "-" if value < 0 else ""
    if size == 0:
        return "0 s"
    for unit in ("us", "ms", "s"):
        step = _DURATIONS[unit]
        if unit == "s" or _rounded(size / step) < 1000:
            break
    if size < _NS_PER_US:
        return f"{sign}{size:.0f} ns"
    return f"{sign}{_three_digits(size / step)} {unit}"


def _instant(value: float) -> str:
    seconds, rest = divmod(abs(int(value)), _NS_PER_S)
    return f"{'-' if value < 0 else ''}{seconds}.{rest // _NS_PER_US:06d} s"


def _rounded(size: float) -> float:
    """The size as three digits show it, so that 999.9 ms is written 1.00 s."""
    return float(_three_digits(size))


def _three_digits(size: float) -> str:
    if size < 9.995:
        return f"{size:.2f}"
    return f"{size:.1f}" if size < 99.95 else f"{size:.0f}"


_EXAMPLES = {"ns": "100ms", "bytes": "16MiB", "bytes/s": "16MiB/s", "ratio": "5%"}


def parse_quantity(subject: str, text: str, unit: str) -> float:
    """'100ms', '16MiB', '20MB/s', '90%' or '5' as a number in this unit of metrics.

    KiB, MiB ... are powers of 1024, kB or KB, MB ... of 1000. Times and sizes need their
    unit, but for 0: nobody means 100 ns by 100. Other numbers may stand alone.
    Raises: UsageError, for a quantity of another kind too.
    """
    match = re.fullmatch(r"([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(.*)", text.strip())
    if match and not match[2] and float(match[1]) == 0:
        return 0.0
    factor = _factors(unit).get(match[2]) if match else None
    if match is None or factor is None or not math.isfinite(float(match[1]) * factor):
        known = ", ".join(name for name in _factors(unit) if name)
        raise UsageError(
            "bad-quantity",
            subject,
            f"found {text!r}, wanted a number{f' with one of {known}' if known else ''}",
            fix=_EXAMPLES.get(unit, "5"),
        )
    return float(match[1]) * factor


def format_beside(unit: str, value: float, border: str, kept: Callable[[float], bool]) -> str:
    """The value with as many digits as show on which side of the border it is.

    border  a quantity as parse_quantity() takes it; digits are added in its unit
    kept    tells the sides apart
    """
    text = format_value("", unit, value)
    end = re.sub(r"^[+-]?[0-9.]+(e[+-]?[0-9]+)?", "", border.strip())
    try:
        factor = parse_quantity(border, f"1{end}", unit)
        # As format_value() ends a number that needs no unit.
        tail = end or re.sub(r"^[-0-9.,]+(e[+-]?[0-9]+)?", "", text)
        more = (f"{value / factor:.{digits}g}" for digits in range(4, 18))
        shown = [text, *(f"{one}{tail}" for one in more if "e+" not in one)]
        told = (
            one
            for one in shown
            if kept(parse_quantity(border, one.replace(",", ""), unit)) == kept(value)
        )
        return next(told, text)
    except UsageError:  # no unit: a border of 0
        return text


def _factors(unit: str) -> dict[str, float]:
    """What may stand behind a number of this unit."""
    if unit == "ns":
        return dict(_DURATIONS)
    if unit in ("bytes", "bytes/s"):
        decimal = {f"{prefix}B": 1000.0**power for power, prefix in enumerate("kMGT", 1)}
        binary = {prefix: 1024.0**power for power, prefix in enumerate(_BINARY, 1)}
        sizes = {"B": 1.0, **decimal, "KB": 1000.0, **binary}
        ending = unit.removeprefix("bytes")
        return {f"{name}{ending}": factor for name, factor in sizes.items()}
    if unit == "ratio":
        return {"": 1, "%": 0.01}
    return {"": 1, unit: 1}


def seconds(nanoseconds: float) -> float:
    """For tables and calls that have seconds by tradition."""
    return nanoseconds / _NS_PER_S


@dataclass(frozen=True)
class AxisUnit:
    """What the numbers of an axis are in: MiB/s, and how much one of it is."""

    name: str
    size: float

    def label(self, value: float) -> str:
        """A round value without the unit, which the axis has once."""
        return f"{value / self.size:,.6g}"


TRACK_UNITS = {
    "ns": AxisUnit("ms", 1e6),
    "bytes": AxisUnit("MiB", 1024.0**2),
    "bytes/s": AxisUnit("MiB/s", 1024.0**2),
    "ratio": AxisUnit("%", 0.01),
}
"""What the counters of a timeline are drawn in, by the unit of their values."""


def axis_unit(unit: str, most: float) -> AxisUnit:
    """The unit that suits an axis up to this value; the axis has one unit for all ticks."""
    size = abs(most)
    if unit == "ratio":
        return AxisUnit("%", 0.01)
    if unit == "ns":
        fits = [name for name in ("ns", "us", "ms", "s") if size >= _DURATIONS[name]]
        name = fits[-1] if fits else "ns"
        return AxisUnit(name, float(_DURATIONS[name]))
    if unit in ("bytes", "bytes/s"):
        power = 0
        while power < len(_BINARY) and size >= 1024 ** (power + 1):
            power += 1
        name = "B" if power == 0 else _BINARY[power - 1]
        return AxisUnit(name + unit.removeprefix("bytes"), float(1024**power))
    return AxisUnit("" if unit == "count" else unit, 1.0)


def tick_text(unit: str, value: float) -> str:
    """A tick of an axis over many powers: each has its own unit, 100 us, 10 ms, 1 s."""
    one = axis_unit(unit, value)
    return f"{one.label(value)} {one.name}".rstrip()


def round_window_ns(least_ns: float) -> int:
    """The shortest window of 1, 2 or 5 and zeros that is not below this."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if factor * step >= least_ns:
                return factor * step
        step *= 10


def duration_argument(ns: int) -> str:
    """As parse_duration() takes it, without a rest: 50ms."""
    name = next(name for name in ("s", "ms", "us", "ns") if ns % _DURATIONS[name] == 0)
    return f"{ns // _DURATIONS[name]}{name}"


def task_words(comm: object, tid: object) -> str:
    """Name and number; the number once for a task whose name nobody recorded."""
    return str(comm) if comm == f"tid {tid}" else f"{comm} {tid}"


def unit_of_text(text: str) -> Unit:
    """The unit that a text means; one that is not known stays as it is.

    kB and KB are 1000 bytes, as in budgets and margins; what /proc and time(1) call kB
    is KiB.
    """
    if text in _TOOL_TIMES:
        return "ns", float(_TOOL_TIMES[text])
    if text in _TOOL_BYTES:
        return "bytes", float(_TOOL_BYTES[text])
    amount, slash, second = text.rpartition("/")
    if slash and second in ("s", "sec") and amount in _TOOL_BYTES:
        return "bytes/s", float(_TOOL_BYTES[amount])
    if text == "%":
        return "ratio", 0.01
    if text in ("", "count"):
        return "count", 1.0
    return text, 1.0
