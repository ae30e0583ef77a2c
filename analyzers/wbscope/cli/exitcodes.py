# SPDX-License-Identifier: Apache-2.0
"""Exit codes of gate for those who read them otherwise: git bisect run.

git takes 0 for good, 125 for "skip", 1 to 127 for bad, and ends the bisection above: so each error
has to be above, as one that is taken for bad blames a commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wbscope.compare.gate import GateResult


_SKIP = 125
_ABORT = 128
_OPTION = "--exit-codes"


class Codes(StrEnum):
    """Whom the exit code is for."""

    ci = "ci"
    bisect = "bisect"


def gate_code(result: GateResult, codes: Codes) -> int:
    """Of a verdict; what counts as a pass in CI because nobody knows is no good commit."""
    if codes == Codes.ci:
        return result.exit_code()
    # Of no metric: nor is one bad of which nobody knows.
    asked = replace(result.policy, inconclusive="inconclusive")
    code = replace(result, policy=asked).exit_code()
    if result.status == "REFUSED":
        return _ABORT + code
    return code if code in (0, 1) else _SKIP


def error_code(code: int, words: Sequence[str]) -> int:
    """Of an error, also of one in the command line itself: words are those of the command."""
    given = list(words)
    if given[:1] != ["gate"]:
        return code
    asked = f"{_OPTION}={Codes.bisect}" in given or any(
        given[at : at + 2] == [_OPTION, Codes.bisect] for at in range(len(given))
    )
    return _ABORT + code if asked and code < _ABORT else code
