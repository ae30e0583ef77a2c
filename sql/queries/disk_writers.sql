-- SPDX-License-Identifier: Apache-2.0
-- Disks and flushers.

-- @query    disk_writers
-- @title    Who gave each disk its requests
-- @order    53
-- @summary  Bytes of block requests by the task that submitted them.
-- @read     The flusher submits what was dirtied in memory. What a task submits
--   itself outside of fsync and the like is direct I/O, a write to a file that
--   is open with O_SYNC, or writeback that it starts otherwise (reclaim or
--   fadvise). Where only block_rq_issue was recorded, requests that a full
--   queue handed to a kworker are under its name.
-- @filters  range, bdi, tid, task
-- @grain    device, op, task under a name, way; order bytes descending
-- @keys     device, op, tid, comm
-- @events   block:block_rq_issue|block:block_rq_insert
-- @optional block:block_rq_insert, block:block_rq_complete,
--   syscalls:sys_enter_fsync, ext4:ext4_sync_file_enter
-- @column   device TEXT major:minor
-- @column   op TEXT read or write
-- @column   tid INTEGER thread that submitted them
-- @column   comm TEXT its name
-- @column   way TEXT kernel: a thread of the kernel submitted them, such as the
--   flusher; metadata: marked so; sync: the task was in fsync or the like;
--   itself: it was not
-- @column   requests_count INTEGER requests
-- @column   bytes INTEGER of them
-- @column   share_ratio REAL of the bytes of this op on the device
-- @metric   bytes neutral: bytes of the requests that the task itself gave to
--   the disk
-- @source   block/fops.c; fs/fs-writeback.c; include/trace/events/block.h
WITH
  summed AS (
    SELECT
      r.device, r.op, r.tid, t.task_id, t.comm,
      way!(r, t) AS way,
      count(*) AS requests_count,
      sum(r.bytes) AS bytes
    FROM wb_wait_request AS r
    CROSS JOIN wb_bounds AS b
    LEFT JOIN wb_task AS t ON task_of!(t, r)
    WHERE r.op IN ('read', 'write') AND in_time!(r.ts, b)
    GROUP BY r.device, r.op, r.tid, t.task_id, t.comm, 6
  ),
  shared AS (
    SELECT
      s.*,
      1.0 * s.bytes / nullif(sum(s.bytes) OVER (PARTITION BY s.device, s.op), 0)
        AS share_ratio
    FROM summed AS s
  )
SELECT
  s.device, s.op, s.tid, s.comm, s.way, s.requests_count, s.bytes,
  s.share_ratio
FROM shared AS s
CROSS JOIN wb_params AS p
WHERE of_disk!(s.device, p)
  AND of_task!(s, p)
ORDER BY s.bytes DESC, s.device, s.op, s.tid, s.comm, s.way;
