# SPDX-License-Identifier: Apache-2.0
"""Which part of a timeline the UI shows first: a time, or from one to another."""

from __future__ import annotations

from dataclasses import dataclass

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import UsageError
from wbscope.base.span import Moment, parse_moment

__all__ = ["Look", "parse_look"]

_AROUND = parse_moment("at", "0.5s")  # on either side of a single time
# Of the length of what is asked for, so that its ends are seen as ends.
_MARGIN = 0.1


@dataclass(frozen=True)
class Look:
    """`end` is None for a single time; `text` is how it was written."""

    start: Moment
    end: Moment | None
    text: str

    def on_clock(self, first_ns: int, last_ns: int) -> tuple[int, int]:
        """From and to on the trace clock of a run with these first and last events, within them.

        Raises: UsageError when it is of a time that the run does not have.
        """
        start = self.start.place(first_ns)
        end = start if self.end is None else self.end.place(first_ns)
        if end < start:
            raise self._wrong("ends before it starts", "wanted FROM..TO")
        if start > last_ns or end < first_ns:
            length = f"{last_ns - first_ns} ns long, from @{first_ns} on"
            raise self._wrong("is outside the run", f"which is {length}")
        margin = _AROUND.ns if start == end else round(_MARGIN * (end - start))
        return max(start - margin, first_ns), min(end + margin, last_ns)

    def _wrong(self, what: str, more: str) -> UsageError:
        return UsageError(
            "bad-look",
            Phrase(Argument("at", self.text)),
            f"{what}, {more}",
            fix=Phrase(Argument("at", "1s..2s")),
        )


def parse_look(text: str) -> Look:
    """'12.5s' or '12.5s..13s', written as all times of a run are.

    Raises: UsageError.
    """
    first, dots, last = text.partition("..")
    fix = Phrase(Argument("at", "12.5s..13s" if dots else "12.5s"))
    return Look(
        parse_moment("at", first, fix), parse_moment("at", last, fix) if dots else None, text
    )
