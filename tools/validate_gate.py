#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often compare and gate are wrong, by simulation, beside rules that others use.

usage: validate_gate.py [--trials N] [--markdown FILE] [--only TABLE]...

Each cell is two shares of the trials: false alarms when nothing changed, and how
often a change of +10 % is found.  In the last rows it is one share.  The second table is
about single runs far outside of the base: what unchanged code loses by it, and what
becomes of code of which some runs take ten times as long.  The others are about sessions
that differ (drift), looks at more and more runs (sequential), and what --self-check
predicts (predicted).  --markdown writes the tables into FILE, between the lines
<!-- validation --> and <!-- /validation -->, and so on.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.noise import (  # noqa: E402  # noqa: E402  # noqa: E402
    IGNORE,
    LAYOUTS,
    NORMAL,
    OUTLIERS,
    TAILS,
    WIDE,
    Array,
    Layout,
    Machine,
    Noise,
    counts,
    face,
    family_fails,
    moved,
    pairs,
    predicted,
    rank_test,
    real,
    sequential,
    share,
    status,
    tail_counts,
    trimmed_welch,
    welch,
)
from support.noise import POLICY as BLOCKED  # noqa: E402
from wbscope.stats import repeated  # noqa: E402
from wbscope.stats.estimates import shift  # noqa: E402

MARKS = ("validation", "tails", "drift", "sequential", "predicted")
CHANGE = 0.10
CELLS = [(noise, n) for noise in (NORMAL, OUTLIERS, WIDE) for n in (6, 10)]
RULES: dict[str, Callable[[Array, Array], bool]] = {
    "means moved by more than 5 %": moved,
    "drop fastest and slowest, Welch's t of the rest": trimmed_welch,
    "Welch's t": welch,
    "exact Mann-Whitney": rank_test,
    "**a face of `wbscope compare`**": face,
}


def per_cent(value: float) -> str:
    return f"{100 * value:.1f}"


def rules_table(trials: int) -> list[str]:
    heads = ["rule", *(f"{noise.name}, n = {n}" for noise, n in CELLS)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, rule in RULES.items():
        cells = [
            " / ".join(per_cent(share(rule, noise, n, c, trials)) for c in (0.0, CHANGE))
            for noise, n in CELLS
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for verdict in ("FAIL", "PASS"):  # the rest is INCONCLUSIVE
        cells = [" / ".join(verdicts(noise, n, trials)[verdict]) for noise, n in CELLS]
        lines.append(f"| **`wbscope gate`: {verdict}** | {' | '.join(cells)} |")
    return lines


_seen: dict[tuple[str, int], dict[str, list[str]]] = {}


def verdicts(noise: Noise, n: int, trials: int) -> dict[str, list[str]]:
    """Verdict -> its shares without and with the change."""
    key = (noise.name, n)
    if key not in _seen:
        counts = [
            Counter(status(a, b) for a, b in pairs(noise, n, change, trials))
            for change in (0.0, CHANGE)
        ]
        names = ("FAIL", "PASS")
        _seen[key] = {v: [per_cent(count[v] / trials) for count in counts] for v in names}
    return _seen[key]


def family_row(trials: int) -> str:
    cells = []
    for noise, n in CELLS:
        random = np.random.default_rng([n, trials])
        failed = sum(family_fails(random, noise, n) for _ in range(trials)) / trials
        cells.append(per_cent(failed))
    return f"| any FAIL of five unchanged metrics | {' | '.join(cells)} |"


def coverage_row(trials: int) -> str:
    cells = []
    for noise, n in CELLS:
        held = 0
        for a, b in pairs(noise, n, CHANGE, trials):
            found = shift(a, b)
            assert found.low is not None
            assert found.high is not None
            held += found.low <= 1 + CHANGE <= found.high
        cells.append(per_cent(held / trials))
    return f"| 95 % intervals that hold the true shift | {' | '.join(cells)} |"


def tail_tables(trials: int) -> list[str]:
    """What the rule about single runs costs, and what it finds."""
    sizes = (6, 10, 20)
    heads = ["runs of which nothing changed", *(f"n = {n}" for n in sizes)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for noise in TAILS:
        cells = []
        for n in sizes:
            found = tail_counts(noise, n, 0.0, trials)
            shown = [found["PASS"] + found["lost"], found["lost"], found["FAIL"]]
            cells.append(" / ".join(per_cent(count / trials) for count in shown))
        lines.append(f"| {noise.name} | {' | '.join(cells)} |")
    heads = ["runs ten times slower", *(f"n = {n}" for n in sizes)]
    lines += ["", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for noise in (TAILS[0], TAILS[1], TAILS[6]):
        for stalled in (0.1, 0.2, 0.3):
            cells = []
            for n in sizes:
                found = tail_counts(noise, n, stalled, trials)
                shown = [found["PASS"] + found["lost"], found["PASS"], found["FAIL"]]
                cells.append(" / ".join(per_cent(count / trials) for count in shown))
            lines.append(f"| {100 * stalled:.0f} % of them, {noise.name} | {' | '.join(cells)} |")
    return [*lines, "", *spreads_table(trials)]


def spreads_table(trials: int) -> list[str]:
    """Why 12: what other borders would cost where it costs most."""
    noises, chosen = [noise for noise in TAILS if noise.kind == "t2"], repeated.SPREADS
    heads = ["spreads", *(f"{noise.name}, n = 20" for noise in noises)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for spreads in (6.0, 8.0, 10.0, 12.0, 15.0):
        repeated.SPREADS = spreads
        cells = [per_cent(tail_counts(noise, 20, 0.0, trials)["lost"] / trials) for noise in noises]
        lines.append(f"| {spreads:g} | {' | '.join(cells)} |")
    repeated.SPREADS = chosen
    return lines


MACHINES = {
    "no drift": Machine(),
    "3 %": Machine(0.03),
    "5 %": Machine(0.05),
    "5 %, runs 0.3 %": Machine(0.05, noise=0.003),
    "3 %, AR(1) 0.5": Machine(0.03, memory=0.5),
    "3 %, AR(1) 0.8": Machine(0.03, memory=0.8),
}


def drift_table(trials: int) -> list[str]:
    """What sessions do: false FAIL without and with them, PASS of the unchanged, FAIL of +10 %."""
    heads = ["sessions", *MACHINES]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for layout in LAYOUTS:
        cells = []
        for machine in MACHINES.values():
            ignored = counts(layout, machine, IGNORE, 0.0, trials)["FAIL"]
            same = counts(layout, machine, BLOCKED, 0.0, trials)
            found = counts(layout, machine, BLOCKED, CHANGE, trials)["FAIL"]
            shown = (ignored, same["FAIL"], same["PASS"], found)
            cells.append(" / ".join(f"{100 * count / trials:.0f}" for count in shown))
        lines.append(f"| {layout.name} | {' | '.join(cells)} |")
    return lines


def sequential_table(trials: int) -> list[str]:
    """FAIL / PASS / runs a side."""
    noises = (NORMAL, WIDE, OUTLIERS, Noise("t2, 2 %", 0.02, kind="t2"))
    heads = ["rule, change", *(noise.name for noise in noises)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, spending in (
        ("look after each run from 6 to 24, alpha each time", None),
        ("**`--record`, Pocock's type**", "pocock"),
        ("O'Brien and Fleming's type", "obrien-fleming"),
    ):
        for change in (0.0, CHANGE):
            cells = []
            for noise in noises:
                found, runs = sequential(noise, change, 24, trials, spending)  # type: ignore[arg-type]
                shown = [f"{100 * found[word] / trials:.1f}" for word in ("FAIL", "PASS")]
                cells.append(" / ".join([*shown, f"{runs:.0f}"]))
            lines.append(f"| {name}, {100 * change:+.0f} % | {' | '.join(cells)} |")
    return lines


def predicted_table(trials: int) -> list[str]:
    """What --self-check says on average, and what happens."""
    heads = ["runs of which nothing changed", "predicted, mean ± s.d.", "real"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    cases: list[tuple[str, Noise | Machine, int | Layout]] = [
        (f"{noise.name}, {n} + {n}", noise, n)
        for noise in (Noise("normal, 2 %", 0.02), NORMAL, WIDE)
        for n in (6, 10)
    ]
    cases += [
        ("1 + 6 sessions of 6, drift 1 %", Machine(0.01), Layout("", apart=(1, 6, 6))),
        ("1 + 6 sessions of 6, drift 3 %", Machine(0.03), Layout("", apart=(1, 6, 6))),
    ]
    for name, noise, size in cases:
        mean, spread = predicted(noise, size, max(trials // 20, 4))
        found = real(noise, size, trials)
        lines.append(f"| {name} | {100 * mean:.0f} ± {100 * spread:.0f} | {100 * found:.0f} |")
    return lines


def error(trials: int) -> str:
    """Two standard errors of a share of 5 %."""
    return f"±{200 * (0.05 * 0.95 / trials) ** 0.5:.1f} points"


def main() -> int:
    parser = argparse.ArgumentParser(usage=str(__doc__).split("\n\n")[1][7:])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--only", action="append", choices=MARKS)
    options = parser.parse_args()
    fewer, few = options.trials // 4, options.trials // 8
    tables: dict[str, Callable[[], list[str]]] = {
        "validation": lambda: [
            f"{options.trials} trials a cell: a share of 5 % is good to {error(options.trials)}.",
            f"Five metrics: {fewer} trials, {error(fewer)}.",
            "",
            *rules_table(options.trials),
            family_row(fewer),
            coverage_row(options.trials),
        ],
        "tails": lambda: [
            f"{options.trials} trials a cell.",
            "",
            *tail_tables(options.trials),
        ],
        "drift": lambda: [f"{few} trials a cell, {error(few)}.", "", *drift_table(few)],
        "sequential": lambda: [f"{few} trials a cell, {error(few)}.", "", *sequential_table(few)],
        "predicted": lambda: [
            f"{max(few // 20, 4)} baselines, {few} real pairs.",
            "",
            *predicted_table(few),
        ],
    }
    texts = {name: tables[name]() for name in options.only or MARKS}
    if options.markdown is None:
        print("\n\n".join("\n".join(lines) for lines in texts.values()))
        return 0
    page = options.markdown.read_text(encoding="utf-8")
    for name, lines in texts.items():
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, _, rest = page.partition(start)
        _, found, after = rest.partition(end)
        if not found:
            print(f"{options.markdown}: no lines {start} and {end}", file=sys.stderr)
            return 2
        page = "\n".join([f"{before}{start}", *lines, f"{end}{after}"])
    options.markdown.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
