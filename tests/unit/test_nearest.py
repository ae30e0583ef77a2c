# SPDX-License-Identifier: Apache-2.0
"""Which name was meant: by a part of it, else by its looks."""

from __future__ import annotations

import pytest
from wbscope.base.errors import nearest
from wbscope.compare.metrics import near_metrics, unknown_metric

METRICS = [
    "throttle_summary.slept_total_ns",
    "throttle_summary.pause_p99_ns",
    "fairness.jain_ratio",
    "time.elapsed_ns",
]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("run", ["run-1", "my-run"]),  # what begins so comes first
        ("RUN-1", ["run-1"]),
        ("rnu-1", ["run-1"]),
        ("*run*", ["run-1", "my-run"]),
        ("ru", []),  # two letters are in any name
        ("", []),
        ("other", []),
    ],
)
def test_nearest(wanted: str, found: list[str]) -> None:
    assert nearest(wanted, ["my-run", "run-1", "x"]) == found


@pytest.mark.parametrize(
    ("wanted", "have", "fix"),
    [
        ("pause_p99", "throttle_summary.pause_p99_ns", "throttle_summary.pause_p99_ns"),
        ("elapsd_ns", "time.elapsed_ns", "time.elapsed_ns"),
        ("throttle", f"{METRICS[0]}, {METRICS[1]}", "throttle*"),
        ("throtle*", "throttle_summary.*", "throttle_summary.*"),
        ("throtle_summary.*", "throttle_summary.*", "throttle_summary.*"),
        (
            "nothing like it",
            "throttle_summary.*, fairness.*, time.*",
            "throttle_summary.*",
        ),
        ("nosuch*", "throttle_summary.*, fairness.*, time.*", "throttle_summary.*"),
    ],
)
def test_a_metric_that_there_is_not(wanted: str, have: str | None, fix: str) -> None:
    error = unknown_metric(wanted, METRICS, "these runs")
    assert (error.have, str(error.fix)) == (have, f"metrics={[fix]!r}")


def test_the_query_may_be_left_out() -> None:
    assert near_metrics("jan_ratio", METRICS) == ["fairness.jain_ratio"]
