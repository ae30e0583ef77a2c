-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_wb_dirty
-- @title    Dirty pages of each bdi
-- @order    32
-- @group    Dirty pages
-- @track    wb_dirty * [bytes]: dirty and writeback pages of this bdi, or of
--   one cgroup on it, when a task was throttled
-- @track    wb_setpoint * [bytes]: its share of the setpoint
-- @summary  Dirty pages of each wb against its share of the setpoint.
-- @grain    sample of one curve; order ts
-- @sorted
-- @events   writeback:balance_dirty_pages
-- @cost     99
CREATE VIEW tl_wb_dirty AS
WITH
  curve(place, name) AS (
    SELECT 0, 'wb_dirty '
    UNION ALL SELECT 1, 'wb_setpoint '
  )
SELECT
  t.ts,
  NULL AS dur,
  'Writeback/Dirty pages/' || c.name
    || replace(
      replace(coalesce(d.device || ' ', '') || t.bdi, '\', '\\'),
      '/',
      '\/'
    )
    || CASE WHEN t.cgroup_ino > 1 THEN ' cgroup ' || t.cgroup_ino ELSE '' END
    AS track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN t.wb_dirty_bytes
    WHEN 1 THEN t.wb_setpoint_bytes
  END AS value,
  'bytes' AS unit
FROM wb_throttle_drawn AS t
CROSS JOIN curve AS c
LEFT JOIN wb_device AS d ON d.bdi = t.bdi;
