-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_task_ratelimit
-- @title    Rate limit of each task
-- @order    41
-- @group    Bandwidth
-- @track    task_ratelimit of *: rate that this task was allowed to dirty pages
--   at; 0 = it stood at the limit, or has ended
-- @track    pos_ratio of * [pos_ratio]: that rate in % of the base rate of its
--   bdi; below 100 there are more dirty pages than the kernel wants
-- @summary  What each task was allowed, and that in % of its bdi's base rate.
-- @grain    sample of one curve; order ts
-- @events   writeback:balance_dirty_pages
-- @cost     130
CREATE VIEW tl_task_ratelimit AS
WITH
  curve(place, name, unit) AS (
    SELECT 0, 'task_ratelimit of ', 'bytes/s'
    UNION ALL SELECT 1, 'pos_ratio of ', 'ratio'
  ),
  told AS (
    SELECT
      t.ts, t.bdi, t.cgroup_ino, t.task_id, t.path,
      t.task_ratelimit_bytes_per_s AS rate,
      1.0 * t.task_ratelimit_bytes_per_s
        / nullif(t.dirty_ratelimit_bytes_per_s, 0) AS pos_ratio
    FROM wb_throttle_drawn AS t
    UNION ALL
    -- After the last pause on this wb nothing is asked any more.
    SELECT t.end_ts + 1, t.bdi, t.cgroup_ino, t.task_id, t.path, 0, 0
    FROM (
      SELECT max(l.seq) AS seq
      FROM wb_throttle_drawn AS l
      GROUP BY l.task_id, l.bdi, l.cgroup_ino
    ) AS e
    CROSS JOIN wb_throttle_drawn AS t ON t.seq = e.seq
  )
SELECT
  t.ts,
  NULL AS dur,
  'Writeback/Bandwidth/'
    || replace(
      replace(coalesce(d.device || ' ', '') || t.bdi, '\', '\\'),
      '/',
      '\/'
    )
    || CASE WHEN t.cgroup_ino > 1 THEN ' cgroup ' || t.cgroup_ino ELSE '' END
    || '/' || c.name || t.path AS track,
  NULL AS name,
  CASE c.place WHEN 0 THEN t.rate ELSE t.pos_ratio END AS value,
  c.unit,
  t.task_id AS rank
FROM told AS t
CROSS JOIN curve AS c
LEFT JOIN wb_device AS d ON d.bdi = t.bdi;
