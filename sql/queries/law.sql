-- SPDX-License-Identifier: Apache-2.0
-- Throttled tasks.

-- @query    law
-- @title    Rates that the control law does not give
-- @summary  balance_dirty_pages events whose task_ratelimit is not what the
--   kernel's control law makes of their own numbers.
-- @read     None is normal, a few can be calls within which a number changed.
--   More of them mean a changed kernel, a wb with strictlimit, or a fault of
--   wbscope; why says which it can be. Events that cannot be replayed, or not
--   exactly, are in wb_law with is_replayed = 0; check counts them.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    event; order seq
-- @keys     ts, tid, comm
-- @events   writeback:balance_dirty_pages, writeback:global_dirty_state,
--   writeback:bdi_dirty_ratelimit
-- @optional writeback:wb_domain_dirty_state
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER trace clock
-- @column   tid INTEGER thread that dirties pages
-- @column   comm TEXT its name at that time
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   domain TEXT whose limits throttled: global or memcg
-- @column   predicted_bytes_per_s INTEGER by the law
-- @column   recorded_bytes_per_s INTEGER task_ratelimit
-- @column   off_ratio REAL (predicted - recorded) / recorded
-- @column   why TEXT what it can be
-- @source   mm/page-writeback.c wb_position_ratio()
WITH
  named AS (
    SELECT
      w.predicted_pages_per_s, w.recorded_pages_per_s, w.why, e.seq, e.ts,
      e.tid, e.bdi,
      coalesce(e.cgroup_ino, 1) AS cgroup_ino,
      CASE WHEN d.seq IS NULL THEN 'global' ELSE d.domain END AS domain,
      coalesce(
        (
          SELECT k.comm
          FROM wb_task AS k
          WHERE task_of!(k, e)
        ),
        'tid ' || e.tid
      ) AS comm
    FROM wb_law AS w
    CROSS JOIN raw_balance_dirty_pages AS e ON e.seq = w.seq
    LEFT JOIN wb_throttle_domain AS d ON d.seq = w.seq
    WHERE w.why IS NOT NULL AND w.is_replayed = 1
  )
SELECT
  n.seq, n.ts, n.tid, n.comm, n.bdi, n.cgroup_ino, n.domain,
  n.predicted_pages_per_s * u.page_bytes AS predicted_bytes_per_s,
  n.recorded_pages_per_s * u.page_bytes AS recorded_bytes_per_s,
  1.0 * (n.predicted_pages_per_s - n.recorded_pages_per_s)
    / nullif(n.recorded_pages_per_s, 0) AS off_ratio,
  n.why
FROM named AS n
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS p
CROSS JOIN wb_units AS u
WHERE in_time!(n.ts, b)
  AND asked!(n, p)
ORDER BY n.seq;
