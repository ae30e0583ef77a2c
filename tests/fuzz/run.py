#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the fuzz targets, two at a time, and print what they did.

usage: run.py BINARIES FOLDER SECONDS [TARGET...]

Corpora grow in FOLDER/corpus/<target>, logs are FOLDER/logs/<target>.log. An
input that crashes, leaks, hangs or takes too much memory is kept as
FOLDER/found/<target>/<kind>-<hash>, and the exit code is 1.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

AT_A_TIME = 2
TARGETS = (
    "container_v6",
    "container_v7",
    "options",
    "page_walk",
    "chunks",
    "format_text",
    "rows",
    "sidecars",
    "whole",
    "ftrace_text",
    "records",
    "converted",
    "page_writer",
)
# libtraceevent leaks when it gives up on a format, in every run of these.
# The suppression for it keeps LeakSanitizer quiet, but not from looking again
# after each input.
WITHOUT_LEAK_CHECK = {"format_text", "whole", "converted"}
MOST_BYTES = {
    "page_walk": 8192,
    "options": 16384,
    "rows": 16384,
    "sidecars": 32768,
    "ftrace_text": 65536,
    "records": 16384,
    "page_writer": 4096,
}
_LIMITS = ("-rss_limit_mb=512", "-malloc_limit_mb=256", "-timeout=10")
_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Ran:
    """What one target did."""

    target: str
    code: int
    executions: int
    coverage: int
    corpus: int
    seconds: int
    found: list[Path]

    def row(self) -> str:
        speed = self.executions // max(self.seconds, 1)
        return (
            f"{self.target:<14}{self.executions:>12}{speed:>10}{self.coverage:>10}"
            f"{self.corpus:>9}{len(self.found):>8}"
        )


HEADING = f"{'target':<14}{'executions':>12}{'exec/s':>10}{'coverage':>10}{'corpus':>9}{'found':>8}"


def fuzz(binaries: Path, folder: Path, seconds: int, target: str) -> Ran:
    """Fuzz one target for some time; it goes on with the corpus it had."""
    corpus, found = folder / "corpus" / target, folder / "found" / target
    new = folder / "new" / target
    for place in (corpus, new, folder / "logs"):
        place.mkdir(parents=True, exist_ok=True)
    command = [
        str(binaries / f"fuzz_{target}"),
        f"-max_total_time={seconds}",
        f"-max_len={MOST_BYTES.get(target, 131072)}",
        f"-artifact_prefix={new}/",
        f"-detect_leaks={0 if target in WITHOUT_LEAK_CHECK else 1}",
        "-print_final_stats=1",
        *_LIMITS,
    ]
    dictionary = _HERE / "dictionaries" / f"{target}.dict"
    if dictionary.exists():
        command.append(f"-dict={dictionary}")
    folders = [corpus, folder / "seeds" / target, _HERE / "regressions" / target]
    command += [str(path) for path in folders if path.is_dir()]
    # A small quarantine: the limit on memory is for the program, not for ASan.
    env = dict(os.environ, ASAN_OPTIONS="quarantine_size_mb=16", UBSAN_OPTIONS="print_stacktrace=1")
    log = folder / "logs" / f"{target}.log"
    with log.open("wb") as out:
        code = subprocess.run(command, stdout=out, stderr=out, env=env, check=False).returncode
    kept = []
    for path in sorted(new.iterdir()):
        found.mkdir(parents=True, exist_ok=True)
        kept.append(Path(shutil.move(path, found / path.name)))
    return _ran(target, code, log.read_text(errors="replace"), kept)


def _ran(target: str, code: int, log: str, found: list[Path]) -> Ran:
    executions = re.findall(r"^stat::number_of_executed_units: (\d+)", log, re.MULTILINE)
    coverage = re.findall(r" cov: (\d+) ", log)
    corpus = re.findall(r" corp: (\d+)/", log)
    seconds = re.findall(r"^Done \d+ runs in (\d+) second", log, re.MULTILINE)

    def last(values: list[str]) -> int:
        return int(values[-1]) if values else 0

    return Ran(
        target, code, last(executions), last(coverage), last(corpus), last(seconds) or 1, found
    )


def main(arguments: list[str]) -> int:
    if len(arguments) < 3 or not arguments[2].isdigit():
        print(__doc__, file=sys.stderr)
        return 2
    binaries, folder, seconds = Path(arguments[0]), Path(arguments[1]), int(arguments[2])
    chosen = arguments[3:] or list(TARGETS)
    unknown = [target for target in chosen if target not in TARGETS]
    if unknown:
        print(f"no target {', '.join(unknown)}; there are {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    subprocess.run([sys.executable, _HERE / "make_seeds.py", folder / "seeds"], check=True)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        results = list(pool.map(lambda target: fuzz(binaries, folder, seconds, target), chosen))
    print(HEADING)
    for ran in results:
        print(ran.row())
    print(f"{'together':<14}{sum(ran.executions for ran in results):>12}")
    bad = [ran for ran in results if ran.code != 0 or ran.found]
    for ran in bad:
        print(f"{ran.target} ended with exit code {ran.code}: see {folder}/logs/{ran.target}.log")
        for path in ran.found:
            print(f"  {binaries}/fuzz_{ran.target} {path}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
