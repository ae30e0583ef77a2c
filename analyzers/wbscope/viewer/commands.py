# SPDX-License-Identifier: Apache-2.0
"""Commands of the Perfetto UI that a link or a macro may give.

The UI checks a whole list at once: one argument that is no text, and all of it is dropped without a
word. What it may run at start is a list too; each of these is in it since v52.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

__all__ = ["ARGUMENTS", "Command", "any_of"]

_PREFIX = "dev.perfetto."

ARGUMENTS: dict[str, int] = {
    "PinTracksByRegex": 1,  # v53: and "name" or "path"
    "ExpandTracksByRegex": 1,
    "CollapseTracksByRegex": 1,
    "AddDebugSliceTrack": 2,
    "AddDebugSliceTrackWithPivot": 3,
    "AddDebugCounterTrack": 2,
    "AddDebugCounterTrackWithPivot": 3,
    "CreateWorkspace": 1,
    "SwitchWorkspace": 1,
    "CopyTracksToWorkspaceByRegex": 2,
    "CopyTracksToWorkspaceByRegexWithAncestors": 2,
    "RunQuery": 1,
    "RunQueryAndShowTab": 2,  # v52 ignores the second, the title
}
"""How many arguments each command has in v52, the first version with commands at start."""


@dataclass(frozen=True)
class Command:
    """One command by its name, as ARGUMENTS has it."""

    name: str
    arguments: tuple[str, ...]

    def __post_init__(self) -> None:
        if ARGUMENTS.get(self.name) != len(self.arguments):
            raise ValueError(f"the UI has no {self.name} with {len(self.arguments)} arguments")
        if not all(type(argument) is str for argument in self.arguments):
            raise ValueError(f"{self.name}: an argument is no text")

    def record(self) -> dict[str, Any]:
        """As links and macros have it."""
        return {"id": _PREFIX + self.name, "args": list(self.arguments)}


def any_of(names: list[str]) -> str:
    """The regular expression, of JavaScript too, that exactly these names match."""
    escaped = [re.sub(r"[\\^$.*+?()[\]{}|]", r"\\\g<0>", name) for name in names]
    return f"^{escaped[0]}$" if len(escaped) == 1 else f"^(?:{'|'.join(escaped)})$"
