-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_memcg
-- @title    Memory cgroups
-- @order    130
-- @group    Memory cgroups: Limits of memory cgroups that throttled their
--   tasks, while they did so.
-- @level    One memory cgroup; its path where the run folder has it
-- @track    dirty [bytes]: dirty and writeback pages of the cgroup
-- @track    limit [bytes]: its own limit; kernels up to 6.14.1 do not tell it
-- @track    setpoint [bytes]: where its dirty pages should settle
-- @track    wb_dirty * [bytes]: those of one bdi
-- @track    wb_setpoint * [bytes]: the bdi's share of the setpoint
-- @summary  Dirty pages of memory cgroups against their own limits.
-- @grain    sample of one curve; order ts
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
CREATE VIEW tl_memcg AS
WITH
  named AS (
    SELECT
      t.ts, t.bdi,
      'Writeback/Memory cgroups/cgroup ' || t.cgroup_ino
        || coalesce(
          ' ' || replace(replace(g.path, '\', '\\'), '/', '\/'),
          ''
        ) || '/' AS parent,
      t.dirty_bytes, t.limit_bytes, t.setpoint_bytes, t.wb_dirty_bytes,
      t.wb_setpoint_bytes
    FROM wb_throttle_drawn AS t
    LEFT JOIN (
      SELECT c.cgroup_ino, min(c.path) AS path
      FROM raw_cgroup AS c
      GROUP BY c.cgroup_ino
    ) AS g ON g.cgroup_ino = t.cgroup_ino
    WHERE t.cgroup_ino <> 1 AND t.domain = 'memcg'
  ),
  curve(place, name) AS (
    SELECT 0, 'dirty'
    UNION ALL SELECT 1, 'limit'
    UNION ALL SELECT 2, 'setpoint'
    UNION ALL SELECT 3, 'wb_dirty '
    UNION ALL SELECT 4, 'wb_setpoint '
  )
SELECT
  n.ts,
  NULL AS dur,
  n.parent || c.name
    || CASE
      WHEN c.place > 2 THEN replace(
      replace(coalesce(d.device || ' ', '') || n.bdi, '\', '\\'),
      '/',
      '\/'
    )
      ELSE ''
    END AS track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN n.dirty_bytes
    WHEN 1 THEN n.limit_bytes
    WHEN 2 THEN n.setpoint_bytes
    WHEN 3 THEN n.wb_dirty_bytes
    WHEN 4 THEN n.wb_setpoint_bytes
  END AS value,
  'bytes' AS unit
FROM named AS n
CROSS JOIN curve AS c
LEFT JOIN wb_device AS d ON d.bdi = n.bdi;
