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
_ISOLATE = (
    "int highest_zoneidx",
    "int order",
    *(f"unsigned long nr_{name}" for name in ("requested", "scanned", "skipped", "taken")),
    "int lru",
)
_PATCHED_COUNTERS = (
    *(f"z_{name}" for name in ("inactive_file", "active_file", "inactive_anon", "active_anon")),
    "z_write_pending",
    *(f"n_{name}" for name in ("inactive_file", "active_file", "isolated_file", "isolated_anon")),
    "n_dirty",
    "n_writeback",
    *(f"g_{name}" for name in ("inactive_file", "active_file", "isolated_file", "isolated_anon")),
    "g_dirty",
    "g_writeback",
)
_PATCHED = (
    "u64 memcg_id",
    "unsigned long pfn",
    *(f"unsigned long {name}" for name in _PATCHED_COUNTERS),
    "u64 ino",
    "dev_t dev",
    "unsigned int nr_pages",
    "int nid",
    "int zid",
    "int reclaim_flags",
    "u8 reclaimer",
    "u8 outcome",
    "u8 priority",
    "u8 order",
)
_ZONES = ("DMA", "DMA32", "Normal", "Movable")
_PATCHED_TEXT = (
    '"nid=%d zone=%s pfn=0x%lx nr_pages=%u", REC->nid, __print_symbolic(REC->zid, '
    + ", ".join(f'{{ {value}, "{word}" }}' for value, word in enumerate(_ZONES))
    + "), REC->pfn, REC->nr_pages"
)
_DONE = (
    "char bdi[32]",
    "u64 cgroup_ino",
    "u64 wait_ns",
    "u64 total_ns",
    "unsigned long intended",
    "unsigned int pages_dirtied",
    "unsigned int loops",
    "unsigned int sleeps",
    "u8 domain",
    "u8 exit",
    "int ret",
)
_DOMAIN = (
    "u64 cgroup_ino",
    *(f"unsigned long {name}" for name in ("avail", "dirty", "bg_thresh", "thresh", "dirty_limit")),
    "u8 domain",
    "u8 rt_boost",
    "u8 caller",
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
    "mm_vmscan_lru_isolate": (
        "vmscan",
        521,
        _ISOLATE,
        '"nr_requested=%lu nr_taken=%lu", REC->nr_requested, REC->nr_taken',
    ),
    "mm_vmscan_kswapd_wake": (
        "vmscan",
        531,
        ("int nid", "int zid", "int order"),
        '"nid=%d order=%d", REC->nid, REC->order',
    ),
    "mm_vmscan_reclaim_writeback": ("vmscan", 540, _PATCHED, _PATCHED_TEXT),
    "balance_dirty_pages_done": (
        "writeback",
        541,
        _DONE,
        '"bdi %s: loops=%u", REC->bdi, REC->loops',
    ),
    "wb_domain_dirty_state": ("writeback", 542, _DOMAIN, '"dirty=%lu", REC->dirty'),
    "page_fault_user": ("exceptions", 120, _FAULT, '"address=0x%lx", REC->address'),
    "page_fault_kernel": ("exceptions", 119, _FAULT, '"address=0x%lx", REC->address'),
    "balance_dirty_pages_entry": (
        "wbscope",
        1801,
        ("unsigned long __probe_ip", "u64 wb", "u64 pages"),
        '"(%lx) wb=0x%Lx pages=%Lu", REC->__probe_ip, REC->wb, REC->pages',
    ),
    "balance_dirty_pages_return": (
        "wbscope",
        1802,
        ("unsigned long __probe_func", "unsigned long __probe_ret_ip", "int ret"),
        '"(%lx <- %lx) ret=%d", REC->__probe_func, REC->__probe_ret_ip, REC->ret',
    ),
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
