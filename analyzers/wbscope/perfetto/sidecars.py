# SPDX-License-Identifier: Apache-2.0
"""Counters of /proc that a trace itself holds (data source linux.sys_stats), as files beside it.

A run folder's own files go before them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wbscope.perfetto.engine import Engine

__all__ = ["with_sampled_files"]

# The first and the last sample of each counter.
_SAMPLES = """
SELECT t.name, c.value, c.ts = s.first_ts AS is_before
FROM counter AS c
JOIN counter_track AS t ON t.id = c.track_id
JOIN (
  SELECT track_id, MIN(ts) AS first_ts, MAX(ts) AS last_ts FROM counter GROUP BY track_id
) AS s ON s.track_id = t.id
WHERE t.type = '{type}' AND c.ts IN (s.first_ts, s.last_ts)
ORDER BY t.name
"""
# Type of the track: line of the file, and how much of the value is 1 there.
_LINES = {"vmstat": ("{name} {value}\n", 1), "meminfo": ("{name}: {value} kB\n", 1 << 10)}


@contextmanager
def with_sampled_files(engine: Engine, folder: Path | None) -> Iterator[Path | None]:
    """The folder to read the files of the run from: its own, or one with what the trace adds."""
    texts = {name: text for kind in _LINES for name, text in _texts(engine, kind).items()}
    own = {path.name: path for path in folder.iterdir()} if folder is not None else {}
    # One half of a pair would be of another time than the other.
    having = {name.partition(".")[0] for name in own}
    texts = {name: text for name, text in texts.items() if name.partition(".")[0] not in having}
    if not texts:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="wbscope-") as made:
        for name, path in own.items():
            (Path(made) / name).symlink_to(path.absolute())
        for name, text in texts.items():
            (Path(made) / name).write_text(text, encoding="utf-8")
        yield Path(made)


def _texts(engine: Engine, kind: str) -> dict[str, str]:
    line, unit = _LINES[kind]
    texts: dict[str, str] = {}
    for row in engine.query(_SAMPLES.format(type=kind)):
        name = f"{kind}.{'before' if row['is_before'] else 'after'}"
        value = int(row["value"] or 0) // unit
        texts[name] = texts.get(name, "") + line.format(name=row["name"], value=value)
    return texts
