# SPDX-License-Identifier: Apache-2.0
"""Formats of the events of NFS, sunrpc and FUSE, as 6.12 has their fields."""

from __future__ import annotations

__all__ = ["FLUSHED", "NFS_FSYNC", "SERVER_EVENTS"]

NFS_FSYNC = ("nfs_fsync_enter", "nfs_fsync_exit")
FLUSHED = ("nfs_writeback_inode_enter", "nfs_writeback_inode_exit")

_FILE = ("dev_t dev", "unsigned int fhandle", "u64 fileid")
_ENTER = (*_FILE, "u64 version")
_EXIT = ("unsigned long error", *_FILE, "u64 version")
_PLACE = (*_FILE, "long long offset")
_TEXT = '"fileid=%llu", (unsigned long long)REC->fileid'

# name -> (system, id, fields, print fmt)
SERVER_EVENTS: dict[str, tuple[str, int, tuple[str, ...], str]] = {
    "nfs_fsync_enter": ("nfs", 1100, _ENTER, _TEXT),
    "nfs_fsync_exit": ("nfs", 1101, _EXIT, _TEXT),
    "nfs_writeback_inode_enter": ("nfs", 1102, _ENTER, _TEXT),
    "nfs_writeback_inode_exit": ("nfs", 1103, _EXIT, _TEXT),
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
