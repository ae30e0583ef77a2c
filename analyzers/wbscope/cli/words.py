# SPDX-License-Identifier: Apache-2.0
"""What a Tab asks for, and what it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Line:
    """What stands before the word that is asked for.

    verb      "query", "baseline save"
    place     the parameter that the word belongs to, by its name in Python; "" = none
    values    of the other parameters, by their names
    """

    verb: str
    place: str
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """Words with what they mean; none: files. `is_part`: more may follow each."""

    words: Sequence[tuple[str, str]] = ()
    is_part: bool = False
