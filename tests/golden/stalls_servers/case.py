# SPDX-License-Identifier: Apache-2.0
"""Waits for the servers of NFS (0:45) and FUSE (0:50).

By hand, ms from 10 s. The only disk, 8:0, has a request of tid 9 from 0 to 1000.
  tid 1, fsync on NFS   0 to 100; WRITE of a kworker 10 to 40, COMMIT 40 to 90: the server was busy
                        for 0.8 of it
  tid 2, folio wait     on 0:45, asleep 200 to 300; WRITE 210 to 290, 0.8. The disk is not asked:
                        the server may be another machine
  tid 3, close on NFS   400 to 500; WRITE 400 to 420, COMMIT 460 to 470 and, sent before that was
                        answered, 465 to 480, 0.4: the client's own time, unknown
  tid 4, getxattr, FUSE 600 to 650, answered by the server, tid 20
  tid 20, the server    puts a WRITE of the page cache where it reads, 600 to 640: it waits for none
  tid 21, a kworker     WRITE 700 to 800: no wait
  tid 5, fsync on FUSE  900 to 1000; WRITE 910 to 930, FSYNC 930 to 990 that fails: 20 ms of it are
                        its own: no event names its device, so it is the only disk's
  tid 6, RELEASE        995 to 999: nobody waits
FUSE on 0:51 is of 6.12, whose requests tell no number: an answer to a request that was sent before
the trace, then WRITE of a kworker 1010 to 1060 and 1020 to 1040, by the order of their numbers.
The WRITE of tid 3 to 0:45 ends with an error; another, at 950, has no answer. Its calls stood 10
and 30 ms in the client's queue, and 4 and 8 ms at the server; that of another program is left out.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import FLUSHED, FSYNC, MS, NFS_FSYNC, SERVER_EVENTS, Waits, at, device

_COMMS = {1: "cp", 2: "dd", 3: "mv", 4: "tar", 5: "db", 6: "ls", 9: "kworker/u8:2"}
_NFS, _FUSE = device(0, 45), device(0, 50)
_LOOKUPS = {20: "passfs", 21: "kworker/u8:3"}


def _nfs(waits: Waits, start: float, end: float | None, offset: int, error: int = 0) -> None:
    """A WRITE of 64 KiB."""
    place = {"dev": _NFS, "fileid": 7, "offset": offset}
    waits.add(start, 9, "nfs_initiate_write", count=65536, **place)
    if end is not None:
        waits.add(end, 9, "nfs_writeback_done", error=error, **place)


def _fuse(
    waits: Waits, tid: int, number: int, opcode: int, start: float, end: float, **answer: int
) -> None:
    sent = {"connection": _FUSE, "unique": number}
    waits.add(start, tid, "fuse_request_send", opcode=opcode, len=131152, **sent)
    waits.add(end, 20, "fuse_request_end", **sent, **answer)


def make(folder: Path) -> None:
    names = (*SERVER_EVENTS, *FSYNC, "folio_wait_writeback", "sched_switch")
    block = ("block_rq_insert", "block_rq_issue", "block_rq_complete")
    waits = Waits(*names, *block, cmdlines={**_COMMS, **_LOOKUPS})
    waits.request(9, 64, issue=0, complete=1000)
    waits.span(0, 100, 1, FSYNC)
    waits.span(0, 100, 1, NFS_FSYNC, dev=_NFS, fileid=7)
    _nfs(waits, 10, 40, 0)
    place = {"dev": _NFS, "fileid": 7, "offset": 0}
    waits.add(40, 1, "nfs_initiate_commit", **place)
    waits.add(90, 9, "nfs_commit_done", error=0, **place)
    for sent in (460, 465):
        waits.add(sent, 9, "nfs_initiate_commit", **place)
    for done in (470, 480):
        waits.add(done, 9, "nfs_commit_done", error=0, **place)
    waits.add(200, 2, "folio_wait_writeback", name="0:45", ino=7, index=2)
    waits.sleep(200, 300, 2)
    _nfs(waits, 210, 290, 65536)
    waits.span(400, 500, 3, FLUSHED, dev=_NFS, fileid=7)
    _nfs(waits, 400, 420, 131072, error=-5)
    calls = (("nfs", "WRITE", 10, 4), ("nfs", "WRITE", 30, 8), ("nlm", "WRITE", 500, 500))
    for program, name, queue, rtt in calls:
        waits.add(
            430, 9, "rpc_stats_latency",
            progname=program, procname=name, backlog=queue * 1000, rtt=rtt * 1000,
        )  # fmt: skip
    _fuse(waits, 4, 2, 22, 600, 650)
    _fuse(waits, 20, 4, 16, 600, 640)
    _fuse(waits, 21, 6, 16, 700, 800)
    waits.span(900, 1000, 5, FSYNC)
    _fuse(waits, 5, 8, 16, 910, 930)
    _fuse(waits, 5, 10, 20, 930, 990, error=-5)
    _nfs(waits, 950, None, 196608)
    _fuse(waits, 6, 12, 18, 995, 999)
    for ms in (1010, 1020):
        sent = {"connection": device(0, 51), "unique": 0}
        waits.add(ms, 21, "fuse_request_send", opcode=16, len=131152, **sent)
    for ms, number in ((1015, 2), (1040, 6), (1060, 4)):
        waits.add(ms, 22, "fuse_request_end", connection=device(0, 51), unique=number)
    waits.write(folder)


def _row(
    ms: float,
    dur: int,
    tid: int,
    kind: str,
    cause: str,
    what: str,
    bdi: str | None,
    server: float | None,
    device: float | None = None,
) -> Expected:
    row = {"ts": at(ms), "dur": dur * MS, "tid": tid, "comm": _COMMS[tid], "kind": kind}
    row |= {"cause": cause, "what": what, "bdi": bdi}
    return row | {"server_ratio": server, "device_ratio": device}


def _requests(
    device: str, op: str, count: int, data: int | None, unanswered: int, errors: int, longest: int
) -> Expected:
    row = {"device": device, "op": op, "count": count, "bytes": data, "open_count": unanswered}
    return row | {"errors_count": errors, "latency_max_ns": longest * MS}


_LATE = "server latency"

CHECKS = [
    Check(
        query="stalls",
        ordered=True,
        rows=[
            _row(0, 100, 1, "fsync", _LATE, "fsync", "0:45", 0.8),
            _row(200, 100, 2, "folio wait", _LATE, "folio_wait_writeback", "0:45", 0.8),
            _row(400, 100, 3, "server", "unknown", "nfs_wb_all", "0:45", 0.4),
            _row(600, 50, 4, "server", _LATE, "fuse GETXATTR", "0:50", 1.0),
            _row(900, 20, 5, "fsync", "device latency", "fsync", None, None, 1.0),
            _row(910, 20, 5, "server", _LATE, "fuse WRITE", "0:50", 1.0),
            _row(930, 60, 5, "server", _LATE, "fuse FSYNC", "0:50", 1.0),
        ],
    ),
    Check(
        query="server_latency",
        ordered=True,
        rows=[
            _requests("0:45", "COMMIT", 3, None, 0, 0, 50),
            _requests("0:45", "WRITE", 3, 3 * 65536, 1, 1, 80),
            _requests("0:50", "FSYNC", 1, None, 0, 1, 60),
            _requests("0:50", "GETXATTR", 1, None, 0, 0, 50),
            _requests("0:50", "RELEASE", 1, None, 0, 0, 4),
            _requests("0:50", "WRITE", 3, 3 * 131072, 0, 0, 100),
            _requests("0:51", "WRITE", 2, 2 * 131072, 0, 0, 50),
        ],
    ),
    Check(
        query="server_latency",
        options=("--bdi", "0:45"),
        keep=lambda row: row["op"] == "WRITE",
        rows=[
            {
                "latency_mean_ns": 130 * MS // 3, "latency_p50_ns": 30 * MS,
                "latency_p99_ns": 80 * MS, "calls_count": 2, "queue_mean_ns": 20 * MS,
                "rtt_mean_ns": 6 * MS,
            },
        ],
    ),
    Check(
        query="server_latency",
        options=("--bdi", "0:45"),
        keep=lambda row: row["op"] == "COMMIT",
        rows=[{"latency_mean_ns": 75 * MS // 3, "latency_p50_ns": 15 * MS}],
    ),
    Check(
        query="server_latency",
        options=("--bdi", "0:51"),
        rows=[{"latency_mean_ns": 35 * MS, "latency_p50_ns": 20 * MS}],
    ),
    Check(
        query="stalls_evidence",
        options=("--tid", "2"),
        keep=lambda row: row["evidence"] == "server busy",
        rows=[{"detail": "for 0.8 of its time"}],
    ),
]  # fmt: skip
