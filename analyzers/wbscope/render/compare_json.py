# SPDX-License-Identifier: Apache-2.0
"""A comparison and the verdict of a gate as JSON."""

from __future__ import annotations

from typing import Any

from wbscope.compare.comparison import (
    Comparison,
    FindingChange,
    Row,
    Sample,
    Side,
    finding_changes,
    sample_of,
)
from wbscope.compare.gate import GateResult, Verdict
from wbscope.compare.pass_rate import SelfCheck
from wbscope.compare.ranking import tally
from wbscope.compare.sameness import Difference
from wbscope.measure.metric import Metric
from wbscope.render.json import document, notices
from wbscope.stats.estimates import Shift


def compare_json(comparison: Comparison) -> str:
    """`wbscope.compare/1`: a row for each metric and side; the units are in the rows."""
    head = {
        "base": comparison.base.name,
        "sides": [_side(side) for side in comparison.sides],
        "alpha": comparison.alpha,
        "margin_ratio": comparison.margin,
        "differing": [_difference(difference) for difference in comparison.differing],
        "unknown": list(comparison.unknown),
        "findings": {
            side.name: [_finding(one) for one in finding_changes(comparison, side.name)]
            for side in comparison.sides[1:]
        },
        "counts": {side.name: _counts(comparison, side) for side in comparison.sides[1:]},
    }
    body = {
        "units": {},
        "rows": [row_record(row) for row in comparison.rows],
        "warnings": notices(comparison.warnings),
    }
    return document("compare", head, body)


def gate_json(result: GateResult, checked: SelfCheck | None = None) -> str:
    """`wbscope.gate/1`: a row for each declared metric.

    Of a self-check, `result` is what decides, and `self_check` has both verdicts.
    """
    head = {
        "status": result.status,
        "exit_code": result.exit_code(),
        "sides": [_side(side) for side in (result.side, result.base) if side is not None],
        "alpha": result.policy.alpha,
        "compared_count": result.compared,
        "differs": list(result.policy.differs),
        "unknown": list(result.unknown),
        "refusals": [
            {"slug": refusal.slug, "message": refusal.message, "fix": refusal.fix}
            for refusal in result.refusals
        ],
        "self_check": None if checked is None else _self_check(checked),
    }
    body = {
        "units": {},
        "rows": [verdict_record(verdict, result.side) for verdict in result.verdicts],
        "warnings": notices(dict.fromkeys(result.warnings)),
    }
    return document("gate", head, body)


def _self_check(checked: SelfCheck) -> dict[str, Any]:
    """Runs against themselves, and second half against first; null = too few for halves."""
    return {
        "status": checked.status,
        "decided_by": "same" if checked.decisive is checked.same else "halves",
        "same": _verdicts(checked.same),
        "halves": None if checked.halves is None else _verdicts(checked.halves),
        "predicted_pass_ratio": None
        if checked.predicted is None
        else checked.predicted.passed / checked.predicted.trials,
    }


def _verdicts(result: GateResult) -> dict[str, Any]:
    return {
        "status": result.status,
        "rows": [verdict_record(verdict, result.side) for verdict in result.verdicts],
    }


def _finding(one: FindingChange) -> dict[str, Any]:
    """A finding that more runs of one side have."""
    return {
        "id": one.id,
        "title": one.title,
        "is_new": one.is_new,
        "runs_count": one.runs,
        "of_count": one.of,
        "base_runs_count": one.base_runs,
        "base_of_count": one.base_of,
        "q": one.q,
    }


def _counts(comparison: Comparison, side: Side) -> dict[str, int]:
    counted = tally(comparison.of_side(side.name), comparison.alpha)
    told = {str(outcome): count for outcome, count in counted.counts.items()}
    return {**told, "constant": counted.constant, "all": counted.all}


def row_record(row: Row) -> dict[str, Any]:
    """One metric of one side against the base; values are in `unit`."""
    return {
        **_metric(row.metric),
        "side": row.side,
        "base": row.base,
        "outcome": row.outcome,
        "reason": row.reason or None,
        "shift": _shift(row.shift),
        "p": None if row.shift is None else row.shift.p,
        "p_method": None if row.shift is None else row.shift.method,
        "q": row.q,
        "of_side": _sample(row.sample),
        "of_base": _sample(row.base_sample),
    }


def verdict_record(verdict: Verdict, side: Side) -> dict[str, Any]:
    """One declared metric; margin, detectable and shift are on the scale of shift."""
    row = verdict.row
    sample = sample_of(verdict.metric.name, side) if row is None else row.sample
    return {
        **_metric(verdict.metric),
        "status": verdict.status,
        "reasons": list(verdict.reasons),
        "margin": verdict.margin or None,
        "budgets": list(verdict.budgets),
        "far_runs": list(verdict.far_runs),
        "p_far": verdict.p_far,
        "shift": _shift(verdict.shift),
        "delta": verdict.delta,
        "p": None if verdict.shift is None else verdict.shift.p,
        "p_adjusted": verdict.p_adjusted,
        "detectable": verdict.detectable,
        "runs_needed": verdict.runs_needed,
        "of_side": _sample(sample),
        "of_base": None if row is None else _sample(row.base_sample),
    }


def _metric(metric: Metric) -> dict[str, Any]:
    return {
        "metric": metric.name,
        "unit": metric.unit or None,
        "better": metric.better,
        "meaning": metric.meaning,
        "source": metric.source,
    }


def _side(side: Side) -> dict[str, Any]:
    runs = [
        {
            "name": run.name,
            "source_id": run.source_id,
            "fingerprint": dict(run.fingerprint),
            "lacking": dict(run.lacking),
        }
        for run in side.runs
    ]
    return {"name": side.name, "runs": runs}


def _sample(sample: Sample) -> dict[str, Any]:
    told = sample.description
    return {
        "n": told.n,
        "values": list(sample.values),
        "missing": list(sample.missing),
        "median": told.median,
        "mean": told.mean,
        "sd": told.sd,
        "min": told.least,
        "max": told.most,
        "trimmed_mean": told.trimmed_mean,
        "trimmed_sd": told.trimmed_sd,
    }


def _shift(found: Shift | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "scale": found.scale,
        "estimate": found.estimate,
        "low": found.low,
        "high": found.high,
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "fact": difference.fact,
        "values": [{"value": v, "runs": list(runs)} for v, runs in difference.values.items()],
    }
