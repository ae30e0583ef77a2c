# SPDX-License-Identifier: Apache-2.0
"""All measurements of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wbscope.base.result import Notice
from wbscope.measure.command import parse_command
from wbscope.measure.files import Files
from wbscope.measure.fio import fio_document, parse_fio
from wbscope.measure.gnutime import parse_time
from wbscope.measure.metric import Scalars
from wbscope.measure.ops import most_repeated, parse_ops
from wbscope.measure.perfstat import parse_perf_stat
from wbscope.measure.procps import parse_procps
from wbscope.measure.samples import parse_samples
from wbscope.measure.vmstat import parse_vmstat, vmstat_gains, vmstat_levels

__all__ = ["Measured", "measurements"]

_PAIR = ("vmstat.before", "vmstat.after")
_PARSERS = {
    "perf-stat.txt": parse_perf_stat,
    "perf-stat.json": parse_perf_stat,
    "time.txt": parse_time,
    "meta.json": parse_command,
    "ops.txt": parse_ops,
    "vmstat.txt": parse_procps,
}


@dataclass(frozen=True)
class Measured:
    """The numbers of a run's other files, and what to know about them."""

    scalars: Scalars
    warnings: tuple[Notice, ...] = ()


def measurements(files: Files) -> Measured:
    """Numbers of all files that are there; a run without any has none.

    Raises: InputError when a file is damaged, of another format, or says that the
    workload failed: a part of a run's numbers is no run.
    """
    scalars = Scalars()
    warnings: list[Notice] = []
    if "fio.json" in files.texts or files.fio is not None:
        subject = files.subject("fio.json")
        document = files.fio
        if document is None:
            document = fio_document(files.texts["fio.json"], subject)
        scalars.add_all(parse_fio(document, subject))
    for name, parse in _PARSERS.items():
        if name in files.texts:
            scalars.add_all(parse(files.texts[name], files.subject(name)))
    if "ops.txt" in files.texts:
        name, lines = most_repeated(files.texts["ops.txt"], files.subject("ops.txt"))
        if lines > 1:
            told = f"ops.txt has {lines} lines of {name}: the run counts once, with their mean;"
            own = f"to have each as a run, give the file itself: {files.subject('ops.txt')}"
            warnings.append(Notice("several-iterations", f"{told} {own}", files.shown))
    pair = _pair(files)
    if "vmstat.samples" in files.texts:
        subject = files.subject("vmstat.samples")
        samples = parse_samples(files.texts["vmstat.samples"], subject)
        scalars.add_all(vmstat_levels(samples, subject))
        if not pair and len(samples) > 1:
            pair = {"vmstat.before": samples[0][1], "vmstat.after": samples[-1][1]}
    if len(pair) == 2:
        scalars.add_all(vmstat_gains(pair[_PAIR[0]], pair[_PAIR[1]], files.subject("vmstat.*")))
    elif pair:
        (there,) = pair
        (missing,) = set(_PAIR) - set(pair)
        notice = f"has {there} without {missing}: what counters gained is not known"
        warnings.append(Notice("half-a-pair", notice, files.shown))
    return Measured(scalars, tuple(warnings))


def _pair(files: Files) -> dict[str, Mapping[str, int]]:
    """vmstat.before and vmstat.after, those that are there."""
    found: dict[str, Mapping[str, int]] = {}
    for name in _PAIR:
        if name in files.texts:
            found[name] = parse_vmstat(files.texts[name], files.subject(name))
        elif name in files.counters:
            found[name] = files.counters[name]
    return found
