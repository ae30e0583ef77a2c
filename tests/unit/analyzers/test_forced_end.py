# SPDX-License-Identifier: Apache-2.0
"""A command that does not end by itself after Ctrl-C is ended, and says so."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from support.waits import GUARD_SECONDS

# A main thread that never comes back to Python's own handler, as in a call of a C library.
_STUCK = """
import sys, time
from wbscope.base.watch import watching
files = [open(path, "w") for path in sys.argv[1:]]
with watching(lambda error: 1):
    said = False
    while True:
        try:
            if not said:
                said = True
                print("ready", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            pass
"""


def _end(process: subprocess.Popen[str]) -> str:
    """What it has told; `with` would wait for ever for one that does not end."""
    try:
        return process.communicate(timeout=GUARD_SECONDS)[1]
    finally:
        process.kill()


def test_it_says_that_it_was_interrupted() -> None:
    command = [sys.executable, "-c", _STUCK]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        told = _end(process)
    assert process.returncode == 130
    assert told == "interrupted\n"


def test_it_writes_to_no_file_that_has_the_number_of_stderr(tmp_path: Path) -> None:
    """Whoever starts it can have closed that: the next file that is opened gets it."""
    paths = [tmp_path / str(number) for number in range(8)]
    command = ["sh", "-c", 'exec "$0" "$@" 2>&-', sys.executable, "-c", _STUCK, *map(str, paths)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _end(process)
    assert process.returncode == 130
    assert [path.read_text() for path in paths] == [""] * len(paths)
