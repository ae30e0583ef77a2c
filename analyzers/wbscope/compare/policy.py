# SPDX-License-Identifier: Apache-2.0
"""The policy of a gate: which metrics decide, by what margin, and what is refused."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wbscope.base.errors import Argument, InputError, Phrase, UsageError
from wbscope.base.system import read_toml, starting_file
from wbscope.base.units import parse_quantity
from wbscope.compare.sameness import FACTS, is_fact
from wbscope.measure.metric import Better, better_of, is_sane, split_name

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
_BUDGET = re.compile(r"(<=|>=|==|[<>](?!=))\s*(\S.*)")
# Below this, nobody has runs enough.
_LEAST_ALPHA = 0.0001
# More than anybody records of one thing.
_MOST_RUNS = 10_000
CHECK = "check"
_EXAMPLE = """\
[metrics."throttle_summary.pause_p99_ns"]
margin = "10%"
"""
_RULE_KEYS = ("margin", "better", "budget", "each_run")


@dataclass(frozen=True)
class Margin:
    """How much worse is still good: a share of the base, or a quantity of the metric's unit."""

    text: str
    relative: float | None

    def quantity(self, subject: str, unit: str) -> float:
        """The margin as a number of this unit; only where it is not relative."""
        return abs(parse_quantity(subject, self.text, unit))


@dataclass(frozen=True)
class Budget:
    """An absolute border, such as <= 100ms."""

    sign: str
    text: str

    def __str__(self) -> str:
        return f"{self.sign} {self.text}"

    def allows(self, value: float, subject: str, unit: str) -> bool:
        """True when the value keeps it."""
        return _COMPARE[self.sign](value, parse_quantity(subject, self.text, unit))


@dataclass(frozen=True)
class Rule:
    """What is asked of the metrics that a name stands for.

    margin    compare with the base: worse by more is a regression
    budget    the median of the runs keeps it
    each_run  every single run keeps it
    is_alone  it was given by itself, not in a file
    """

    pattern: str
    margin: Margin | None = None
    better: Better | None = None
    budget: Budget | None = None
    each_run: Budget | None = None
    is_alone: bool = False


@dataclass(frozen=True)
class Policy:
    """A whole policy; docs/compare.md has every key."""

    rules: tuple[Rule, ...]
    alpha: float = 0.05
    min_runs: int = 4
    drop_first: int = 0
    differs: tuple[str, ...] = ()
    lost_events: str = "refuse"
    damaged: str = "refuse"
    failed: str = "refuse"
    unknown: str = "tell"
    inconclusive: str = "inconclusive"
    worse: str = "worse"
    fail_when: str = "estimate"
    sessions: str = "blocked"
    require: tuple[str, ...] = ()
    expect_runs: int | None = None
    source: str = ""  # its file, as errors name it

    def counted(self, status: str) -> str:
        """What a verdict counts as: pass or fail where the policy says so, else itself."""
        told = {"INCONCLUSIVE": self.inconclusive, "WORSE": self.worse}.get(status, status)
        return told if told in ("pass", "fail") else status

    def wants(self, family: str) -> bool:
        """True when a rule may be about a metric of this family."""
        return wanted_by(self.rules)(family)

    def check_units(self, units: Mapping[str, str]) -> None:
        """Of what is known before any run is read: the unit of each family of metrics.

        Raises: UsageError for a quantity of another kind.
        """
        for rule in self.rules:
            asked = {unit for family, unit in units.items() if _may_match(rule.pattern, family)}
            if len(asked) != 1:
                continue  # unknown, or a pattern that is for several kinds of numbers
            (unit,) = asked
            if rule.margin is not None and rule.margin.relative is None:
                rule.margin.quantity(rule.pattern, unit)
            for budget in (rule.budget, rule.each_run):
                if budget is not None:
                    parse_quantity(rule.pattern, budget.text, unit)

    @property
    def checks(self) -> bool:
        """True when each run must agree with what is beside its trace."""
        return CHECK in self.require

    @property
    def compares(self) -> bool:
        """True when a base is needed."""
        return any(rule.margin is not None for rule in self.rules)


def read_policy(path: Path) -> Policy:
    """Read and check a policy; nothing in it is skipped silently."""
    try:
        document = read_toml(path)
    except OSError as error:
        raise InputError(
            "no-policy",
            str(path),
            f"cannot be read: {error.strerror or error}",
            fix=starting_file(path, _EXAMPLE),
        ) from error
    except ValueError as error:
        raise _bad(path, f"is no TOML: {error}", 'margin = "5%"') from error
    return _policy(path, document)


def budget_rule(text: str) -> Rule:
    """A rule from the command line: 'pause_p99_ns <= 100ms'."""
    match = re.fullmatch(r"\s*([^\s<>=]+(?:\[[^\]]*\])?)\s*((?:<=|>=|<|>|==).*)", text)
    if match is None:
        raise UsageError(
            "bad-budget",
            Phrase(Argument("budget", text)),
            "is no NAME <= QUANTITY",
            fix=Phrase(Argument("budget", "throttle_summary.pause_p99_ns <= 100ms")),
        )
    budget = _budget(Phrase(Argument("budget")), match[2])
    if not _is_finite(budget.text):
        raise UsageError(
            "bad-budget",
            Phrase(Argument("budget", text)),
            f"is {budget.text}, wanted a finite border",
            fix=Phrase(Argument("budget", "throttle_summary.pause_p99_ns <= 100ms")),
        )
    return Rule(match[1], budget=budget, is_alone=True)


def matches(pattern: str, names: Iterable[str]) -> list[str]:
    """The metrics that a rule names: whole, with `*`, or without the query in front."""
    listed = list(names)
    if "*" in pattern:
        parts = (re.escape(part) for part in pattern.split("*"))
        wanted = re.compile(".*".join(parts))
        return [name for name in listed if wanted.fullmatch(name)]
    if pattern in listed:
        return [pattern]
    return [name for name in listed if name.partition(".")[2] == pattern]


def wanted_by(rules: Sequence[Rule]) -> Callable[[str], bool]:
    """Whether one of these rules may be about a metric of a family."""
    return lambda family: any(_may_match(rule.pattern, family) for rule in rules)


def _may_match(pattern: str, family: str) -> bool:
    wanted = pattern.partition("[")[0]
    if "*" in pattern:
        # Before the first star, one has to begin as the other does.
        start = pattern.partition("*")[0].partition("[")[0]
        return family.startswith(start) or start.startswith(family)
    return wanted in (family, family.partition(".")[2])


def _policy(path: Path, document: Mapping[str, Any]) -> Policy:
    known = ("alpha", "min_runs", "drop_first", "differs", "lost_events", "damaged", "failed",
             "unknown", "inconclusive", "worse", "fail_when", "sessions", "require", "expect_runs",
             "metrics")  # fmt: skip
    _check_keys(path, "the policy", document, known)
    metrics = document.get("metrics", {})
    if not isinstance(metrics, dict) or not metrics:
        raise _bad(path, "declares no metric", '[metrics."throughput.written_bytes_per_s"]')
    alpha = document.get("alpha", Policy.alpha)
    if not isinstance(alpha, float) or not _LEAST_ALPHA <= alpha < 0.5:
        wanted = f"wanted a share from {_LEAST_ALPHA:g} to 0.5"
        raise _bad(path, f"alpha is {alpha!r}, {wanted}", "alpha = 0.05")
    return Policy(
        rules=tuple(_rule(path, name, table) for name, table in metrics.items()),
        alpha=alpha,
        min_runs=_count(path, document, "min_runs", Policy.min_runs, 1),
        drop_first=_count(path, document, "drop_first", Policy.drop_first, 0),
        differs=_facts(path, document.get("differs", [])),
        lost_events=_word(path, document, "lost_events", ("refuse", "allow")),
        damaged=_word(path, document, "damaged", ("refuse", "allow")),
        failed=_word(path, document, "failed", ("refuse", "allow")),
        unknown=_word(path, document, "unknown", ("tell", "refuse")),
        inconclusive=_word(path, document, "inconclusive", ("inconclusive", "pass", "fail")),
        worse=_word(path, document, "worse", ("worse", "pass", "fail")),
        fail_when=_word(path, document, "fail_when", ("estimate", "interval")),
        sessions=_word(path, document, "sessions", ("blocked", "ignore")),
        require=_required(path, document.get("require", [])),
        expect_runs=_count(path, document, "expect_runs", 10, 1)
        if "expect_runs" in document
        else None,
        source=str(path),
    )


def _rule(path: Path, name: str, table: Any) -> Rule:
    if not isinstance(table, dict):
        raise _bad(path, f"{name} is {table!r}, wanted a table", f'[metrics."{name}"]')
    _check_keys(path, name, table, _RULE_KEYS)
    if not table.keys() & {"margin", "budget", "each_run"}:
        raise _bad(path, f"{name} asks for nothing", 'margin = "5%"   # or budget = "<= 100ms"')
    if split_name(name) == (name, {}) and re.search(r"[\[\]\s]", name):
        raise _bad(path, f"{name!r} is no name of a metric", '[metrics."QUERY.NAME[comm=dd]"]')
    better = table.get("better")
    return Rule(
        pattern=name,
        margin=_margin(path, name, table["margin"]) if "margin" in table else None,
        better=None if better is None else better_of(str(better), f"{path}: {name}"),
        budget=_budget_of(path, name, table, "budget"),
        each_run=_budget_of(path, name, table, "each_run"),
    )


def _margin(path: Path, name: str, value: Any) -> Margin:
    text = str(value).strip()
    share = re.fullmatch(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*%", text)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _bad(path, f"{name}: margin is {value!r}", 'margin = "5%"')
    if text.startswith("-"):
        raise _bad(path, f"{name}: margin {text} is negative", f'margin = "{text[1:]}"')
    if not _is_finite(text):
        found = f"{name}: margin is {text!r}, wanted a finite one: it could never fail"
        raise _bad(path, found, 'margin = "5%"', _table(name))
    return Margin(text, float(share[1]) / 100 if share else None)


def _budget_of(path: Path, name: str, table: Mapping[str, Any], key: str) -> Budget | None:
    if key not in table:
        return None
    budget = _budget(f"{path}: {name}", table[key])
    if not _is_finite(budget.text):
        found = f"{name}: {key} is {str(budget)!r}, wanted a finite border"
        raise _bad(path, found, f'{key} = "<= 100ms"', _table(name))
    return budget


def _is_finite(text: str) -> bool:
    """False for inf, nan and 1e999s; what else is no number is told when its unit is known."""
    if re.match(r"[+-]?(inf|nan)", text, re.IGNORECASE):
        return False
    number = re.match(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?", text, re.IGNORECASE)
    return number is None or is_sane(float(number[0]))


def _table(name: str) -> str:
    """Where in the file it is."""
    return f'[metrics."{name}"]'


def _budget(subject: str, value: Any) -> Budget:
    match = _BUDGET.fullmatch(str(value).strip())
    if match is None:
        raise UsageError(
            "bad-budget",
            subject,
            f"found {value!r}, wanted <=, >=, <, > or == and a quantity",
            fix='budget = "<= 100ms"',
        )
    return Budget(match[1], match[2].strip())


def _facts(path: Path, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _bad(path, f"differs is {value!r}, wanted a list of facts", 'differs = ["kernel"]')
    for name in value:
        if not is_fact(name):
            raise _bad(
                path,
                f"differs has {name!r}, wanted facts of {', '.join(FACTS)}",
                f'differs = ["{_close(name, FACTS) or "kernel"}"]',
            )
    return tuple(value)


def _required(path: Path, value: Any) -> tuple[str, ...]:
    known = isinstance(value, list) and all(name == CHECK for name in value)
    if not known:
        told = f'require is {value!r}, wanted a list of "{CHECK}" or an empty one'
        raise _bad(path, told, f'require = ["{CHECK}"]')
    return tuple(value)


def _count(path: Path, document: Mapping[str, Any], key: str, default: int, least: int) -> int:
    value = document.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST_RUNS:
        told = f"{key} is {value!r}, wanted a number from {least} to {_MOST_RUNS}"
        raise _bad(path, told, f"{key} = {default}", key)
    return value


def _word(path: Path, document: Mapping[str, Any], key: str, words: tuple[str, ...]) -> str:
    value = document.get(key, words[0])
    if value not in words:
        raise _bad(
            path, f"{key} is {value!r}, wanted one of {', '.join(words)}", f'{key} = "{words[0]}"'
        )
    return str(value)


def _check_keys(path: Path, what: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise _bad(
                path,
                f"{what} has a key {key!r}, wanted one of {', '.join(known)}",
                f"{_close(key, known) or known[0]} = ...",
            )


def _close(word: str, words: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word, list(words), n=1)), None)


def _bad(path: Path, message: str, fix: str, at: str | None = None) -> UsageError:
    return UsageError("bad-policy", str(path), message, at=at, fix=fix)
