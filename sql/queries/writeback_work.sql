-- SPDX-License-Identifier: Apache-2.0
-- Disks and flushers.

-- @query    writeback_work
-- @title    Work of the flushers
-- @summary  Each work item of the flushers: why, how long, how many pages.
-- @read     background work runs while dirty pages are above bg_thresh,
--   periodic writes what is old, sync is what sync() waits for, vmscan means
--   that reclaim met dirty pages. Only work that someone ordered is queued. A
--   row without finished_ts has no chunk that ended in the trace.
-- @filters  range, bdi, cgroup
-- @grain    work item; order its first event
-- @keys     bdi, cgroup_ino, reason, queued_ts, started_ts
-- @events   writeback:writeback_start, writeback:writeback_written
-- @optional writeback:writeback_queue, writeback:writeback_exec,
--   writeback:writeback_pages_written
-- @column   reason TEXT background, periodic, sync, vmscan, fs_free_space ...
-- @column   queued_ts INTEGER trace clock; NULL = work of this kind is not
--   queued, or it was before the trace began
-- @column   started_ts INTEGER trace clock; NULL = not begun in the trace
-- @column   finished_ts INTEGER trace clock, end of its last chunk
-- @column   queue_wait_ns INTEGER from queued to started
-- @column   dur INTEGER ns, from started to finished
-- @column   chunks_count INTEGER rounds in which it was done
-- @column   pages_count INTEGER pages written
-- @column   bytes INTEGER written
-- @column   written_bytes_per_s REAL over dur
-- @metric   queue_wait_ns lower: how long ordered work, such as that of a sync,
--   waited until the kernel's writing thread (flusher) began with it
-- @metric   written_bytes_per_s higher: how fast this piece of work gave data
--   to the disk; above the disk's speed while its queue fills
-- @source   fs/fs-writeback.c wb_do_writeback(), wb_writeback()
SELECT
  w.bdi, w.cgroup_ino, w.reason, w.queued_ts, w.started_ts, w.finished_ts,
  w.started_ts - w.queued_ts AS queue_wait_ns,
  w.finished_ts - w.started_ts AS dur,
  w.chunks_count, w.pages_count, w.bytes,
  1.0 * w.bytes * u.second_ns / nullif(w.finished_ts - w.started_ts, 0)
    AS written_bytes_per_s
FROM wb_work AS w
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS p
CROSS JOIN wb_units AS u
-- What began before the trace is in the part that the trace begins with.
WHERE coalesce(w.queued_ts, w.started_ts, b.first_ts, b.start_ts) >= b.start_ts
  AND coalesce(w.queued_ts, w.started_ts, b.first_ts, b.start_ts) < b.end_ts
  AND of_wb!(w, p)
ORDER BY w.seq;
