# SPDX-License-Identifier: Apache-2.0
"""The latencies of fio's jobs: mean, longest, percentiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wbscope.measure.bad import decimal
from wbscope.measure.document import Node

__all__ = ["latencies"]

# Those of fio's own list that people read; a list of the user's own is taken whole.
_FIO_LIST = frozenset((1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99))
_READ = frozenset((50, 90, 95, 99, 99.9, 99.99))


def latencies(parts: Sequence[Node], kind: str) -> Iterator[tuple[str, float | None]]:
    """(clat_mean, ns), (clat_max, ns), (clat_p99, ns) ... of slat, clat or lat."""
    found = [part[f"{kind}_ns"] for part in parts if part.has(f"{kind}_ns")]
    counted = [(one, one["N"].number()) for one in found]
    counted = [(one, number) for one, number in counted if number]
    if not counted:
        return
    total = sum(number for _, number in counted)
    yield f"{kind}_mean", sum(one["mean"].number() * number for one, number in counted) / total
    yield f"{kind}_max", max(one["max"].number() for one, _ in counted)
    nodes = [one for one, _ in counted]
    if not all(one.has("percentile") for one in nodes):
        return
    wanted = _shares(nodes[0]["percentile"])
    if len(nodes) == 1:
        told = nodes[0]["percentile"]
        for text, share in wanted.items():
            yield f"{kind}_p{share:g}", told[text].number()
    elif all(one.has("bins") for one in nodes):
        bins = _merged(nodes)
        for share in wanted.values():
            yield f"{kind}_p{share:g}", _percentile(bins, share)


def _shares(percentile: Node) -> dict[str, float]:
    """fio's text of each percentile -> its number; those that are wanted."""
    listed: dict[str, float] = {}
    for text in percentile.names():
        share = decimal(text)
        if share is None or not 0 < share <= 100:
            raise percentile.wrong("percentiles from 0 to 100")
        listed[text] = share
    whole = not _FIO_LIST.issuperset(listed.values())
    return {text: share for text, share in listed.items() if whole or share in _READ}


def _merged(nodes: Sequence[Node]) -> list[tuple[float, float]]:
    """(ns, how many) of all jobs, in order; fio's bins are the same in each job."""
    bins: dict[float, float] = {}
    for one in nodes:
        inside = one["bins"]
        for text in inside.names():
            value = decimal(text)
            if value is None:
                raise inside.wrong("bins of ns")
            bins[value] = bins.get(value, 0.0) + inside[text].number()
    return sorted(bins.items())


def _percentile(bins: Sequence[tuple[float, float]], share: float) -> float:
    """The first bin with so many at or below it, as fio's own calc_clat_percentiles()."""
    wanted = share / 100 * sum(number for _, number in bins)
    seen = 0.0
    for value, number in bins:
        seen += number
        if seen >= wanted:
            return value
    return bins[-1][0]
