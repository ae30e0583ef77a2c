# SPDX-License-Identifier: Apache-2.0
"""Events of waits and of servers, for synthetic traces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .formats import EventFormat, Value, build_format
from .kernel_events import ISSUE, ISSUE_TEXT, NAMES, formats
from .tracedat import Trace

__all__ = [
    "COMMIT",
    "DIRECT",
    "EXT4_SYNC",
    "FLUSHED",
    "FSYNC",
    "GRANT",
    "MEMCG",
    "MS",
    "NFS_FSYNC",
    "SERVER_EVENTS",
    "SYNC",
    "WRITE",
]


# Formats of the events of NFS, sunrpc and FUSE, as 6.12 has their fields.

NFS_FSYNC = ("nfs_fsync_enter", "nfs_fsync_exit")
FLUSHED = ("nfs_writeback_inode_enter", "nfs_writeback_inode_exit")
_FILE = ("dev_t dev", "unsigned int fhandle", "u64 fileid")
_ENTER = (*_FILE, "u64 version")
_SERVER_EXIT = ("unsigned long error", *_FILE, "u64 version")
_PLACE = (*_FILE, "long long offset")
_TEXT = '"fileid=%llu", (unsigned long long)REC->fileid'
# name -> (system, id, fields, print fmt)
SERVER_EVENTS: dict[str, tuple[str, int, tuple[str, ...], str]] = {
    "nfs_fsync_enter": ("nfs", 1100, _ENTER, _TEXT),
    "nfs_fsync_exit": ("nfs", 1101, _SERVER_EXIT, _TEXT),
    "nfs_writeback_inode_enter": ("nfs", 1102, _ENTER, _TEXT),
    "nfs_writeback_inode_exit": ("nfs", 1103, _SERVER_EXIT, _TEXT),
    "nfs_initiate_write": (
        "nfs",
        1104,
        (*_PLACE, "unsigned int count", "unsigned long stable"),
        _TEXT,
    ),
    "nfs_writeback_done": (
        "nfs",
        1105,
        (*_PLACE, "unsigned int arg_count", "unsigned int res_count", "int error",
         "unsigned long stable"),
        _TEXT,
    ),
    "nfs_initiate_commit": ("nfs", 1106, (*_PLACE, "unsigned int count"), _TEXT),
    "nfs_commit_done": ("nfs", 1107, (*_PLACE, "int error", "unsigned long stable"), _TEXT),
    "rpc_stats_latency": (
        "sunrpc",
        1110,
        ("unsigned int task_id", "unsigned int client_id", "unsigned int xid", "int version",
         "__data_loc char[] progname", "__data_loc char[] procname", "unsigned long backlog",
         "unsigned long rtt", "unsigned long execute"),
        '"%s backlog=%lu rtt=%lu", __get_str(procname), REC->backlog, REC->rtt',
    ),
    "fuse_request_send": (
        "fuse",
        1120,
        ("dev_t connection", "u64 unique", "unsigned int opcode", "unsigned int len"),
        '"req %llu opcode %u len %u", REC->unique, REC->opcode, REC->len',
    ),
    "fuse_request_end": (
        "fuse",
        1121,
        ("dev_t connection", "u64 unique", "unsigned int len", "int error"),
        '"req %llu len %u error %d", REC->unique, REC->len, REC->error',
    ),
}  # fmt: skip


# Formats of the kernel events that tell why a task waits, and what it is called, and helpers to
# write such traces.
#
# Source: include/trace/events/{block,ext4,jbd2,sched,task,vmscan,writeback}.h and
# fs/xfs/xfs_trace.h, field order of kernel 6.1; writeback_congestion_wait of 5.10.

__all__ += ["FDATASYNC", "SYNC_CALLS", "SYNC_FILE_RANGE", "Waits", "at", "device", "wait_formats"]
MS = 1_000_000
_START = 10_000_000_000
DIRECT = ("mm_vmscan_direct_reclaim_begin", "mm_vmscan_direct_reclaim_end")
MEMCG = ("mm_vmscan_memcg_reclaim_begin", "mm_vmscan_memcg_reclaim_end")
GRANT = ("xfs_log_grant_sleep", "xfs_log_grant_wake")
COMMIT = ("jbd2_start_commit", "jbd2_end_commit")
EXT4_SYNC = ("ext4_sync_file_enter", "ext4_sync_file_exit")
FSYNC = ("sys_enter_fsync", "sys_exit_fsync")
SYNC = ("sys_enter_sync", "sys_exit_sync")
WRITE = ("sys_enter_write", "sys_exit_write")
FDATASYNC = ("sys_enter_fdatasync", "sys_exit_fdatasync")
SYNC_FILE_RANGE = ("sys_enter_sync_file_range", "sys_exit_sync_file_range")
# Both ends of all calls that wait until data is on the disk.
SYNC_CALLS = tuple(
    f"sys_{side}_{call}"
    for call in ("fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync")
    for side in ("enter", "exit")
)
_DEV = "((unsigned int) ((REC->dev) >> 20)), ((unsigned int) ((REC->dev) & ((1U << 20) - 1)))"
_SYNC = ("dev_t dev", "ino_t ino")
_COMMIT = ("dev_t dev", "unsigned char sync_commit", "int transaction")
_COMMIT_TEXT = f'"dev %d,%d transaction %u sync %d", {_DEV}, REC->transaction, REC->sync_commit'
_DELAY = ("unsigned int usec_timeout", "unsigned int usec_delayed")
_DELAY_TEXT = '"usec_timeout=%u usec_delayed=%u", REC->usec_timeout, REC->usec_delayed'
_OTHER_CALLS = ("fdatasync", "syncfs", "sync_file_range", "msync")
_FD = (
    ("int __syscall_nr", "unsigned int fd @8"),
    '"fd: 0x%08lx", ((unsigned long)(REC->fd))',
)
_EXIT = ("int __syscall_nr", "long ret")
_EXIT_TEXT = '"0x%lx", REC->ret'
# name -> (system, id, fields, print fmt)
_EVENTS: dict[str, tuple[str, int, tuple[str, ...], str]] = {
    "mm_vmscan_throttled": (
        "vmscan",
        531,
        ("int nid", "int usec_timeout", "int usec_delayed", "int reason"),
        '"nid=%d usec_timeout=%d usect_delayed=%d reason=%d", REC->nid, REC->usec_timeout, '
        "REC->usec_delayed, REC->reason",
    ),
    "mm_vmscan_kswapd_wake": (
        "vmscan",
        532,
        ("int nid", "int zid", "int order"),
        '"nid=%d order=%d", REC->nid, REC->order',
    ),
    "mm_vmscan_kswapd_sleep": ("vmscan", 533, ("int nid",), '"nid=%d", REC->nid'),
    "folio_wait_writeback": (
        "writeback",
        840,
        ("char name[32]", "ino_t ino", "unsigned long index"),
        '"bdi %s: ino=%lu index=%lu", REC->name, (unsigned long)REC->ino, REC->index',
    ),
    "writeback_dirty_folio": (
        "writeback",
        839,
        ("char name[32]", "ino_t ino", "unsigned long index"),
        '"bdi %s: ino=%lu index=%lu", REC->name, (unsigned long)REC->ino, REC->index',
    ),
    "writeback_congestion_wait": ("writeback", 841, _DELAY, _DELAY_TEXT),
    "writeback_wait_iff_congested": ("writeback", 842, _DELAY, _DELAY_TEXT),
    "sched_process_exit": (
        "sched",
        320,
        ("char comm[16]", "pid_t pid", "int prio"),
        '"comm=%s pid=%d prio=%d", REC->comm, REC->pid, REC->prio',
    ),
    "sched_process_exec": (
        "sched",
        321,
        ("__data_loc char[] filename", "pid_t pid", "pid_t old_pid"),
        '"filename=%s pid=%d old_pid=%d", __get_str(filename), REC->pid, REC->old_pid',
    ),
    "sched_process_fork": (
        "sched",
        322,
        ("char parent_comm[16]", "pid_t parent_pid", "char child_comm[16]", "pid_t child_pid"),
        '"comm=%s pid=%d child_comm=%s child_pid=%d", REC->parent_comm, REC->parent_pid, '
        "REC->child_comm, REC->child_pid",
    ),
    "task_rename": (
        "task",
        330,
        ("pid_t pid", "char oldcomm[16]", "char newcomm[16]"),
        '"pid=%d oldcomm=%s newcomm=%s", REC->pid, REC->oldcomm, REC->newcomm',
    ),
    "task_newtask": (
        "task",
        331,
        ("pid_t pid", "char comm[16]", "unsigned long clone_flags", "int oom_score_adj"),
        '"pid=%d comm=%s clone_flags=%lx oom_score_adj=%d", REC->pid, REC->comm, '
        "REC->clone_flags, REC->oom_score_adj",
    ),
    "mm_vmscan_node_reclaim_begin": (
        "vmscan",
        517,
        ("int nid", "int order", "unsigned long gfp_flags"),
        '"nid=%d order=%d gfp_flags=0x%lx", REC->nid, REC->order, REC->gfp_flags',
    ),
    "mm_vmscan_node_reclaim_end": (
        "vmscan",
        516,
        ("unsigned long nr_reclaimed",),
        '"nr_reclaimed=%lu", REC->nr_reclaimed',
    ),
    "ext4_sync_file_enter": (
        "ext4",
        1010,
        (*_SYNC, "ino_t parent", "int datasync"),
        f'"dev %d,%d ino %lu", {_DEV}, (unsigned long) REC->ino',
    ),
    "ext4_sync_file_exit": (
        "ext4",
        1011,
        (*_SYNC, "int ret"),
        f'"dev %d,%d ino %lu", {_DEV}, (unsigned long) REC->ino',
    ),
    "filemap_set_wb_err": (
        "filemap",
        1040,
        ("unsigned long i_ino", "dev_t s_dev", "u32 errseq"),
        f'"dev=%d:%d ino=0x%lx errseq=0x%x", {_DEV.replace("dev", "s_dev")}, '
        "REC->i_ino, REC->errseq",
    ),
    "jbd2_start_commit": ("jbd2", 1020, _COMMIT, _COMMIT_TEXT),
    "jbd2_end_commit": ("jbd2", 1021, _COMMIT, _COMMIT_TEXT),
    "jbd2_lock_buffer_stall": (
        "jbd2",
        1022,
        ("dev_t dev", "unsigned long stall_ms"),
        f'"dev %d,%d stall_ms %lu", {_DEV}, REC->stall_ms',
    ),
    "xfs_log_grant_sleep": ("xfs", 1030, ("dev_t dev",), f'"dev %d:%d", {_DEV}'),
    "xfs_log_grant_wake": ("xfs", 1031, ("dev_t dev",), f'"dev %d:%d", {_DEV}'),
    "xfs_log_cil_wait": ("xfs", 1032, ("dev_t dev",), f'"dev %d:%d", {_DEV}'),
    "block_rq_insert": ("block", 1190, ISSUE, ISSUE_TEXT),
    "block_rq_issue": ("block", 1191, ISSUE, ISSUE_TEXT),
    "sys_enter_fsync": (
        "syscalls",
        820,
        ("int __syscall_nr", "unsigned int fd @8"),
        '"fd: 0x%08lx", ((unsigned long)(REC->fd))',
    ),
    "sys_exit_fsync": ("syscalls", 821, _EXIT, _EXIT_TEXT),
    "sys_enter_sync": ("syscalls", 822, ("int __syscall_nr",), '" "'),
    "sys_exit_sync": ("syscalls", 823, _EXIT, _EXIT_TEXT),
    **{
        f"sys_{side}_{call}": ("syscalls", 860 + 2 * number + place, *event)
        for number, call in enumerate(_OTHER_CALLS)
        for place, (side, event) in enumerate((("enter", _FD), ("exit", (_EXIT, _EXIT_TEXT))))
    },
    # As record makes it, in a kernel of 6.12.
    "wbscope_12_0123abcd_blocked": (
        "synthetic",
        1200,
        ("pid_t pid", "u64 blocked_ns"),
        '"pid=%d blocked_ns=%llu", REC->pid, REC->blocked_ns',
    ),
    **SERVER_EVENTS,
}


def wait_formats(*names: str) -> list[EventFormat]:
    """The formats of the named events, of this module or of kernel_events."""
    own = [
        build_format(system, name, ident, fields, text)
        for name, (system, ident, fields, text) in _EVENTS.items()
        if name in names
    ]
    return [*own, *formats(*(name for name in names if name in NAMES and name not in _EVENTS))]


def at(ms: float) -> int:
    """Time of the trace in ns."""
    return _START + round(ms * MS)


def device(major: int, minor: int) -> int:
    """dev_t as the kernel records it."""
    return major << 20 | minor


class Waits:
    """A trace written event by event, in any order of time; times are ms from 10 s."""

    def __init__(
        self,
        *names: str,
        cmdlines: Mapping[int, str],
        page_bytes: int = 4096,
        uname: str = "Linux synthetic 6.1.0-test x86_64",
    ) -> None:
        self.trace = Trace(
            wait_formats(*names), cmdlines=cmdlines, page_bytes=page_bytes, uname=uname
        )
        self._comms = {0: "swapper/0", **cmdlines}
        self._events: list[tuple[int, int, int, str, dict[str, Value]]] = []

    def add(self, ms: float, tid: int, name: str, /, **values: Value) -> None:
        """One event."""
        self._events.append((at(ms), len(self._events), tid, name, values))

    def span(
        self, start: float, end: float, tid: int, names: tuple[str, str], /, **values: Value
    ) -> None:
        """The two events of a reclaim, a system call, an fsync or a sleep for log space."""
        self.add(start, tid, names[0], **values)
        self.add(end, tid, names[1], **values)

    def name(self, tid: int, comm: str) -> None:
        """What sched_switch calls the task from here on."""
        self._comms[tid] = comm

    def switch(self, ms: float, out: int, state: int, back: int) -> None:
        """A CPU goes from one task, left in that state, to another."""
        self.add(
            ms,
            out,
            "sched_switch",
            prev_comm=self._comms[out],
            prev_pid=out,
            prev_state=state,
            next_comm=self._comms[back],
            next_pid=back,
        )

    def sleep(self, start: float, end: float, tid: int, state: int = 2) -> None:
        """The task leaves the CPU to the idle task, in that state, and comes back."""
        self.switch(start, tid, state, 0)
        self.switch(end, 0, 0, tid)

    def request(
        self,
        tid: int,
        sector: int,
        *,
        insert: float | None = None,
        issue: float,
        complete: float,
        rwbs: str = "WS",
        dev: tuple[int, int] = (8, 0),
    ) -> None:
        """One block request of 8 sectors; it completes in the idle task."""
        values: dict[str, Value] = {"dev": device(*dev), "sector": sector, "nr_sector": 8}
        values["rwbs"] = rwbs
        if insert is not None:
            self.add(insert, tid, "block_rq_insert", **values)
        self.add(issue, tid, "block_rq_issue", **values)
        self.add(complete, 0, "block_rq_complete", **values)

    def write(self, folder: Path, lost_before: tuple[float, ...] = ()) -> None:
        """Write trace.dat; events were lost just before the first one at or after each time."""
        waiting = sorted(lost_before, reverse=True)
        for ts, _, tid, name, values in sorted(self._events, key=lambda event: event[:2]):
            while waiting and ts >= at(waiting[-1]):
                waiting.pop()
                self.trace.lost(0, 3)
            self.trace.event(0, ts, tid, name, values)
        self.trace.write(folder / "trace.dat")
