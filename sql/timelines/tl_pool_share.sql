-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_pool_share
-- @title    Who fills the pool
-- @order    29
-- @group    Dirty pages
-- @track    held by: shares of the dirty pages by the wb that holds them, the
--   largest three, mean of the window
-- @summary  Who holds the machine's dirty pages, in words.
-- @grain    window; order ts
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
-- @column   arg_why TEXT the same, in a sentence
-- @column   arg_held_bytes INTEGER dirty pages of all
CREATE VIEW tl_pool_share AS
WITH
  ranked AS (
    SELECT
      p.window_index,
      CASE
        WHEN p.bdi IS NULL THEN 'unknown'
        ELSE coalesce(d.device, p.bdi)
          || CASE
            WHEN p.cgroup_ino > 1 THEN ' cgroup ' || p.cgroup_ino
            ELSE ''
          END
      END AS holder,
      p.held_bytes,
      sum(p.held_bytes) OVER (PARTITION BY p.window_index) AS all_bytes,
      row_number() OVER (
        PARTITION BY p.window_index ORDER BY p.held_bytes DESC, p.bdi,
          p.cgroup_ino
      ) AS place
    FROM wb_pool_window AS p
    LEFT JOIN wb_device AS d ON d.bdi = p.bdi
  ),
  told AS (
    SELECT
      r.window_index, r.all_bytes,
      group_concat(
        r.holder || ' '
          || CAST(round(100.0 * r.held_bytes / r.all_bytes) AS INTEGER)
          || ' %',
        ', '
      ) OVER (
        PARTITION BY r.window_index ORDER BY r.place ROWS UNBOUNDED PRECEDING
      ) AS shares,
      row_number() OVER (
        PARTITION BY r.window_index ORDER BY r.place DESC
      ) AS last_place
    FROM ranked AS r
    WHERE r.place <= 3 AND r.held_bytes > 0 AND r.all_bytes > 0
  )
SELECT
  w.window_start_ns AS ts,
  min(w.window_end_ns, b.end_ts) - w.window_start_ns AS dur,
  'Writeback/Dirty pages/held by' AS track,
  t.shares AS name,
  NULL AS value,
  NULL AS unit,
  mib!(t.all_bytes) || ' dirty, held by ' || t.shares AS arg_why,
  CAST(t.all_bytes AS INTEGER) AS arg_held_bytes
FROM told AS t
JOIN wb_window AS w ON w.window_index = t.window_index
CROSS JOIN wb_bounds AS b
WHERE t.last_place = 1;
