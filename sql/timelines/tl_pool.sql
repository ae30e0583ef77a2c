-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_pool
-- @title    Whose dirty pages fill the pool
-- @order    33
-- @group    Dirty pages
-- @track    held by * [held]: what this wb held of the machine's dirty pages,
--   mean of the window; those of a window add up to all of them
-- @summary  The machine's dirty pages, split by the wb that holds them.
-- @grain    window, bdi, cgroup; order ts
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
CREATE VIEW tl_pool AS
WITH
  holder AS (
    SELECT DISTINCT p.bdi, p.cgroup_ino FROM wb_pool_window AS p
  ),
  first_told AS (
    SELECT min(p.window_index) AS window_index FROM wb_pool_window AS p
  )
SELECT
  w.window_start_ns AS ts,
  NULL AS dur,
  'Writeback/Dirty pages/held by '
    || CASE
      WHEN h.bdi IS NULL THEN 'nobody known'
      ELSE replace(
          replace(coalesce(d.device || ' ', '') || h.bdi, '\', '\\'),
          '/',
          '\/'
        )
        || CASE
          WHEN h.cgroup_ino > 1 THEN ' cgroup ' || h.cgroup_ino
          ELSE ''
        END
    END AS track,
  NULL AS name,
  -- A counter keeps its value, so one that holds nothing has to say so.
  coalesce(p.held_bytes, 0) AS value,
  'bytes' AS unit
FROM first_told AS t
JOIN wb_window AS w ON w.window_index >= t.window_index
CROSS JOIN holder AS h
LEFT JOIN wb_device AS d ON d.bdi = h.bdi
LEFT JOIN wb_pool_window AS p
  ON p.window_index = w.window_index
  AND p.bdi IS h.bdi
  AND p.cgroup_ino IS h.cgroup_ino;
