-- SPDX-License-Identifier: Apache-2.0
-- Where tasks waited.

-- @query    task_faults
-- @title    Page faults and paging of each task
-- @summary  Faults of each task, what it read from disks, what it swapped out.
-- @read     faults are minor and major ones together: no event of the kernel
--   tells them apart for one task; system-wide they are Minor and Major Faults
--   of mmtests_vmstat. reads are bios that the task itself sent, as it does in
--   a major fault or for a swap-in, but also in read(). swapped_out is what the
--   task gave to swap as a reclaimer, mostly pages of others; no event tells
--   which of its pages a device had to write: swap_device_ratio is the
--   machine's, and says it of the task only where it is 0 % or 100 %. Faults
--   are so frequent that ingest leaves them out, and they are NULL, unless it
--   is run with --events 'exceptions:page_fault_*'.
-- @filters  range, tid, task
-- @grain    task under a name; order faults_count descending, tid
-- @optional exceptions:page_fault_user, exceptions:page_fault_kernel,
--   block:block_bio_queue,
--   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage
-- @column   tid INTEGER thread
-- @column   comm TEXT its name at that time; as in throttle_by_task
-- @column   faults_count INTEGER both below; NULL = not recorded, or not loaded
-- @column   user_faults_count INTEGER in the program
-- @column   kernel_faults_count INTEGER in the kernel on its behalf
-- @column   reads_count INTEGER bios for reading; NULL = not recorded
-- @column   read_bytes INTEGER of those bios
-- @column   swapped_out_count INTEGER anon folios that the task, reclaiming,
--   gave to swap, whether or not a device had to write them; NULL = not
--   recorded
-- @column   swap_device_ratio REAL share of the machine's pages given to swap
--   in the whole run that reached the swap device, the same in each row that
--   swapped out; the rest was zero-filled or went to zswap; NULL = not known
-- @metric   faults_count lower: how often the program touched memory that was
--   not there; a rise between two runs of the same work means that reclaim took
--   away pages that were still in use
-- @metric   read_bytes lower: what the task had to wait for from a disk; of a
--   program that fits into memory, pages that reclaim should have kept
-- @source   arch/x86/mm/fault.c; block/blk-core.c
WITH
  loaded AS (
    SELECT
      recorded!('exceptions:page_fault_user') AND NOT EXISTS (
        SELECT 1 FROM raw_event_counts AS c
        WHERE c.event = 'exceptions:page_fault_user'
          AND c.loaded_count < c.count
      ) AS has_user,
      recorded!('exceptions:page_fault_kernel') AND NOT EXISTS (
        SELECT 1 FROM raw_event_counts AS c
        WHERE c.event = 'exceptions:page_fault_kernel'
          AND c.loaded_count < c.count
      ) AS has_kernel,
      recorded!('block:block_bio_queue') AS has_bios,
      EXISTS (
        SELECT 1 FROM raw_event_format AS f
        WHERE f.event IN (
          'vmscan:mm_vmscan_write_folio', 'vmscan:mm_vmscan_writepage'
        )
      ) AS has_writes
  ),
  done AS (
    SELECT
      f.ts, f.tid, 1 AS user_fault, 0 AS kernel_fault, 0 AS is_read,
      0 AS sectors, 0 AS swapped_out
    FROM raw_page_fault_user AS f
    UNION ALL
    SELECT k.ts, k.tid, 0, 1, 0, 0, 0 FROM raw_page_fault_kernel AS k
    UNION ALL
    SELECT q.ts, q.tid, 0, 0, 1, q.nr_sector, 0
    FROM raw_block_bio_queue AS q
    WHERE q.op = 'read'
    UNION ALL
    SELECT w.ts, w.tid, 0, 0, 0, 0, 1
    FROM reclaim_work AS w
    WHERE w.work = 'write' AND w.reclaim_flags & 3 = 1
  ),
  summed AS (
    SELECT
      d.tid, t.task_id, t.comm,
      sum(d.user_fault) AS user_faults,
      sum(d.kernel_fault) AS kernel_faults,
      sum(d.is_read) AS reads,
      sum(d.sectors) AS sectors,
      sum(d.swapped_out) AS swapped_out
    FROM done AS d
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    LEFT JOIN wb_task AS t
      ON t.tid = d.tid AND d.ts >= t.from_ts AND d.ts < t.until_ts
    WHERE in_time!(d.ts, b)
      AND (p.tid IS NULL OR d.tid = p.tid)
      AND (
        p.comm_glob IS NULL
        OR coalesce(t.comm, 'tid ' || d.tid) GLOB p.comm_glob
      )
    GROUP BY d.tid, t.task_id, t.comm
  )
SELECT
  s.tid,
  coalesce(s.comm, 'tid ' || s.tid) AS comm,
  CASE WHEN l.has_user AND l.has_kernel THEN s.user_faults + s.kernel_faults END
    AS faults_count,
  CASE WHEN l.has_user THEN s.user_faults END AS user_faults_count,
  CASE WHEN l.has_kernel THEN s.kernel_faults END AS kernel_faults_count,
  CASE WHEN l.has_bios THEN s.reads END AS reads_count,
  CASE WHEN l.has_bios THEN s.sectors * u.sector_bytes END AS read_bytes,
  CASE WHEN l.has_writes THEN s.swapped_out END AS swapped_out_count,
  CASE
    WHEN l.has_writes AND s.swapped_out > 0 AND g.device_count <= g.anon_count
      THEN 1.0 * g.device_count / nullif(g.anon_count, 0)
  END AS swap_device_ratio
FROM summed AS s
CROSS JOIN loaded AS l
CROSS JOIN wb_units AS u
CROSS JOIN reclaim_run AS g
ORDER BY s.user_faults + s.kernel_faults DESC, s.tid, s.task_id;
