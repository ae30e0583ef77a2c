#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well libraries find the commit at which a series of results changed.

usage: changepoints.py [--markdown FILE]     all libraries, each in an environment of its own
                                             below build/changepoints (700 MB, ten minutes)
       changepoints.py --only LIBRARY        one of them, with this Python, as JSON

Series of 30 values, as of 30 commits, are drawn from fixed seeds: the same for all, and the same
at each run.  The 24 runs of examples/gate are judged as a series as well.  --markdown writes the
tables into FILE, between the lines <!-- changepoints --> and <!-- /changepoints -->.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / "build" / "changepoints"
# What is installed for each; they exclude each other's NumPy.
LIBRARIES = {
    "apache-otava": ["apache-otava==0.8.0"],
    "signal-processing-algorithms": ["signal-processing-algorithms==2.1.6"],
    "ruptures": ["ruptures==1.1.10", "numpy==2.4.6", "scipy==1.17.1"],
    "wbscope": ["ruptures==1.1.10", "numpy==2.4.6", "scipy==1.17.1"],
}
COMMITS, NEAR = 30, 2
STILL, MOVED = 300, 100  # series of a cell

Array = NDArray[np.float64]
Points = Callable[[Array], Sequence[int]]


def normal(rng: np.random.Generator, share: float) -> Array:
    return np.exp(rng.normal(0, share, COMMITS))


def outliers(rng: np.random.Generator, share: float) -> Array:
    """Two of the values twice as large."""
    values = normal(rng, share)
    values[rng.choice(COMMITS, 2, replace=False)] *= 2
    return values


def tails(rng: np.random.Generator, share: float) -> Array:
    return np.exp(share * rng.standard_t(2, COMMITS))


def sessions(rng: np.random.Generator, share: float) -> Array:
    """Each value keeps half of the deviation of the one before."""
    deviation = np.zeros(COMMITS)
    deviation[0] = rng.normal(0, share)
    for number in range(1, COMMITS):
        fresh = rng.normal(0, share * np.sqrt(1 - 0.5**2))
        deviation[number] = 0.5 * deviation[number - 1] + fresh
    return np.exp(deviation)


def drift(rng: np.random.Generator, share: float) -> Array:
    return normal(rng, share) * np.linspace(1, 1.03, COMMITS)


NOTHING: dict[str, tuple[Callable[[np.random.Generator, float], Array], float]] = {
    "normal, 2 %": (normal, 0.02),
    "normal, 4 %": (normal, 0.04),
    "t2, 2 %": (tails, 0.02),
    "2 outliers": (outliers, 0.02),
    "AR(1) 0.5": (sessions, 0.02),
    "drift of 3 %": (drift, 0.02),
}
# Noise, its size, and from which commit on what level; None: anywhere but in the first or last 5.
STEPS: dict[str, tuple[str, Sequence[tuple[int | None, float]]]] = {
    "5 %": ("normal, 2 %", [(None, 1.05)]),
    "10 %": ("normal, 2 %", [(None, 1.1)]),
    "5 %, noise 4 %": ("normal, 4 %", [(None, 1.05)]),
    "10 %, noise 4 %": ("normal, 4 %", [(None, 1.1)]),
    "5 %, 2 outliers": ("2 outliers", [(None, 1.05)]),
    "10 %, t2": ("t2, 2 %", [(None, 1.1)]),
    "10 %, last 4": ("normal, 2 %", [(26, 1.1)]),
    "10 %, and back": ("normal, 2 %", [(10, 1.1), (20, 1.0)]),
}


def drawn(
    noise: str, steps: Sequence[tuple[int | None, float]], seed: int
) -> tuple[Array, list[int]]:
    """A series, and where it truly changed."""
    draw, share = NOTHING[noise]
    rng = np.random.default_rng([list(NOTHING).index(noise), len(steps), seed])
    values, places = 100 * draw(rng, share), []
    for at, level in steps:
        place = int(rng.integers(5, COMMITS - 4)) if at is None else at
        before = steps[len(places) - 1][1] if places else 1.0
        values[place:] *= level / before
        places.append(place)
    return values, places


def real() -> Iterator[tuple[str, Array]]:
    """Metrics of 24 runs: 12 of one kind, 6 with a lower limit, 6 on a slower disk."""
    sides = [
        json.loads((ROOT / "examples" / "gate" / f"{side}.json").read_text(encoding="utf-8"))
        for side in ("before", "again", "lower-limit", "slower-disk")
    ]
    for name in (
        "fio.write.bw_bytes_per_s",
        "fio.write.clat_p99_ns",
        "throttle_summary.slept_total_ns",
    ):
        values = [value for side in sides for value in side["metrics"][name]["values"]]
        yield name, np.array(values, dtype=float)


def methods(library: str) -> dict[str, Points]:
    """The ways of this library: from a series to its points."""
    if library == "apache-otava":
        from otava.analysis import compute_change_points

        return {
            f"otava (Hunter), p {p:g}": lambda x, p=p: [
                point.index for point in compute_change_points(list(x), max_pvalue=p)[0]
            ]
            for p in (0.001, 0.01)
        }
    if library == "signal-processing-algorithms":
        from signal_processing_algorithms.energy_statistics.energy_statistics import e_divisive

        return {
            f"signal-processing-algorithms (E-divisive), p {p:g}": lambda x, p=p: list(
                e_divisive(list(x), pvalue=p, permutations=100)
            )
            for p in (0.05, 0.01)
        }
    if library == "wbscope":
        sys.path.insert(0, str(ROOT / "analyzers"))
        from wbscope.compare.changepoints import change_points

        return {
            "**wbscope: ruptures, kernel, 0.75 log n, then two tests, p 0.01**": lambda x: [
                point.index for point in change_points(list(x))
            ]
        }
    return {
        "ruptures, Pelt, l2, 3 s² log n": least_squares,
        "ruptures, KernelCPD, rbf, log n": by_kernel,
    }


def least_squares(values: Array) -> list[int]:
    from ruptures import Pelt

    steps = np.diff(values)
    sd = 1.4826 * np.median(np.abs(steps - np.median(steps))) / np.sqrt(2)
    penalty = 3 * sd**2 * np.log(len(values))
    found: list[int] = Pelt("l2", min_size=3, jump=1).fit(values).predict(pen=penalty)[:-1]
    return found


def by_kernel(values: Array) -> list[int]:
    from ruptures import KernelCPD

    detector = KernelCPD("rbf", min_size=3).fit(values.reshape(-1, 1))
    found: list[int] = detector.predict(pen=np.log(len(values)))[:-1]
    return found


def judged(points: Points) -> dict[str, Any]:
    """Alarms per 100 series; of each kind of step the share found, how far off, and others."""
    began, series = time.perf_counter(), 0
    alarms, found = {}, {}
    for noise in NOTHING:
        told = sum(bool(seeded(points, drawn(noise, [], seed)[0])) for seed in range(STILL))
        alarms[noise], series = 100 * told / STILL, series + STILL
    for name, (noise, steps) in STEPS.items():
        apart, others, truly = [], 0, 0
        for seed in range(MOVED):
            values, places = drawn(noise, steps, 1000 + seed)
            told_at = seeded(points, values)
            nearest = [
                min((abs(at - place) for at in told_at), default=COMMITS) for place in places
            ]
            apart += [near for near in nearest if near <= NEAR]
            others += sum(all(abs(at - place) > NEAR for place in places) for at in told_at)
            truly += len(places)
        series += MOVED
        off = float(np.mean(apart)) if apart else None
        found[name] = (100 * len(apart) / truly, off, 100 * others / MOVED)
    return {
        "alarms": alarms,
        "found": found,
        "real": {name: list(map(int, seeded(points, values))) for name, values in real()},
        "ms": 1000 * (time.perf_counter() - began) / series,
    }


def seeded(points: Points, values: Array) -> Sequence[int]:
    """The same answer at each run, from a library that permutes as well."""
    random.seed(1)
    np.random.seed(1)
    return points(values)


def environment(library: str) -> Path:
    """Its Python, with the library installed."""
    folder = ENVIRONMENTS / library
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", *LIBRARIES[library]], check=True)
    return python


def megabytes(python: Path) -> float:
    """What is installed, but for pip and what came with Python."""
    packages = next((python.parent.parent / "lib").glob("python3*/site-packages"))
    kept = (path for path in packages.iterdir() if not path.name.startswith(("pip", "setuptools")))
    files = (file for path in kept for file in (path.rglob("*") if path.is_dir() else [path]))
    return sum(f.stat().st_size for f in files if f.is_file() and f.suffix != ".pyc") / 1e6


def tables(results: dict[str, dict[str, Any]]) -> str:
    """Markdown: alarms, steps, real runs."""
    lines = [
        f"False alarms in 100 series of {COMMITS} values (of {STILL} drawn):",
        "",
        f"| | {' | '.join(NOTHING)} | MB installed |",
        f"|---{'|---' * len(NOTHING)}|---|",
    ]
    for name, told in results.items():
        cells = [f"{share:.0f}" for share in told["alarms"].values()]
        lines.append(f"| {name} | {' | '.join(cells)} | {told['megabytes']:.0f} |")
    lines += [
        "",
        f"Steps found, per cent, within {NEAR} commits of the true one; how many commits off on"
        f" average;\npoints elsewhere in 100 series (of {MOVED} drawn):",
        "",
        f"| | {' | '.join(STEPS)} |",
        f"|---{'|---' * len(STEPS)}|",
    ]
    for name, told in results.items():
        cells = [
            f"{share:.0f} / {'-' if off is None else f'{off:.1f}'} / {others:.0f}"
            for share, off, others in told["found"].values()
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    names = [name for name, _ in real()]
    lines += ["", f"| | {' | '.join(names)} |", f"|---{'|---' * len(names)}|"]
    for name, told in results.items():
        cells = [", ".join(map(str, told["real"][metric])) or "none" for metric in names]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--only", choices=LIBRARIES, metavar="LIBRARY")
    options = parser.parse_args()
    if options.only:
        print(json.dumps({name: judged(way) for name, way in methods(options.only).items()}))
        return 0
    results: dict[str, dict[str, Any]] = {}
    for library in LIBRARIES:
        python = environment(library)
        command = [python, __file__, "--only", library]
        told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        for name, result in json.loads(told).items():
            results[name] = {**result, "megabytes": megabytes(python)}
            print(f"{name}: {result['ms']:.1f} ms a series", file=sys.stderr)
    text = tables(results)
    if options.markdown is None:
        print(text)
        return 0
    whole = options.markdown.read_text(encoding="utf-8")
    before, rest = whole.split("<!-- changepoints -->\n")
    after = rest.split("<!-- /changepoints -->")[1]
    whole = f"{before}<!-- changepoints -->\n{text}\n<!-- /changepoints -->{after}"
    options.markdown.write_text(whole, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
