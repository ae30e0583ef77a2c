-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_bandwidth
-- @title    Bandwidth of each bdi
-- @order    30
-- @summary  The kernel's estimates of bandwidth and its rate limits, by bdi and
--   cgroup, and what each task was allowed.
-- @grain    sample of one curve; order ts
-- @needs    wb_bandwidth, wb_throttle
-- @events   writeback:bdi_dirty_ratelimit
-- @optional writeback:balance_dirty_pages
CREATE VIEW tl_bandwidth AS
WITH
  named AS (
    SELECT
      'Writeback/Bandwidth ' || r.bdi
        || CASE
          WHEN r.cgroup_ino > 1 THEN ' cgroup ' || r.cgroup_ino
          ELSE ''
        END || '/' AS parent,
      r.ts,
      r.write_bw_bytes_per_s,
      r.avg_write_bw_bytes_per_s,
      r.dirty_rate_bytes_per_s,
      r.dirty_ratelimit_bytes_per_s,
      r.task_ratelimit_bytes_per_s,
      r.balanced_dirty_ratelimit_bytes_per_s
    FROM wb_bandwidth AS r
  )
SELECT
  n.ts,
  NULL AS dur,
  n.parent || 'write_bw' AS track,
  NULL AS name,
  n.write_bw_bytes_per_s AS value,
  'bytes/s' AS unit,
  NULL AS args,
  0 AS rank
FROM named AS n
UNION ALL
SELECT n.ts, NULL, n.parent || 'avg_write_bw', NULL,
  n.avg_write_bw_bytes_per_s, 'bytes/s', NULL, 1
FROM named AS n
UNION ALL
SELECT n.ts, NULL, n.parent || 'dirty_rate', NULL, n.dirty_rate_bytes_per_s,
  'bytes/s', NULL, 2
FROM named AS n
UNION ALL
SELECT n.ts, NULL, n.parent || 'dirty_ratelimit', NULL,
  n.dirty_ratelimit_bytes_per_s, 'bytes/s', NULL, 3
FROM named AS n
UNION ALL
SELECT n.ts, NULL, n.parent || 'balanced_dirty_ratelimit', NULL,
  n.balanced_dirty_ratelimit_bytes_per_s, 'bytes/s', NULL, 4
FROM named AS n
UNION ALL
SELECT n.ts, NULL, n.parent || 'task_ratelimit', NULL,
  n.task_ratelimit_bytes_per_s, 'bytes/s', NULL, 5
FROM named AS n
UNION ALL
SELECT
  t.ts,
  NULL,
  'Writeback/Bandwidth ' || t.bdi
    || CASE WHEN t.cgroup_ino > 1 THEN ' cgroup ' || t.cgroup_ino ELSE '' END
    || '/task_ratelimit of ' || replace(t.comm, '/', '\/') || ' ' || t.tid,
  NULL,
  t.task_ratelimit_bytes_per_s,
  'bytes/s',
  NULL,
  6
FROM wb_throttle AS t;
