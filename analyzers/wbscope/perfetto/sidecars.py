# SPDX-License-Identifier: Apache-2.0
"""Counters of /proc that a trace itself holds (data source linux.sys_stats), as files beside it.

A run folder's own files go before them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from wbscope.perfetto.trace_processor import TraceProcessor
from wbscope.perfetto.traced_machine import Machine
from wbscope.run.source import Source

__all__ = ["with_sampled_files"]

# The first sample of each counter is of before the run, the last of after it.
_SAMPLES = """
SELECT t.name, c.value, c.ts, c.ts = s.first_ts AS is_before, c.ts = s.last_ts AS is_after
FROM counter AS c
JOIN counter_track AS t ON t.id = c.track_id
JOIN (
  SELECT track_id, MIN(ts) AS first_ts, MAX(ts) AS last_ts FROM counter GROUP BY track_id
) AS s ON s.track_id = t.id
WHERE t.type = '{type}' AND COALESCE(t.machine_id, 0) = {machine}
ORDER BY c.ts, t.name
"""
# Type of the track: line of the file, and how much of the value is 1 there.
_LINES = {"vmstat": ("{name} {value}\n", 1), "meminfo": ("{name}: {value} kB\n", 1 << 10)}


def with_sampled_files(
    engine: TraceProcessor, source: Source, private: Path, machine: Machine
) -> Path | None:
    """The folder to read the files of the run from: its own, or a private one with what the
    trace adds."""
    texts = {
        name: text for kind in _LINES for name, text in _texts(engine, kind, machine.id).items()
    }
    own = source.inputs()[1:]
    # One half of a pair would be of another time than the other.
    having = {path.name.partition(".")[0] for path in own}
    texts = {name: text for name, text in texts.items() if name.partition(".")[0] not in having}
    if not texts:
        return source.folder
    made = private / "files"
    made.mkdir()
    for path in own:
        shutil.copyfile(path, made / path.name)
    for name, text in texts.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


def _texts(engine: TraceProcessor, kind: str, machine: int) -> dict[str, str]:
    line, unit = _LINES[kind]
    texts: dict[str, list[str]] = {}
    told: dict[str, int] = {}
    for row in engine.query(_SAMPLES.format(type=kind, machine=machine)):
        when = "before" if row["is_before"] else "after" if row["is_after"] else "samples"
        lines = texts.setdefault(f"{kind}.{when}", [])
        ts = int(row["ts"] or 0)
        if told.get(when) != ts:
            told[when] = ts
            lines.append(f"# ts={ts}\n")
        value = int(row["value"] or 0) // unit
        lines.append(line.format(name=str(row["name"]), value=value))
    return {name: "".join(lines) for name, lines in texts.items()}
