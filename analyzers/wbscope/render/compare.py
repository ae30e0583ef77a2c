# SPDX-License-Identifier: Apache-2.0
"""A comparison: the metrics that matter most, a table for each query, or the table of mmtests.

As in mmtests, values are means and a gain is positive when it is better, whichever
way that is.  Different from it, on purpose: a fall to 0 of what is better higher is
-100 %, not 0 %; a rise from 0 has no per cent; the table of vmstat has per cent, too;
what makes numbers doubtful stands above the table, and what is not judged has no per
cent and is named below with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len

from wbscope.base.result import Amount, Result
from wbscope.base.units import seconds
from wbscope.compare.comparison import Comparison, Row, Sample, Side, is_published
from wbscope.compare.ranking import FALSE_SHARE, is_constant, matter_most
from wbscope.compare.sameness import facts_text
from wbscope.measure.metric import Metric, split_name
from wbscope.render.blocks import (
    Block,
    Document,
    Heading,
    Items,
    Table,
    Text,
    blocks_text,
    table_of,
)
from wbscope.render.changes import (
    FACES,
    better_text,
    change_text,
    described_text,
    interval_text,
    mean_text,
    median_text,
    row_p,
    runs_text,
    verdict_lines,
)
from wbscope.render.text import PAGE_WIDTH, folded, printable, warning_text


def compare_document(
    comparison: Comparison,
    faces: bool = True,
    full: bool = True,
    describe: bool = False,
    html: Callable[[], str] | None = None,
) -> Document:
    """What it comes to, how sure that is, what matters most; with `full` all metrics.

    `describe` adds means and standard deviations, which decide nothing, to the text; Markdown
    and HTML have them.
    """
    from wbscope.render.compare_json import compare_json, row_record

    return Document(
        lambda: compare_blocks(comparison, faces, full, describe=True),
        lambda: compare_json(comparison),
        lambda: table_of("compare", [row_record(row) for row in comparison.rows]),
        lambda width: blocks_text(compare_blocks(comparison, faces, full, describe), width),
        html,
        warnings=comparison.warnings,
    )


def compare_blocks(
    comparison: Comparison, faces: bool = True, full: bool = True, describe: bool = False
) -> Iterator[Block]:
    """The same, block by block."""
    sides = comparison.sides[1:]
    told = [verdict_lines(comparison, side.name) for side in sides]
    for place, words in enumerate(told):
        yield Text(words[0]) if place else Heading(words[0], 1)
    yield Text(how_sure(comparison))
    # Of several sides the words stand at their tables.
    yield from map(Text, told[0][1:] if len(told) == 1 else [])
    for place, doubt in enumerate(doubt_lines(comparison)):
        yield Text(doubt, is_doubt=True, apart=place == 0)
    for side, words in zip(sides, told, strict=True):
        if len(sides) > 1:
            if full:
                yield Heading(f"{side.name} against {comparison.base.name}")
            yield from (Text(line, apart=place == 0) for place, line in enumerate(words))
        rows = comparison.of_side(side.name)
        yield from _all_metrics(rows, faces, describe) if full else _first_metrics(rows, faces)
    if full:
        words = ["How to read it.", *how_to_read(comparison, faces)]
    else:
        words = list(_how_to_read_first(comparison, faces))
    yield Text(" ".join(words), is_aside=True, apart=True)
    if not full:
        yield Text("All metrics: --full. A page with a dot for each run: --html FILE.")


def _all_metrics(rows: Sequence[Row], faces: bool, describe: bool) -> Iterator[Block]:
    for group, grouped in groupby(shown_rows(rows), key=group_name):
        members = list(grouped)
        yield Heading(group, 3)
        table = [_cells(row, faces, short_metric(row)) for row in members]
        yield Table(
            Result("compare", _heads(members[0]), {}, table), group, layout="lean", apart=False
        )
        yield Items(tuple(_sentences(members)))
        if describe:
            yield Text("not the test, mean ± s.d. (trimmed: without the smallest and the largest):")
            yield from (Text(line, "  ") for line in _described(members))
    if told := constant_text(rows):
        yield Text(told, apart=True)
    yield from (Text(told, apart=True) for told in left_out(rows))


# Of the metrics that surely changed.
MOST_TOLD = 10
_ONCE = "keys of one metric once where they moved in the same direction"


def is_short(comparison: Comparison) -> bool:
    """Whether all metrics are no more than would be told."""
    sides = (side.name for side in comparison.sides[1:])
    return all(len(shown_rows(comparison.of_side(name))) <= MOST_TOLD for name in sides)


def _first_metrics(rows: Sequence[Row], faces: bool) -> Iterator[Block]:
    """What matters most by evidence."""
    told = matter_most(rows, MOST_TOLD)
    if not told:
        return
    if told[0].row.is_untested:
        yield Text("The largest changes, as they are:", apart=True)
    table = [
        (
            *_cells(one.row, faces, one.row.metric.name)[:-1],
            ", ".join(row.metric.name for row in one.alike),
        )
        for one in told
    ]
    heads = (*_heads(told[0].row)[:-1], "and alike")
    result = Result("compare", heads, {}, table)
    yield Table(result, "What matters most, by evidence", layout="lean", below="and alike")


def _heads(first: Row) -> tuple[str, ...]:
    return ("", "metric", first.base, first.side, "change", "interval", "p", "n")


def title_line(comparison: Comparison) -> str:
    """Who against whom."""
    sides = ", ".join(_runs_of(side) for side in comparison.sides[1:])
    return printable(f"wbscope compare: {sides}, against {_runs_of(comparison.base)}")


def how_sure(comparison: Comparison) -> str:
    """A: 6 runs, B: 6 runs; warnings below: 2 x not-the-same."""
    base, *others = comparison.sides
    runs = printable(", ".join(_runs_of(side) for side in (*others, base)))
    warned = warned_text(comparison)
    return f"{runs}; {warned}." if warned else f"{runs}."


def warned_text(comparison: Comparison) -> str:
    """What stands below as lines, in one: it is known before the first number; or nothing."""
    slugs = [notice.slug for notice in comparison.warnings]
    slugs += ["not-the-same" for _ in comparison.differing]
    doubts = [slug if n == 1 else f"{n} x {slug}" for slug, n in Counter(slugs).items()]
    if comparison.unknown:
        doubts.append("unknown facts")
    return printable(f"warnings below: {', '.join(doubts)}") if doubts else ""


def doubt_lines(comparison: Comparison) -> list[str]:
    """All that makes the numbers doubtful."""
    lines = [warning_text(notice) for notice in comparison.warnings]
    lines += [f"warning[not-the-same]: {one.text()}" for one in comparison.differing]
    if comparison.unknown:
        told = f"not recorded for every run, so not compared: {facts_text(comparison.unknown)}"
        lines.append(printable(told))
    return lines


def shown_rows(rows: Iterable[Row]) -> list[Row]:
    """Those that both sides have, and in which there is something to see."""
    there = (row for row in rows if row.sample.values and row.base_sample.values)
    return [row for row in there if not is_constant(row)]


def constant_text(rows: Iterable[Row]) -> str:
    """What is one value in all runs of both sides; empty when nothing is."""
    told = [
        f"{row.metric.name} {median_text(row.metric, row.sample)}"
        for row in rows
        if is_constant(row)
    ]
    return printable(f"the same in all runs: {', '.join(told)}") if told else ""


def group_name(row: Row) -> str:
    """The query, or the tool, that a metric is from."""
    return row.metric.name.partition(".")[0]


def short_metric(row: Row) -> str:
    """The metric without its group; the unit is in each cell."""
    return row.metric.name.partition(".")[2] or row.metric.name


def _runs_of(side: Side) -> str:
    count = len(side.runs)
    return f"{side.name}: {count} run{'' if count == 1 else 's'}"


def _described(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        sides = ((row.base, row.base_sample), (row.side, row.sample))
        told = (f"{side} {described_text(row.metric, sample)}" for side, sample in sides)
        yield f"{short_metric(row)}: {', '.join(told)}"


def _cells(row: Row, faces: bool, name: str) -> tuple[str, ...]:
    return (
        FACES[row.outcome] if faces else "",
        name,
        Amount(median_text(row.metric, row.base_sample)),
        Amount(median_text(row.metric, row.sample)),
        Amount(change_text(row)),
        Amount(interval_text(row.metric, row.shift)),
        Amount(row_p(row)),
        Amount(runs_text(row.sample, row.base_sample)),
    )


def _sentences(rows: Iterable[Row]) -> list[str]:
    """Once for all keys of a family that say the same; with the key where they do not."""
    metrics = {row.metric.meaning: row.metric for row in reversed(list(rows))}
    families = Counter(split_name(metric.name)[0] for metric in metrics.values())
    told = []
    for meaning, metric in reversed(metrics.items()):
        family = split_name(metric.name)[0]
        name = family if families[family] == 1 else metric.name
        label = printable(name.partition(".")[2] or name)
        told.append(f"{label} ({better_text(metric)}): {meaning}")
    return told


def left_out(rows: Iterable[Row]) -> Iterator[str]:
    """Metrics that one side has not, by the reason, and those that are refused."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.shift is None:
            reasons.setdefault(row.reason, []).append(printable(row.metric.name))
    for reason, names in reasons.items():
        yield f"not judged, {reason}: {', '.join(names)}"


def how_to_read(comparison: Comparison, faces: bool) -> list[str]:
    """What change, interval, ~ and faces are, as sentences."""
    if not is_tested(comparison):
        return one_run_each(comparison) if is_untested(comparison) else []
    level = level_text(comparison)
    count = len({row.metric.name for row in comparison.rows if row.shift is not None})
    words = [
        f"Columns of sides ({comparison.base.name}, ...) are medians of runs."
        f" change is the Hodges-Lehmann shift, interval what it can be with {level} confidence."
        f" ~ stands where {tests_text(comparison, 'the')} cannot tell it from chance (p above"
        f" {comparison.alpha:g})."
    ]
    if is_untested(comparison):
        words.append(
            "Of metrics with one run each, which nothing tests, it is the change as it is."
        )
    if faces:
        words.append(
            ":) better and :( worse: the test is sure that it changed, and the estimate, which is"
            f" not tested, is more than {comparison.margin * 100:g} %; :| anything else."
        )
    if count > 1 and any(row.q is not None for row in comparison.rows):
        words.append(
            f"Of those marked, at most {FALSE_SHARE * 100:g} % are expected to be chance"
            f" (Benjamini-Hochberg over {count} metrics, of which those with the same order of runs"
            " are one): declare those that count in a policy and use wbscope gate."
        )
    elif count > 1:
        words.append(
            f"With {count} metrics at that level, about {count * comparison.alpha:.2g} look changed"
            " by chance alone: declare those that count in a policy and use wbscope gate."
        )
    return words


def _how_to_read_first(comparison: Comparison, faces: bool) -> Iterator[str]:
    if not is_tested(comparison):
        if is_untested(comparison):
            yield from one_run_each(comparison)
            yield f"Listed are the largest changes, {_ONCE}."
        return
    yield (
        "Medians of runs; change is the Hodges-Lehmann shift, interval what it can be with"
        f" {level_text(comparison)} confidence."
    )
    yield (
        f"Listed is what {tests_text(comparison, 'an')} tells from chance among all these metrics"
        f" (Benjamini-Hochberg: at most {FALSE_SHARE * 100:g} % of it is expected to be chance),"
        f" metrics with the same order of runs and {_ONCE}."
    )
    if is_untested(comparison):
        yield "Of metrics with one run each, which nothing tests, it is the largest changes."
    margin = f"{comparison.margin * 100:g} %"
    if faces:
        yield f":) better and :( worse by more than {margin} as estimated."
    yield f"same: the whole interval is within {margin}; undecided: all else."


def one_run_each(comparison: Comparison) -> list[str]:
    """What the numbers are where no test was possible."""
    return [
        f"Columns of sides ({comparison.base.name}, ...) are values of one run each, and change is"
        " from the one to the other. No test is possible with one run each, so there is no interval"
        " and no p, and any change may be chance."
    ]


def is_tested(comparison: Comparison) -> bool:
    """Whether there is a metric that more than one run, or a published mean, tells of."""
    return any(row.shift is not None and not row.is_untested for row in comparison.rows)


def is_untested(comparison: Comparison) -> bool:
    """Whether there is a metric with one run each."""
    return any(row.shift is not None and row.is_untested for row in comparison.rows)


def tests_text(comparison: Comparison, article: str) -> str:
    """The tests that were made."""
    shifts = [row.shift for row in comparison.rows if row.shift and not row.is_untested]
    means = sum(map(is_published, shifts))
    ranks = [f"{article} exact Mann-Whitney test"] if means < len(shifts) else []
    return " or ".join([*ranks, *(["Welch's t of published means"] if means else [])])


def level_text(comparison: Comparison) -> str:
    """95 %"""
    return f"{100 - comparison.alpha * 100:g} %"


_OPS = "ops."
_VMSTAT = "mmtests_vmstat.value"
_NO_PERCENT = "---"
# Times are in seconds where two decimals of them say something.
_LEAST_SECONDS = 0.1
# Above this, two decimals are no digits of the number.
_MOST_DECIMALS = 1e15


def mmtests_text(comparison: Comparison, width: int = PAGE_WIDTH) -> str:
    """All metrics that the base and another side have; text around them has this width."""
    rows = [row for row in comparison.rows if row.base_sample.values and row.sample.values]
    names = list(dict.fromkeys(row.metric.name for row in rows))
    by_side = {(row.side, row.metric.name): row for row in rows}
    sides = [side.name for side in comparison.sides]
    table = [["", *(cell for side in sides for cell in (printable(side), ""))]]
    for name in names:
        found = [by_side.get((side, name)) for side in sides[1:]]
        table.append(_mmtestspage_line(next(row for row in found if row is not None), found))
    doubts = [f"{folded(line, width)}\n" for line in doubt_lines(comparison)]
    text = "".join([*doubts, "\n"] if doubts else []) + _aligned(table)
    return text + _left_out(comparison, width) + _legend(comparison, rows, width)


def gain(metric: Metric, base: float, value: float) -> float | None:
    """Per cent by which it is better, or by which it moved where neither way is.

    None where the base is 0 and the value is not.
    """
    if base == value:
        return 0.0
    if base == 0:
        return None
    change = (value - base) * 100 / abs(base)
    if metric.better == "neutral":
        return abs(change)
    return -change if metric.better == "lower" else change


def _mmtestspage_line(first: Row, rows: Sequence[Row | None]) -> list[str]:
    metric, base = first.metric, first.base_sample
    samples = [base, *(row.sample for row in rows if row is not None)]
    in_seconds = _in_seconds(metric, samples)
    cells = [_label(metric), _number(metric, base, in_seconds), _percent(0.0, False)]
    for row in rows:
        if row is None:
            cells += ["-", ""]
        else:
            cells += [_number(metric, row.sample, in_seconds), _percent(_gain(row), row.is_sure)]
    return cells


def _in_seconds(metric: Metric, samples: Sequence[Sample]) -> bool:
    """Of what benchmarks measure, as mmtests has it; other times have their unit."""
    if metric.unit != "ns" or not metric.name.startswith(_OPS):
        return False
    means = [abs(s.description.mean) for s in samples if s.description.mean]
    return not means or (seconds(max(means)) >= 1 and seconds(min(means)) >= _LEAST_SECONDS)


def _label(metric: Metric) -> str:
    """Ops NAME, the words of vmstat's table, or the metric's name."""
    if metric.name.startswith(_OPS):
        name = metric.name.removeprefix(_OPS)
        return printable(f"Ops {name.removesuffix('_ns').removesuffix('_count')}")
    family, keys = split_name(metric.name)
    return keys["name"].replace("_", " ") if family == _VMSTAT else printable(metric.name)


def _number(metric: Metric, sample: Sample, in_seconds: bool) -> str:
    """Seconds and what benchmarks count with two decimals, the rest with its unit."""
    mean = sample.description.mean
    if mean is None:
        return "-"
    if metric.name.startswith(_VMSTAT):
        if metric.unit == "%":
            return f"{mean:.0f}%"
        return f"{mean:.0f}" if metric.unit != "pages/s" else f"{mean:.3f}"
    if abs(mean) >= _MOST_DECIMALS:
        return mean_text(metric, mean)
    if in_seconds:
        return f"{seconds(mean):.2f}"
    if metric.name.startswith(_OPS) and metric.unit not in ("ns", "bytes", "bytes/s", "ratio"):
        return f"{mean:.2f}"
    return mean_text(metric, mean)


def _gain(row: Row) -> float | None:
    """None also for what is not judged."""
    old, new = row.base_sample.description.mean, row.sample.description.mean
    if old is None or new is None or row.shift is None:
        return None
    return gain(row.metric, old, new)


def _percent(change: float | None, is_sure: bool) -> str:
    shown = _NO_PERCENT if change is None else f"{change:.2f}%"
    left, right = ("*", "*") if is_sure else ("(", ")")
    return f"{left}{shown:>7}{right}"


def _aligned(table: list[list[str]]) -> str:
    sizes = [max(cell_len(row[index]) for row in table) for index in range(len(table[0]))]
    lines = []
    for row in table:
        cells = [row[0] + " " * (sizes[0] - cell_len(row[0]))]
        cells += [" " * (s - cell_len(c)) + c for c, s in zip(row[1:], sizes[1:], strict=True)]
        lines.append(" ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def _left_out(comparison: Comparison, width: int) -> str:
    told = []
    for side in comparison.sides[1:]:
        name = f"{printable(side.name)}: " if len(comparison.sides) > 2 else ""
        told += [folded(name + line, width) for line in left_out(comparison.of_side(side.name))]
    return "".join(["\n", *(f"{line}\n" for line in told)] if told else [])


def _legend(comparison: Comparison, rows: Sequence[Row], width: int) -> str:
    runs = " + ".join(str(len(side.runs)) for side in comparison.sides)
    told = f"means of {runs} runs; per cent: better is positive"
    if any(row.metric.better == "neutral" for row in rows):
        told += ", without a sign where neither way is better"
    if any(row.is_sure for row in rows):
        told += f"; in ** where p is at most {comparison.alpha:g}"
    else:
        told += "; none is told apart from chance"
    return f"\n{folded(told, width)}\n"
