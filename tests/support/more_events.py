# SPDX-License-Identifier: Apache-2.0
"""Formats of flusher, reclaim, request, sync and page fault events for synthetic traces.

Source: include/trace/events/{writeback,vmscan,block}.h and arch/x86/include/asm/trace/exceptions.h,
field order of kernel 6.1; balance_dirty_pages of 4.3 and of the printk of 2011 as noted there.
"""

from __future__ import annotations

from .formats import EventFormat, build_format

__all__ = ["MORE_NAMES", "more_formats", "pause_of_4_4"]

_WORK = (
    "char name[32]",
    "long nr_pages",
    "dev_t sb_dev",
    "int sync_mode",
    "int for_kupdate",
    "int range_cyclic",
    "int for_background",
    "int reason",
    "ino_t cgroup_ino",
)
_REASONS = ("background", "vmscan", "sync", "periodic")
_WORK_TEXT = (
    '"bdi %s: sb_dev %d:%d nr_pages=%ld sync_mode=%d kupdate=%d range_cyclic=%d background=%d '
    'reason=%s cgroup_ino=%lu", REC->name, ((unsigned int) ((REC->sb_dev) >> 20)), '
    "((unsigned int) ((REC->sb_dev) & ((1U << 20) - 1))), REC->nr_pages, REC->sync_mode, "
    "REC->for_kupdate, REC->range_cyclic, REC->for_background, __print_symbolic(REC->reason, "
    + ", ".join(f'{{ {value}, "{word}" }}' for value, word in enumerate(_REASONS))
    + "), (unsigned long)REC->cgroup_ino"
)
_ISSUE = (
    "dev_t dev",
    "sector_t sector",
    "unsigned int nr_sector",
    "unsigned int bytes",
    "char rwbs[8]",
    "char comm[16]",
    "__data_loc char[] cmd",
)
_ISSUE_TEXT = (
    '"%d,%d %s %u (%s) %llu + %u [%s]", ((unsigned int) ((REC->dev) >> 20)), ((unsigned int) '
    "((REC->dev) & ((1U << 20) - 1))), REC->rwbs, REC->bytes, __get_str(cmd), "
    "(unsigned long long)REC->sector, REC->nr_sector, REC->comm"
)
_BIO = ("dev_t dev", "sector_t sector", "unsigned int nr_sector", "char rwbs[8]", "char comm[16]")
_BIO_TEXT = (
    '"%d,%d %s %llu + %u [%s]", ((unsigned int) ((REC->dev) >> 20)), ((unsigned int) ((REC->dev) '
    "& ((1U << 20) - 1))), REC->rwbs, (unsigned long long)REC->sector, REC->nr_sector, REC->comm"
)
_INACTIVE = (
    "int nid",
    *(
        f"unsigned long {name}"
        for name in (
            "nr_scanned",
            "nr_reclaimed",
            "nr_dirty",
            "nr_writeback",
            "nr_congested",
            "nr_immediate",
        )
    ),
    "unsigned int nr_activate0",
    "unsigned int nr_activate1",
    "unsigned long nr_ref_keep",
    "unsigned long nr_unmap_fail",
    "int priority",
    "int reclaim_flags",
)
_PATCHED = (
    "unsigned long pfn",
    *(
        f"unsigned long {name}"
        for name in (
            "z_inactive_file",
            "z_active_file",
            "z_inactive_anon",
            "z_active_anon",
            "z_write_pending",
            "n_dirty",
            "n_writeback",
            "g_dirty",
            "g_writeback",
        )
    ),
    "unsigned int nr_pages",
    "int nid",
    "int zid",
    "int reclaim_flags",
    "unsigned char reclaimer",
    "unsigned char outcome",
)
_FAULT = ("unsigned long address", "unsigned long ip", "unsigned long error_code")
_ENTER = ("int __syscall_nr", "unsigned int fd @{long}")

# name -> (system, id, fields, print fmt)
_EVENTS: dict[str, tuple[str, int, tuple[str, ...], str]] = {
    "writeback_queue": ("writeback", 860, _WORK, _WORK_TEXT),
    "writeback_exec": ("writeback", 859, _WORK, _WORK_TEXT),
    "writeback_start": ("writeback", 858, _WORK, _WORK_TEXT),
    "writeback_written": ("writeback", 857, _WORK, _WORK_TEXT),
    "writeback_pages_written": ("writeback", 855, ("long pages",), '"%ld", REC->pages'),
    "writeback_balance_dirty_pages_waiting": (
        "writeback",
        853,
        ("char name[32]", "unsigned long pages"),
        '"bdi=%s pages=%lu", REC->name, REC->pages',
    ),
    "writeback_balance_dirty_pages_woken": (
        "writeback",
        852,
        ("char name[32]",),
        '"bdi=%s", REC->name',
    ),
    "block_rq_issue": ("block", 1191, _ISSUE, _ISSUE_TEXT),
    "block_bio_queue": ("block", 1185, _BIO, _BIO_TEXT),
    "mm_vmscan_lru_shrink_inactive": (
        "vmscan",
        519,
        _INACTIVE,
        '"nid=%d nr_scanned=%ld", REC->nid, REC->nr_scanned',
    ),
    "mm_vmscan_kswapd_wake": (
        "vmscan",
        531,
        ("int nid", "int zid", "int order"),
        '"nid=%d order=%d", REC->nid, REC->order',
    ),
    "mm_vmscan_reclaim_writeback": ("vmscan", 540, _PATCHED, '"pfn=0x%lx", REC->pfn'),
    "page_fault_user": ("exceptions", 120, _FAULT, '"address=0x%lx", REC->address'),
    "page_fault_kernel": ("exceptions", 119, _FAULT, '"address=0x%lx", REC->address'),
    "sys_enter_sync": ("syscalls", 751, ("int __syscall_nr",), '""'),
    "sys_exit_sync": ("syscalls", 750, ("int __syscall_nr", "long ret"), '"0x%lx", REC->ret'),
    "sys_enter_fsync": ("syscalls", 755, _ENTER, '"fd: 0x%08lx", ((unsigned long)(REC->fd))'),
    "sys_exit_fsync": ("syscalls", 754, ("int __syscall_nr", "long ret"), '"0x%lx", REC->ret'),
}


MORE_NAMES = tuple(_EVENTS)
"""Every event of this module."""


def more_formats(*names: str, long_bytes: int = 8) -> list[EventFormat]:
    """The formats of the named events for a kernel of that long size."""
    found = []
    for name in names:
        system, ident, fields, text = _EVENTS[name]
        sized = tuple(decl.replace("{long}", str(long_bytes)) for decl in fields)
        found.append(build_format(system, name, ident, sized, text, long_bytes=long_bytes))
    return found


def pause_of_4_4() -> EventFormat:
    """balance_dirty_pages of 4.3 to 4.5: the cgroup's path where later kernels have its inode."""
    numbers = ("limit", "setpoint", "dirty", "bdi_setpoint", "bdi_dirty")
    rates = ("dirty_ratelimit", "task_ratelimit")
    fields = (
        "char bdi[32]",
        *(f"unsigned long {name}" for name in (*numbers, *rates)),
        "unsigned int dirtied",
        "unsigned int dirtied_pause",
        "unsigned long paused",
        "long pause",
        "unsigned long period",
        "long think",
        "__data_loc char[] cgroup",
    )
    text = '"bdi %s: limit=%lu cgroup=%s", REC->bdi, REC->limit, __get_str(cgroup)'
    return build_format("writeback", "balance_dirty_pages", 835, fields, text)
