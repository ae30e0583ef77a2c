# SPDX-License-Identifier: Apache-2.0
"""One run as it is compared: its numbers, what it was recorded on, what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from wbscope.base.result import Notice
from wbscope.library.database import is_damaged, is_empty, is_lost, is_untimed
from wbscope.measure.metric import Scalars, split_name

Fact = str | int | float | None

_FAILED = "command-failed"


@dataclass(frozen=True)
class Session:
    """What tells one boot, or one start of a recording, from another.

    name    boot:ID, lab:ID, or what somebody called it
    unix_s  when the run was made; None = not known
    """

    name: str
    unix_s: int | None = None


@dataclass(frozen=True)
class RunData:
    """What a baseline keeps of a run.

    zeros        families of which the run has no number, and 0 is the answer: no
                 stall of that kind, no page written
    lacking      why a query, or a file of the run folder, gave no numbers
    fingerprint  facts about machine and recording; None = not known
    definitions  a hash of the SQL behind the numbers of each query
    warnings     what holds for all numbers: lost events, damage
    checked      what the trace has to agree with and does not; None = nobody looked
    path         as it was named; "" of a baseline's run
    is_sample    one number of one thing of several, from a file: what it has no number
                 of, nobody asked of it
    session      None = not known
    findings     titles of what `explain` finds wrong, by rule; None = nobody asked
    """

    name: str
    source_id: str
    scalars: Scalars
    zeros: Mapping[str, float] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)
    fingerprint: Mapping[str, Fact] = field(default_factory=dict)
    definitions: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[Notice, ...] = ()
    checked: tuple[str, ...] | None = None
    path: str = ""
    is_sample: bool = False
    session: Session | None = None
    findings: Mapping[str, str] | None = None

    def value(self, name: str) -> float | None:
        """The number; that of `zeros` where the run answered and has none."""
        if name in self.scalars:
            return self.scalars[name][1]
        return self.zeros.get(split_name(name)[0])

    @property
    def named_warnings(self) -> tuple[Notice, ...]:
        """With the name of the run, to stand among those of others."""
        return tuple(replace(notice, run=self.name) for notice in self.warnings)

    @property
    def lost(self) -> tuple[Notice, ...]:
        """What says that events are lost."""
        return tuple(notice for notice in self.warnings if is_lost(notice.slug))

    @property
    def damaged(self) -> tuple[Notice, ...]:
        """What says that only a part of the trace was read."""
        return tuple(notice for notice in self.warnings if is_damaged(notice.slug))

    @property
    def untimed(self) -> tuple[Notice, ...]:
        """What says that the trace has no times."""
        return tuple(notice for notice in self.warnings if is_untimed(notice.slug))

    @property
    def empty(self) -> tuple[Notice, ...]:
        """What says that no event was recorded."""
        return tuple(notice for notice in self.warnings if is_empty(notice.slug))

    @property
    def failed(self) -> tuple[Notice, ...]:
        """What says that the command did not end well."""
        return tuple(notice for notice in self.warnings if notice.slug == _FAILED)
