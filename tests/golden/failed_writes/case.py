# SPDX-License-Identifier: Apache-2.0
"""Writes that failed: requests with an error, and calls that returned one.

By hand, ms from 10 s; the first event is at 0. A request is 8 sectors = 4096 bytes.
  tid 1, db    fsync on 8:0, 100 to 600, returns -5 (EIO), and so does the one of ext4 inside it
  tid 2, log   fsync on 8:0, 700 to 1300, returns 0; the disk has a request all the time
  tid 3, lost  fsync at 0 returns -9 (EBADF): that writes nothing
  tid 4, full  fdatasync, 900 to 1000, returns -28 (ENOSPC); no event tells its device
  8:16         three writes end with -5 at 200, 300 and 400, one of them of the journal; a read with
               -5 and a discard with -95 (EOPNOTSUPP) are no writes that failed
  Counters: written 1000 to 5000, 4000 pages = 16,384,000 bytes; requests wrote 4 * 4096 bytes.
  below  the same trace; 253:0 lies on 8:16, so that somebody above it may have tried again
  named  the same without the fsync of ext4. Pages of inode 12 of 8:0 fail at 550 and 551, one of
         inode 13 at 560: errseq is 5 (EIO) in its lowest 12 bits, marked as seen (4096) or not, and
         a count above. Files of no other file system fail, so both calls were of this one
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import EXT4_SYNC, FDATASYNC, FSYNC, MS, Waits, at, device

_BLOCK = ("block_rq_issue", "block_rq_complete")
_EIO, _EBADF, _ENOSPC, _EOPNOTSUPP = -5, -9, -28, -95


def make(folder: Path) -> None:
    for name in ("alone", "below", "named"):
        (folder / name).mkdir()
        _trace(folder / name, named=name == "named")
    (folder / "below/stacks").write_text("253:0 8:16\n")


def _call(waits: Waits, start: float, end: float, tid: int, ret: int, *, ext4: bool) -> None:
    waits.add(start, tid, FSYNC[0], fd=3)
    if ext4:
        waits.add(start, tid, EXT4_SYNC[0], dev=device(8, 0), ino=12)
        waits.add(end, tid, EXT4_SYNC[1], dev=device(8, 0), ino=12, ret=ret)
    waits.add(end, tid, FSYNC[1], ret=ret)


def _request(waits: Waits, end: float, sector: int, rwbs: str, error: int) -> None:
    values = {"dev": device(8, 16), "sector": sector, "nr_sector": 8, "rwbs": rwbs}
    waits.add(end - 1, 9, "block_rq_issue", **values)
    waits.add(end, 0, "block_rq_complete", **values, error=error)


def _trace(folder: Path, *, named: bool) -> None:
    comms = {1: "db", 2: "log", 3: "lost", 4: "full", 9: "kworker/u8:2"}
    names = (*FSYNC, *FDATASYNC, *EXT4_SYNC, *_BLOCK, "global_dirty_state", "filemap_set_wb_err")
    waits = Waits(*names, cmdlines=comms)
    _call(waits, 0, 0.1, 3, _EBADF, ext4=False)
    _call(waits, 100, 600, 1, _EIO, ext4=not named)
    _call(waits, 700, 1300, 2, 0, ext4=True)
    files = ((550, 12, 5), (551, 12, 4096 + 5), (560, 13, 3 * 8192 + 5))
    for ms, ino, errseq in files if named else ():
        waits.add(ms, 0, "filemap_set_wb_err", s_dev=device(8, 0), i_ino=ino, errseq=errseq)
    waits.add(900, 4, FDATASYNC[0], fd=4)
    waits.add(1000, 4, FDATASYNC[1], ret=_ENOSPC)
    waits.request(9, 64, issue=700, complete=1300, rwbs="W")
    for end, sector, rwbs, error in (
        (200, 640, "W", _EIO),
        (300, 648, "WS", _EIO),
        (400, 656, "WSM", _EIO),
        (500, 664, "R", _EIO),
        (510, 672, "DS", _EOPNOTSUPP),
    ):
        _request(waits, end, sector, rwbs, error)
    for ms, written in ((10, 1000), (1290, 5000)):
        pages = {"nr_dirty": 10, "nr_writeback": 10, "nr_dirtied": written, "nr_written": written}
        limits = {"background_thresh": 2000, "dirty_thresh": 4000, "dirty_limit": 4000}
        waits.add(ms, 9, "global_dirty_state", **pages, **limits)
    waits.write(folder)


def _error(bdi: str | None, kind: str, what: str, tid: int | None, **rest: int | str) -> Expected:
    size = 4096 if kind == "request" else None
    return {"bdi": bdi, "kind": kind, "what": what, "tid": tid, "count": 1, "bytes": size, **rest}


def _file(
    what: str, *, kind: str = "file", tid: int | None = None, count: int = 1, **at: int
) -> Expected:
    return {
        "bdi": "8:0",
        "kind": kind,
        "what": what,
        "tid": tid,
        "error": "EIO",
        "count": count,
        "bytes": None,
        **at,
    }


def _told(bdi: str | None, severity: str, cost: int, text: str) -> Expected:
    return {
        "id": "failed_writes",
        "severity": severity,
        "cost_task_ns": cost * MS,
        "text": text,
        "first_ts": {"8:0": at(600), "8:16": at(200), None: at(1000)}[bdi],
    }


_CALLS = [
    _told(
        "8:0",
        "severe",
        500,
        "Writes failed and data is lost on 8:0; 1 call of fsync by db 1 returned EIO; the first "
        "error came after 600 ms.",
    ),
    _told(
        None,
        "severe",
        100,
        "Writes failed and data is lost; 1 call of fdatasync by full 4 returned ENOSPC; the first "
        "error came after 1.00 s.",
    ),
]
_REQUESTS = (
    "Writes failed on 8:16; 3 requests of 12.0 KiB in all ended with an error; the first error "
    "came after 200 ms."
)

CHECKS = [
    Check(
        folder="alone",
        query="write_errors",
        rows=[
            _error("8:0", "call", "fsync", 1, error="EIO", first_ts=at(600), after_ns=600 * MS),
            _error(None, "call", "fdatasync", 4, error="ENOSPC", first_ts=at(1000))
            | {"after_ns": 1000 * MS},
            *(
                _error("8:16", "request", rwbs, None, error="EIO", first_ts=at(ms))
                | {"after_ns": ms * MS}
                for rwbs, ms in (("W", 200), ("WS", 300), ("WSM", 400))
            ),
        ],
    ),
    Check(
        folder="alone",
        query="findings",
        keep=lambda row: row["id"] == "failed_writes",
        rows=[*_CALLS, _told("8:16", "severe", 0, _REQUESTS)],
    ),
    # Who is told that all is on the disk.
    Check(
        folder="alone",
        query="findings",
        keep=lambda row: row["id"] == "sync_waits",
        rows=[
            {
                "severity": "warning",
                "cost_task_ns": 600 * MS,
                "text": "log 2 waited 600 ms in sync or fsync until what was dirty was written "
                "to 8:0, the longest 600 ms.",
            }
        ],
    ),
    Check(
        folder="alone",
        query="findings",
        keep=lambda row: row["id"] == "overview",
        rows=[
            {
                "text": "In 1.30 s the machine dirtied 15.6 MiB and wrote 15.6 MiB, counting "
                "writes that failed; 4 tasks waited 1.20 s in all."
            }
        ],
    ),
    Check(
        folder="alone",
        query="check",
        keep=lambda row: row["source"] == "block events",
        rows=[
            {
                "trace_value": 16_384_000,
                "other_value": 4 * 4096,
                "verdict": "not comparable",
                "why": "one is more than twice the other: writes failed, and the counters count"
                " them as written",
            }
        ],
    ),
    Check(
        folder="below",
        query="findings",
        keep=lambda row: row["id"] == "failed_writes",
        rows=[*_CALLS, _told("8:16", "warning", 0, _REQUESTS)],
    ),
    Check(
        folder="named",
        query="write_errors",
        keep=lambda row: row["kind"] != "request",
        rows=[
            _file("ino 12", count=2, first_ts=at(550), last_ts=at(551)),
            _file("ino 13", count=1, first_ts=at(560), last_ts=at(560)),
            _file("fsync", kind="call", tid=1, first_ts=at(600), last_ts=at(600)),
            _file("fdatasync", kind="call", tid=4, first_ts=at(1000), last_ts=at(1000))
            | {"error": "ENOSPC"},
        ],
    ),
    Check(
        folder="named",
        query="findings",
        keep=lambda row: row["id"] == "failed_writes" and "8:0" in row["text"],
        rows=[
            {
                "severity": "severe",
                "text": "Writes failed and data is lost on 8:0; writeback of 2 files failed; 2 "
                "calls of fsync and the like by db and 1 more returned EIO or ENOSPC; the first "
                "error came after 550 ms.",
            }
        ],
    ),
]
