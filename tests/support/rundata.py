# SPDX-License-Identifier: Apache-2.0
"""Runs with given numbers, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wbscope.base.result import Notice
from wbscope.compare.comparison import Comparison, Side
from wbscope.compare.rundata import RunData
from wbscope.measure.metric import Better, Metric, Scalars
from wbscope.render.blocks import blocks_markdown, blocks_text
from wbscope.render.compare import compare_blocks

TIME = Metric("time.elapsed_ns", "ns", "lower", "how long it took", "time.txt")
RATE = Metric("fio.bw_bytes_per_s", "bytes/s", "higher", "how fast it was", "fio.json")
WRITES = Metric(
    "reclaim_writes.pages_count[kind=file]",
    "count",
    "lower",
    "pages that reclaim wrote",
    "reclaim_writes",
    "6.16",
)
LEVEL = Metric("dirty.position_ratio", "ratio", "neutral", "how full it was", "dirty")
FACTS = {"kernel": "6.1.0", "hz": 250, "memory_bytes": 491_524_096, "page_bytes": 4 << 10}


def metric(name: str, better: Better = "lower", unit: str = "ns") -> Metric:
    return Metric(name, unit, better, f"what {name} says", "somewhere")


def run(name: str, values: Mapping[Metric, float | None], **more: Any) -> RunData:
    scalars = Scalars()
    for one, value in values.items():
        scalars.add(one, value)
    facts = FACTS | more.pop("facts", {})
    return RunData(name, more.pop("source_id", name), scalars, fingerprint=facts, **more)


def side(name: str, values: Mapping[Metric, Sequence[float | None]], **more: Any) -> Side:
    """One run for each value; all metrics have as many."""
    count = max(len(column) for column in values.values())
    runs = [
        run(f"{name}{i}", {one: column[i] for one, column in values.items()}, **dict(more))
        for i in range(count)
    ]
    return Side(name, tuple(runs))


def lost(message: str = "3 events are lost") -> dict[str, Any]:
    return {"warnings": (Notice("lost-events", message),)}


def damaged(message: str = "read in part", slug: str = "damaged-trace") -> dict[str, Any]:
    return {"warnings": (Notice(slug, message),)}


def failed(message: str = "the command exited with 3") -> dict[str, Any]:
    return {"warnings": (Notice("command-failed", message),)}


def compare_text(found: Comparison) -> str:
    """All metrics, as the text of --full."""
    return blocks_text(compare_blocks(found))


def glance_text(found: Comparison) -> str:
    """What `compare` prints first."""
    return blocks_text(compare_blocks(found, full=False))


def compare_markdown(found: Comparison, full: bool = True) -> str:
    """What --markdown prints."""
    return blocks_markdown(compare_blocks(found, full=full))
