-- SPDX-License-Identifier: Apache-2.0
-- Disks and flushers.

-- @query    disk_rates
-- @title    How fast each device writes
-- @summary  What each device writes while it has something to write.
-- @read     rate is written bytes over the time in which the device had a
--   write or flush: what it can do, however seldom it was asked, and beside
--   what it read. Where only samples tell, all requests count, and a device
--   that mostly reads looks slower than it is. A limit over it is
--   how many seconds of writing the limit holds. A volume on a disk (LVM) has
--   the numbers of that disk, so the rows do not add up; one that is slow
--   itself (dm-crypt) has its own. Where pages are compressed (btrfs), they
--   count as they were in memory. Of a device that became slow in the run, the
--   rate is that from then on.
-- @filters  bdi
-- @grain    device; order bdi
-- @optional block:block_rq_issue, block:block_rq_complete,
--   writeback:global_dirty_state, writeback:bdi_dirty_ratelimit
-- @column   bdi TEXT device
-- @column   disk_bytes_per_s REAL written bytes over the time with a write or
--   flush; of NFS and FUSE the fastest sample
-- @column   written_bytes INTEGER all that it wrote, or its disks did
-- @column   busy_ns INTEGER that time; NULL = not recorded
-- @column   below_ratio REAL of a device that is slow itself and not its disks:
--   how long all of these were busy, over its own time; else NULL
-- @column   before_bytes_per_s REAL of a device that became slow or fast in the
--   run: its rate until then; else NULL
-- @column   after_bytes_per_s REAL its rate from then on
-- @column   changed_after_ns INTEGER when, from the start of the trace
-- @column   believed_bytes_per_s INTEGER highest avg_write_bw, what the kernel
--   thought that it writes; NULL = not told
-- @column   thresh_ns INTEGER how long it takes to write the machine's dirty
--   threshold
-- @column   dirty_max_ns INTEGER how long it takes to write the most that was
--   dirty
-- @column   gap_ns INTEGER how long it takes to write what lies between the
--   background threshold and the dirty threshold
-- @metric   disk_bytes_per_s higher: how fast the disk wrote while it had
--   something to write
WITH
  believed AS (
    SELECT w.bdi, max(w.avg_write_bw_bytes_per_s) AS bytes_per_s
    FROM wb_bandwidth AS w
    GROUP BY w.bdi
  )
SELECT
  d.bdi, d.disk_bytes_per_s,
  CAST(d.written_bytes AS INTEGER) AS written_bytes,
  d.busy_ns, d.request_bytes, d.reached_ratio, d.below_ratio,
  d.before_bytes_per_s, d.after_bytes_per_s,
  d.changed_ts - o.first_ts AS changed_after_ns,
  b.bytes_per_s AS believed_bytes_per_s,
  CAST(e.thresh_bytes * u.second_ns / d.disk_bytes_per_s AS INTEGER)
    AS thresh_ns,
  CAST(e.dirty_max_bytes * u.second_ns / d.disk_bytes_per_s AS INTEGER)
    AS dirty_max_ns,
  CAST(
    (e.thresh_bytes - e.bg_thresh_bytes) * u.second_ns / d.disk_bytes_per_s
    AS INTEGER
  ) AS gap_ns,
  d.basis
FROM wb_disk_rate AS d
CROSS JOIN wb_params AS p
CROSS JOIN wb_units AS u
CROSS JOIN wb_bounds AS o
CROSS JOIN dirty_limits AS e
LEFT JOIN believed AS b ON b.bdi = d.bdi
WHERE p.bdi IS NULL OR d.bdi = p.bdi
ORDER BY d.bdi;
