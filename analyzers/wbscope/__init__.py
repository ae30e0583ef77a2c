# SPDX-License-Identifier: Apache-2.0
"""wbscope: who was throttled, why, for how long, was it fair, did reclaim write?

import wbscope

with wbscope.open("runs/four-writers") as run:
    for row in run.query("throttle_by_task").records():
        print(row["comm"], row["pause_total_ns"])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# A folder has its name, so that it has to be there first.
from wbscope.compare.api import compare, gate

if TYPE_CHECKING:
    from wbscope.base.errors import WbscopeError
    from wbscope.base.result import Notice, Result
    from wbscope.base.version import __version__
    from wbscope.run.run import Run, open_run
    from wbscope.run.run import open_run as open

__all__ = [
    "Notice",
    "Result",
    "Run",
    "WbscopeError",
    "__version__",
    "compare",
    "gate",
    "open",
    "open_run",
]

# A command imports what it needs; who opens a run in Python asks for it here.
_PLACES = {
    "Notice": "base.result",
    "Result": "base.result",
    "Run": "run.run",
    "WbscopeError": "base.errors",
    "__version__": "base.version",
    "open": "run.run",
    "open_run": "run.run",
}
# What a Result or Run is turned into registers itself.
_CONVERTERS = ("render.frames", "render.text", "render.report")


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for module in (*_CONVERTERS, _PLACES[name]):
        import_module(f"{__name__}.{module}")
    found = getattr(
        import_module(f"{__name__}.{_PLACES[name]}"), "open_run" if name == "open" else name
    )
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
