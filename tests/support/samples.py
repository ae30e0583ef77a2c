# SPDX-License-Identifier: Apache-2.0
"""What recorded runs gave of each rule of sql/findings: the examples in docs/findings.md."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from wbscope.library.finding import Finding

__all__ = ["Samples"]

_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# What a recorded run got of each rule of sql/findings, for docs/findings.md. Made by
# pytest tests/real/test_verdict_corpus.py -k samples --update-docs; then run tools/gen_docs.py.
"""


_LOUD = {"severe": 4, "warning": 3, "ok": 2, "note": 1}


@dataclass
class Samples:
    """Of each rule one finding: best of the rule's own cause, severe, that says much.

    An all-clear says little.
    """

    kept: dict[str, tuple[int, str, Finding]] = field(default_factory=dict)

    def add(self, run: str, findings: Iterable[Finding], caused: str = "") -> None:
        """Those of one run, which has this rule's cause."""
        for one in findings:
            merit = 1000 * (one.id == caused) + 100 * _LOUD.get(one.severity, 0)
            merit += -len(one.text) if one.severity == "ok" else len(one.told)
            merit += 10 * (one.advice is not None)
            if one.id not in self.kept or self.kept[one.id][0] < merit:
                self.kept[one.id] = (merit, run, one)

    def toml(self) -> str:
        """The file."""
        return _HEAD + "".join(_entry(run, one) for _, (_, run, one) in sorted(self.kept.items()))


def _entry(run: str, one: Finding) -> str:
    advice = one.advice.text if one.advice is not None else ""
    settings = one.advice.settings if one.advice is not None else ()
    values = {
        "run": run,
        "confidence": one.confidence,
        "severity": one.severity,
        "text": one.text,
        "advice": advice,
        "sets": [f"{knob} = {value}" for knob, value in settings],
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    return "\n".join(["", f"[{one.id}]", *lines, ""])
