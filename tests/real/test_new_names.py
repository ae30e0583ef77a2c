# SPDX-License-Identifier: Apache-2.0
"""Kernel 7.2 records wb_setpoint and wb_dirty in another order; the answers have the same shape."""

from __future__ import annotations

from support.cli import Wbscope
from support.oracle import read_pauses
from support.report import key_values
from support.runs import example


def test_raw_columns_keep_the_kernel_s_names(wbscope: Wbscope) -> None:
    for name, present, absent in (
        ("four-equal-writers", "bdi_dirty", "wb_dirty"),
        ("four-equal-writers-7.2", "wb_dirty", "bdi_dirty"),
    ):
        folder = example(name).folder
        rows = wbscope.sql(
            folder, "SELECT field FROM event_field WHERE event = 'writeback:balance_dirty_pages'"
        )
        fields = {row["field"] for row in rows}
        assert present in fields
        assert absent not in fields


def test_both_kernels_answer_with_the_same_columns(wbscope: Wbscope) -> None:
    old, new = example("four-equal-writers").folder, example("four-equal-writers-7.2").folder
    for query in (
        "throttle_by_task",
        "throttle_windows",
        "fairness",
        "dirty_position",
        "bdi_bandwidth",
        "throughput",
    ):
        first, second = wbscope.query(query, old), wbscope.query(query, new)
        assert first
        assert second
        assert list(first[0]) == list(second[0])


def test_values_of_the_renamed_fields(wbscope: Wbscope) -> None:
    recorded = example("four-equal-writers-7.2")
    texts = [
        key_values(event.text) for event in recorded.events if event.name == "balance_dirty_pages"
    ]
    rows = wbscope.sql(
        recorded.folder,
        "SELECT wb_setpoint, wb_dirty, pause FROM ev_balance_dirty_pages ORDER BY ts",
    )
    assert len(rows) == len(texts) == len(read_pauses(recorded.events))
    names = ("wb_setpoint", "wb_dirty", "pause")
    assert sorted([row[name] for name in names] for row in rows) == sorted(
        [int(text[name]) for name in names] for text in texts
    )
