# SPDX-License-Identifier: Apache-2.0
"""wbscope: who was throttled, why, for how long, was it fair, did reclaim write?

import wbscope

with wbscope.open("runs/four-writers") as run:
    for row in run.query("throttle_by_task").records():
        print(row["comm"], row["pause_total_ns"])
"""

from wbscope.base.errors import WbscopeError
from wbscope.base.result import Notice, Result
from wbscope.base.version import __version__
from wbscope.compare.api import compare, gate
from wbscope.render import frames, html  # noqa: F401 - what a Result is turned into
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
