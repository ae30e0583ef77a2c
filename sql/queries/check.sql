-- SPDX-License-Identifier: Apache-2.0
-- What is wrong.

-- @query    check
-- @title    Does the trace agree with what is beside it?
-- @summary  The trace beside every independent source: vmstat, fio, file sizes,
--   system calls, disks, the scheduler, and the kernel's control law.
-- @read     A row that differs with is_binding 1 says that the trace is not
--   whole, that the files are of another time, or that a number is wrong;
--   others can have a reason in the workload. Files that are read before and
--   after a trace count more than it. The control law computes the rate of each
--   throttled call again from its own numbers; residual_ratio is the share with
--   another rate, and law lists them.
-- @grain    comparison; order as listed
-- @keys     source, what
-- @optional writeback:balance_dirty_pages, writeback:global_dirty_state,
--   writeback:bdi_dirty_ratelimit, block:block_rq_complete,
--   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage,
--   vmscan:mm_vmscan_lru_shrink_inactive,
--   vmscan:mm_vmscan_direct_reclaim_begin, sched:sched_switch,
--   syscalls:sys_exit_write
-- @column   source TEXT what the trace is compared with
-- @column   what TEXT what is compared
-- @column   unit TEXT of both values: pages, bytes, calls, ns or events
-- @column   trace_value INTEGER of the trace; NULL = not recorded. Of the
--   control law: events replayed
-- @column   other_value INTEGER of the source; NULL = not recorded. Of the
--   control law: events with its rate
-- @column   residual_ratio REAL (other - trace) / other; of the control law the
--   share of events that disagree
-- @column   verdict TEXT agrees, differs or not recorded
-- @column   is_binding INTEGER 1: the trace of a whole run has to agree; 0:
--   other writers, deleted files, direct I/O and so on can make a difference
-- @column   why TEXT what the verdict rests on
-- @source   wb_rule has the tolerances; docs/check.md
SELECT
  c.source, c.what, c.unit, c.trace_value, c.other_value, c.residual_ratio,
  c.verdict, c.is_binding, c.why
FROM (
  SELECT k.* FROM wb_check AS k
  UNION ALL
  SELECT
    -1,
    'counts of the kernel',
    i.what,
    'events',
    i.rows_count, i.events_count, NULL,
    'differs',
    1,
    'no machine can have that: a kernel bug'
  FROM wb_impossible AS i
) AS c
ORDER BY c.place, c.what;
