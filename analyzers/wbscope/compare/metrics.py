# SPDX-License-Identifier: Apache-2.0
"""Metrics by name: the catalog, what a policy's names mean, and names like a wrong one."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wbscope.base.errors import Argument, Phrase, SetupError, UsageError, nearest
from wbscope.base.result import Notice, unit_of
from wbscope.compare.policy import Policy, Rule, matches, wanted_by
from wbscope.library.library import Library, find_sql_dir
from wbscope.library.sqlfile import SqlFile
from wbscope.measure import TOOLS
from wbscope.measure.metric import BETTER, Better, Metric, split_name

TAKES = ("only", "sum", "mean", "median", "min", "max")
_WINDOWS = ("", "whole")


@dataclass(frozen=True)
class Row:
    """What one number of a metric with `by` says, and from which kernel on another thing.

    None is what the metric says; not_across "" is the same thing on every kernel.
    """

    meaning: str = ""
    not_across: str | None = None

    def border(self, metric: str) -> str:
        """The kernel release, where the metric says `metric`."""
        return metric if self.not_across is None else self.not_across


@dataclass(frozen=True)
class Declared:
    """How the rows of a query become one number of a run, or one for each key.

    `none` is the number of a run that answered and has no such row.  `longest`
    names a column: a row with less than half of the largest value there, such as
    a last window that is cut short, is left out.  `better_in` and `unit_in` name
    columns that tell it row by row.
    """

    query: str
    name: str
    column: str
    take: str
    unit: str
    better: Better
    meaning: str
    weight: str = ""
    by: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    longest: str = ""
    window: str = ""
    none: float | None = None
    better_in: str = ""
    unit_in: str = ""
    not_across: str = ""

    @property
    def family(self) -> str:
        """The metric's name without keys."""
        return f"{self.query}.{self.name}"


@dataclass(frozen=True)
class Catalog:
    """All of them, in the order of the file, which is that of tables."""

    metrics: tuple[Declared, ...]
    rows: Mapping[str, Row]
    not_compared: Mapping[str, str]

    def units(self) -> dict[str, str]:
        """The unit of each family, but for those that tell it row by row."""
        return {metric.family: metric.unit for metric in self.metrics if not metric.unit_in}

    def of(self, query: str) -> list[Declared]:
        """Those that are made from this query."""
        return [metric for metric in self.metrics if metric.query == query]


def load_catalog(library: Library, folder: Path | None = None) -> Catalog:
    """Read and check it; SetupError when it does not fit the queries."""
    path = (find_sql_dir() if folder is None else folder) / "catalog" / "metrics.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _broken(path, f"cannot be read: {error}") from error
    metrics = tuple(_declared(path, library, entry) for entry in document.get("metric", []))
    seen: set[str] = set()
    for metric in metrics:
        if metric.family in seen:
            raise _broken(path, f"{metric.family} is there twice")
        seen.add(metric.family)
    rows = {name: Row(**entry) for name, entry in document.get("rows", {}).items()}
    return Catalog(metrics, rows, document.get("not_compared", {}))


def _declared(path: Path, library: Library, entry: dict[str, Any]) -> Declared:
    told = dict(entry)
    file = library.files.get(told.get("query", ""))
    if file is None or file.kind != "query":
        raise _broken(path, f"query {told.get('query')!r} is none of the library")
    name = told.get("name", "")
    column = told.setdefault("column", name)
    told["by"] = tuple(told.get("by", ()))
    if "none" in told:
        told["none"] = float(told["none"])
    known = next((metric for metric in file.metrics if metric.column == column), None)
    told.setdefault("better", known.better if known else "")
    told.setdefault("meaning", known.meaning if known else "")
    if note := told.pop("note", ""):
        told["meaning"] = f"{told['meaning']} ({note})"
    told["unit"] = unit_of(name) or ""
    try:
        declared = Declared(**told)
    except TypeError as error:
        raise _broken(path, f"{file.name}.{name}: {error}") from error
    _check(path, file, declared)
    return declared


def _check(path: Path, file: SqlFile, metric: Declared) -> None:
    columns = [column.name for column in file.columns]
    used = [metric.column, *metric.by, *metric.where, metric.weight]
    used += [metric.longest, metric.better_in, metric.unit_in]
    missing = [column for column in used if column and column not in columns]
    problems = {
        f"no column {', '.join(missing)}": bool(missing),
        f"take is {metric.take!r}, wanted one of {', '.join(TAKES)}": metric.take not in TAKES,
        f"better is {metric.better!r}": metric.better not in BETTER,
        "no meaning": not metric.meaning,
        f"window is {metric.window!r}": metric.window not in _WINDOWS,
        "window = whole, and the query has no windows": metric.window == "whole"
        and "window" not in file.filters,
        "a weight is for a mean": bool(metric.weight) and metric.take != "mean",
    }
    for problem, is_there in problems.items():
        if is_there:
            raise _broken(path, f"{metric.family}: {problem}")


def _broken(path: Path, message: str) -> SetupError:
    return SetupError(
        "broken-sql-library",
        str(path),
        message,
        fix="make setup    # or point WBSCOPE_SQL_DIR at a whole sql/ folder",
    )


_MOST_GROUPS = 8


def near_metrics(wanted: str, names: Iterable[str], most: int = 3) -> list[str]:
    """By the whole name, else by the part without the query, which may be left out."""
    known = list(dict.fromkeys(names))
    found = nearest(wanted, known, most)
    if found:
        return found
    shorts = {name.partition(".")[2]: name for name in reversed(known)}
    return [shorts[short] for short in nearest(wanted, shorts, most)]


def unknown_metric(wanted: str, names: Iterable[str], where: str) -> UsageError:
    """With a fix that finds something in these names.

    where   whose metrics the names are: "these runs"
    """
    known = list(dict.fromkeys(names))
    close: list[str] = []
    if "*" in wanted:
        queries = dict.fromkeys(name.partition(".")[0] for name in known)
        close = [f"{query}.*" for query in nearest(wanted.partition(".")[0], queries)]
    close = close or near_metrics(wanted, known)
    word = wanted.strip("*")
    groups = [f"{query}.*" for query in dict.fromkeys(name.partition(".")[0] for name in known)]
    close = close or groups[:_MOST_GROUPS]
    fix = close[0] if close else "*"
    if sum(name.startswith(word) for name in known) > 1:
        fix = f"{word}*"
    return UsageError(
        "unknown-metric",
        wanted,
        f"is no metric of {where}",
        have=", ".join(close) or None,
        fix=Phrase(Argument("metrics", [fix])),
    )


@dataclass(frozen=True)
class RuleMetric:
    """A rule and one metric that it is about, which no run may have."""

    rule: Rule
    metric: Metric
    is_there: bool
    budgets: tuple[Rule, ...] = ()  # of further rules for the same metric


def declared_by(
    policy: Policy, metrics: Sequence[Metric], families: Iterable[str]
) -> tuple[list[RuleMetric], list[Notice]]:
    """Each metric once, and what to know about the choice.

    Of several rules for a metric, one with its whole name goes before a pattern;
    bounds of rules that are as exact as each other all hold.

    Raises: UsageError for a name that nothing can have, and for two margins.
    """
    by_name = {metric.name: metric for metric in metrics}
    found: dict[str, RuleMetric] = {}
    told: list[Notice] = []
    possible = list(families)
    for rule in sorted(policy.rules, key=lambda rule: "*" in rule.pattern):
        if "*" in rule.pattern:
            declared = _by_pattern(rule, by_name, possible, told)
            declared = [one for one in declared if not _is_exact(found.get(one.metric.name))]
        else:
            declared = [_by_name(rule, by_name, possible, told)]
        for one in declared:
            earlier = found.get(one.metric.name)
            found[one.metric.name] = one if earlier is None else _both(earlier, one)
    rules = list(policy.rules)
    return sorted(found.values(), key=lambda one: rules.index(one.rule)), told


def _is_exact(one: RuleMetric | None) -> bool:
    return one is not None and "*" not in one.rule.pattern


def _both(first: RuleMetric, second: RuleMetric) -> RuleMetric:
    """A margin and budgets, or budgets; two margins contradict each other."""
    if first.rule.margin is not None and second.rule.margin is not None:
        raise UsageError(
            "declared-twice",
            first.metric.name,
            f"has a margin from {first.rule.pattern} and one from {second.rule.pattern}",
            fix="leave one of the two out",
        )
    if second.rule.margin is not None:
        first, second = second, first
    return replace(first, budgets=(*first.budgets, second.rule, *second.budgets))


def _by_name(
    rule: Rule, by_name: dict[str, Metric], possible: list[str], told: list[Notice]
) -> RuleMetric:
    names = matches(rule.pattern, by_name)
    if len(names) > 1:
        raise UsageError(
            "ambiguous-metric",
            rule.pattern,
            f"is {len(names)} metrics",
            have=", ".join(names),
            fix=f'[metrics."{names[0]}"]',
        )
    if not names:
        return _absent(rule, possible, list(by_name))
    metric = by_name[names[0]]
    if rule.better is not None and metric.better not in ("neutral", rule.better):
        turned = f"{metric.name} is better when {metric.better}; the policy says {rule.better}"
        told.append(Notice("direction-turned", turned))
    return RuleMetric(rule, metric, True)


def _by_pattern(
    rule: Rule, by_name: dict[str, Metric], possible: list[str], told: list[Notice]
) -> list[RuleMetric]:
    """Those with a direction, where a margin needs one."""
    metrics = [by_name[name] for name in matches(rule.pattern, by_name)]
    if not metrics:
        return [_absent(rule, possible, list(by_name))]
    if rule.better is not None:
        for metric in metrics:
            if metric.better not in ("neutral", rule.better):
                raise UsageError(
                    "direction-turned",
                    rule.pattern,
                    f"means {metric.name} too, which is better when {metric.better}",
                    fix=f'[metrics."NAME"] with better = "{rule.better}", for each that is meant',
                )
        return [RuleMetric(rule, metric, True) for metric in metrics]
    neutral = [metric.name for metric in metrics if metric.better == "neutral"]
    if rule.margin is None or not neutral:
        return [RuleMetric(rule, metric, True) for metric in metrics]
    if len(neutral) == len(metrics):
        raise UsageError(
            "no-direction",
            rule.pattern,
            "means only metrics that are better neither when lower nor when higher",
            have=", ".join(neutral),
            fix='better = "lower"    # or "higher", if you know that it is so here',
        )
    text = f"{rule.pattern} leaves out what has no direction: {', '.join(neutral)}"
    told.append(Notice("no-direction", text))
    return [RuleMetric(rule, metric, True) for metric in metrics if metric.better != "neutral"]


def _absent(rule: Rule, possible: list[str], there: list[str]) -> RuleMetric:
    """No run has it: told as refused, unless nothing ever could have it."""
    if not _could_be(rule, possible, there):
        close = near_metrics(rule.pattern, [*there, *possible])
        fix: str = "wbscope queries --verbose"
        if close and rule.is_alone:
            fix = Phrase(Argument("budget", f"{close[0]} {rule.budget}"))
        elif close:
            fix = f'[metrics."{close[0]}"]'
        raise UsageError(
            "unknown-metric",
            rule.pattern,
            "is no metric",
            have=", ".join(close) or None,
            fix=fix,
        )
    meaning = "a number that none of these runs has"
    return RuleMetric(rule, Metric(rule.pattern, "", "neutral", meaning, "the policy"), False)


def _could_be(rule: Rule, possible: list[str], there: list[str]) -> bool:
    """A query's number, or one of another tool: what these print is theirs to name."""
    tool, dot, _ = split_name(rule.pattern)[0].partition(".")
    if dot and tool in {*TOOLS, *(name.partition(".")[0] for name in _of_tools(there, possible))}:
        return True
    return any(map(wanted_by([rule]), possible))


def _of_tools(there: list[str], possible: list[str]) -> Iterator[str]:
    """Metrics of these runs that no query gives."""
    queries = {family.partition(".")[0] for family in possible}
    return (name for name in there if name.partition(".")[0] not in queries)
