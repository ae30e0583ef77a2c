# SPDX-License-Identifier: Apache-2.0
"""What jobs of examples/ci record: a real trace for each run, and a wbscope that hands it out.

`record` and `lab` need tracefs, root or a guest, which a CI job of this project may not have. A
wbscope before the real one in $PATH takes their place: it checks the words and the matrix, starts
the workload of `record`, and leaves runs that were recorded before. All other verbs are those of
the real one, but for the pages where a test is not about them: 20 runs with all metrics take most
of a minute.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from .runs import REPOSITORY

__all__ = ["Machine", "write_runs"]

_REAL = REPOSITORY / "examples/gate/runs"
_FILES = (
    "trace.dat", "uname", "sysctls", "mounts", "meminfo", "devices", "vmstat.before",
    "vmstat.after",
)  # fmt: skip
# In the file as text, and read by nobody: another one makes it another recording.
_VERSION = b"3.1.6 not-a-git-repo"
_STARTED_NS = 1_700_000_000_000_000_000
_SECOND_NS = 1_000_000_000

_WBSCOPE = """\
#!/bin/bash
export WBSCOPE_CACHE_DIR={cache} COLUMNS=80
case $1 in
  record)
    echo "$*" >> {calls}
    while [ "$1" != -o ]; do shift; done
    [ -d "$(dirname "$2")" ] && [ ! -e "$2" ] || exit 2  # no-output-folder, output-exists
    out=$2
    while [ "$1" != -- ]; do shift; done
    shift
    "$@" || exit 5
    cp -rp "{recorded}/head/run-$(basename "$out")" "$out"
    ;;
  lab)
    echo "$*" >> {calls}
    [ "$3" = -o ] && [ ! -e "$4" ] || exit 2
    {wbscope} lab "$2" --list > {order} || exit
    cp -rp {recorded} "$4"
    ;;
  compare | report | timeline)
    [ -e {quick} ] || exec {wbscope} "$@"
    while [ $# != 0 ]; do
      case $1 in -o | --html) echo page > "$2" ;; esac
      shift
    done
    ;;
  *) exec {wbscope} "$@" ;;
esac
"""
_SUDO = '#!/bin/bash\nexec "$@"\n'


class Machine:
    """A folder with programs for a job's $PATH, and runs that it will record.

    recorded  base/run-1 ... and head/run-1 ..., as wbscope lab leaves them
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recorded = folder / "recorded"
        self.bin = folder / "bin"
        self._calls = folder / "calls"
        self._order = folder / "order"
        self._quick = folder / "no-pages"
        self.bin.mkdir(parents=True)
        text = _WBSCOPE.format(
            cache=folder / "cache",
            calls=self._calls,
            order=self._order,
            recorded=self.recorded,
            quick=self._quick,
            wbscope=Path(sys.executable).with_name("wbscope"),
        )
        for name, script in (("wbscope", text), ("sudo", _SUDO)):
            (self.bin / name).write_text(script)
            (self.bin / name).chmod(0o755)

    @property
    def calls(self) -> list[str]:
        """The words of each record and lab."""
        return self._calls.read_text().splitlines() if self._calls.exists() else []

    @property
    def order(self) -> list[str]:
        """Cells of the runs that the last lab would have made, by its matrix."""
        return [line.split()[1].partition("/")[0] for line in self._order.read_text().splitlines()]

    def forget(self) -> None:
        """Nothing is recorded yet; the cache stays."""
        self._calls.unlink(missing_ok=True)
        shutil.rmtree(self.recorded, ignore_errors=True)

    def records(
        self,
        base: Sequence[float],
        head: Sequence[float],
        *,
        sources: tuple[str, str] = ("before-2", "before-2"),
        pages: bool = False,
        name: str = "",
    ) -> None:
        """How long the workload of each run will take, in s, and which real run it is.

        Recordings of another name are others.
        """
        self.forget()
        self._quick.unlink(missing_ok=True)
        if not pages:
            self._quick.touch()
        for side, seconds, source in zip(("base", "head"), (base, head), sources, strict=True):
            write_runs(self.recorded / side, seconds, source, name or side)


def write_runs(folder: Path, seconds: Sequence[float], source: str, name: str) -> None:
    """FOLDER/run-1 ...: recordings of their own, with a real trace."""
    trace = (_REAL / source / "trace.dat").read_bytes()
    assert trace.count(_VERSION) == 1
    for number, value in enumerate(seconds, 1):
        run = folder / f"run-{number}"
        run.mkdir(parents=True)
        for file in _FILES:
            shutil.copy2(_REAL / source / file, run / file)
        mark = f"3.1.6 {name} run {number}".ljust(len(_VERSION))[: len(_VERSION)]
        (run / "trace.dat").write_bytes(trace.replace(_VERSION, mark.encode()))
        began = _STARTED_NS + number * 60 * _SECOND_NS
        meta = {
            "schema": "wbscope.record/1",
            "ended": "complete",
            "command": ["ci/workload.sh"],
            "started_ts_ns": began,
            "command_duration_ns": round(value * _SECOND_NS),
            "command_exit_code": 0,
        }
        (run / "meta.json").write_text(json.dumps(meta))
        # The same trace at the same place and time is in the cache of the test before.
        for path in run.iterdir():
            os.utime(path, ns=(began, began))
