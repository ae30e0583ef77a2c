# SPDX-License-Identifier: Apache-2.0
"""Formats of the kernel's events, as synthetic traces have them."""

from __future__ import annotations

from collections.abc import Sequence

from .formats import EventFormat, build_format

__all__ = ["NAMES", "formats", "new_balance_dirty_pages", "pause_of_4_4"]


# Formats of the kernel events that synthetic traces use, as the kernel declares them.
#
# Source: include/trace/events/{writeback,vmscan,block,sched}.h, field order of kernel 6.1, and that
# of 7.2 for balance_dirty_pages.


def _key_values(prefix: str, keys: Sequence[tuple[str, str, str]]) -> str:
    """A print fmt of key=value pairs: prefix, then (key, conversion, expression) for each."""
    text = " ".join(f"{key}={conversion}" for key, conversion, _ in keys)
    expressions = ", ".join(expression for _, _, expression in keys)
    bdi = ", REC->bdi" if prefix else ""
    return f'"{prefix}{text}"{bdi}, {expressions}'


def _unsigned(*names: str) -> list[tuple[str, str, str]]:
    return [(name, "%lu", f"REC->{name}") for name in names]


_CGROUP_KEY = ("cgroup_ino", "%lu", "(unsigned long)REC->cgroup_ino")
_PAUSE_FIELDS = (
    "char bdi[32]",
    "unsigned long limit",
    "unsigned long setpoint",
    "unsigned long dirty",
    "unsigned long bdi_setpoint",
    "unsigned long bdi_dirty",
    "unsigned long dirty_ratelimit",
    "unsigned long task_ratelimit",
    "unsigned int dirtied",
    "unsigned int dirtied_pause",
    "unsigned long paused",
    "long pause",
    "unsigned long period",
    "long think",
    "ino_t cgroup_ino",
)
_RATELIMIT_NAMES = (
    "write_bw",
    "avg_write_bw",
    "dirty_rate",
    "dirty_ratelimit",
    "task_ratelimit",
    "balanced_dirty_ratelimit",
)
_STATE_KEYS = {
    "dirty": "nr_dirty",
    "writeback": "nr_writeback",
    "bg_thresh": "background_thresh",
    "thresh": "dirty_thresh",
    "limit": "dirty_limit",
    "dirtied": "nr_dirtied",
    "written": "nr_written",
}


def _pause_text(wb: str, cgroup_key: tuple[str, str, str]) -> str:
    keys = _unsigned("limit", "setpoint", "dirty", f"{wb}_setpoint", f"{wb}_dirty")
    keys += _unsigned("dirty_ratelimit", "task_ratelimit")
    keys += [(name, "%u", f"REC->{name}") for name in ("dirtied", "dirtied_pause")]
    keys += [("paused", "%lu", "REC->paused"), ("pause", "%ld", "REC->pause")]
    keys += [("period", "%lu", "REC->period"), ("think", "%ld", "REC->think"), cgroup_key]
    return _key_values("bdi %s: ", keys)


def _ratelimit_text() -> str:
    keys = _unsigned(*_RATELIMIT_NAMES)
    printed = [(key.replace("avg_write_bw", "awrite_bw"), form, value) for key, form, value in keys]
    return _key_values("bdi %s: ", [*printed, _CGROUP_KEY])


_WRITE_TEXT = (
    '"page=%p pfn=0x%lx flags=%s", REC->pfn, REC->pfn, (REC->reclaim_flags) ? '
    '__print_flags(REC->reclaim_flags, "|", {0x0001u, "RECLAIM_WB_ANON"}, '
    '{0x0002u, "RECLAIM_WB_FILE"}, {0x0010u, "RECLAIM_WB_MIXED"}, {0x0004u, "RECLAIM_WB_SYNC"}, '
    '{0x0008u, "RECLAIM_WB_ASYNC"} ) : "RECLAIM_WB_NONE"'
)
_SWITCH_TEXT = (
    '"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d '
    'next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & 0xff) ? '
    '__print_flags(REC->prev_state & 0xff, "|", { 0x0001, "S" }, { 0x0002, "D" }, '
    '{ 0x0004, "T" }, { 0x0008, "t" }, { 0x0010, "X" }, { 0x0020, "Z" }, { 0x0040, "P" }, '
    '{ 0x0080, "I" }) : "R", REC->prev_state & 0x100 ? "+" : "", REC->next_comm, REC->next_pid, '
    "REC->next_prio"
)
_WAKING_TEXT = (
    '"comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu'
)
_REQUEST_TEXT = (
    '"%d,%d %s (%s) %llu + %u [%d]", ((unsigned int) ((REC->dev) >> 20)), '
    "((unsigned int) ((REC->dev) & ((1U << 20) - 1))), REC->rwbs, __get_str(cmd), "
    "(unsigned long long)REC->sector, REC->nr_sector, REC->error"
)
_WRITE_CALL_TEXT = (
    '"fd: 0x%08lx, buf: 0x%08lx, count: 0x%08lx", ((unsigned long)(REC->fd)), '
    "((unsigned long)(REC->buf)), ((unsigned long)(REC->count))"
)
_RECLAIM_BEGIN = (
    ("int order", "unsigned long gfp_flags"),
    '"order=%d gfp_flags=0x%lx", REC->order, REC->gfp_flags',
)
_RECLAIM_END = (("unsigned long nr_reclaimed",), '"nr_reclaimed=%lu", REC->nr_reclaimed')
_REQUEST_FIELDS = (
    "dev_t dev",
    "sector_t sector",
    "unsigned int nr_sector",
    "int error",
    "char rwbs[8]",
    "__data_loc char[] cmd",
)
_SWITCH_FIELDS = (
    "char prev_comm[16]",
    "pid_t prev_pid",
    "int prev_prio",
    "long prev_state",
    "char next_comm[16]",
    "pid_t next_pid",
    "int next_prio",
)
_WAKING_FIELDS = ("char comm[16]", "pid_t pid", "int prio", "int target_cpu")
_WRITE_CALL_FIELDS = (
    "int __syscall_nr",
    "unsigned int fd @{long}",
    "const char * buf",
    "size_t count",
)
# name -> (system, id, fields, print fmt)
_EVENTS: dict[str, tuple[str, int, tuple[str, ...], str]] = {
    "balance_dirty_pages": ("writeback", 835, _PAUSE_FIELDS, _pause_text("bdi", _CGROUP_KEY)),
    "bdi_dirty_ratelimit": (
        "writeback",
        836,
        (
            "char bdi[32]",
            *(f"unsigned long {name}" for name in _RATELIMIT_NAMES),
            "ino_t cgroup_ino",
        ),
        _ratelimit_text(),
    ),
    "global_dirty_state": (
        "writeback",
        837,
        tuple(f"unsigned long {name}" for name in _STATE_KEYS.values()),
        _key_values("", [(key, "%lu", f"REC->{name}") for key, name in _STATE_KEYS.items()]),
    ),
    "mm_vmscan_write_folio": (
        "vmscan",
        520,
        ("unsigned long pfn", "int reclaim_flags"),
        _WRITE_TEXT,
    ),
    "mm_vmscan_direct_reclaim_begin": ("vmscan", 529, *_RECLAIM_BEGIN),
    "mm_vmscan_direct_reclaim_end": ("vmscan", 526, *_RECLAIM_END),
    "mm_vmscan_memcg_reclaim_begin": ("vmscan", 528, *_RECLAIM_BEGIN),
    "mm_vmscan_memcg_reclaim_end": ("vmscan", 525, *_RECLAIM_END),
    "sched_switch": ("sched", 310, _SWITCH_FIELDS, _SWITCH_TEXT),
    "sched_waking": ("sched", 313, _WAKING_FIELDS, _WAKING_TEXT),
    "sys_enter_write": ("syscalls", 807, _WRITE_CALL_FIELDS, _WRITE_CALL_TEXT),
    "sys_exit_write": ("syscalls", 806, ("int __syscall_nr", "long ret"), '"0x%lx", REC->ret'),
    "block_rq_complete": ("block", 1193, _REQUEST_FIELDS, _REQUEST_TEXT),
}


def new_balance_dirty_pages() -> EventFormat:
    """balance_dirty_pages of 7.2: wb_setpoint and wb_dirty, cgroup_ino second, counts last."""
    fields = [decl.replace(" bdi_", " wb_") for decl in _PAUSE_FIELDS if "cgroup_ino" not in decl]
    counts = [decl for decl in fields if decl.startswith("unsigned int ")]
    middle = [decl for decl in fields[1:] if decl not in counts]
    text = _pause_text("wb", ("cgroup_ino", "%llu", "REC->cgroup_ino"))
    order = (fields[0], "u64 cgroup_ino", *middle, *counts)
    return build_format("writeback", "balance_dirty_pages", 962, order, text)


# Formats of flusher, reclaim, request, sync and page fault events for synthetic traces.
#
# Source: include/trace/events/{writeback,vmscan,block}.h and
# arch/x86/include/asm/trace/exceptions.h, field order of kernel 6.1; balance_dirty_pages of 4.3 and
# of the printk of 2011 as noted there.

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
ISSUE = (
    "dev_t dev",
    "sector_t sector",
    "unsigned int nr_sector",
    "unsigned int bytes",
    "char rwbs[8]",
    "char comm[16]",
    "__data_loc char[] cmd",
)
ISSUE_TEXT = (
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
_EVENTS |= {
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
    "block_rq_issue": ("block", 1191, ISSUE, ISSUE_TEXT),
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
NAMES = tuple(_EVENTS)
"""Every event of this module; balance_dirty_pages under its field names before 6.15."""


def formats(*names: str, long_bytes: int = 8) -> list[EventFormat]:
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
