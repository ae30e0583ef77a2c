-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_dirty_ratio
-- @title    Dirty pages against the limit
-- @order    29
-- @group    Dirty pages: Dirty and writeback pages of the machine, in % of the
--   limit, at which tasks stand still. Below: where that is between free run
--   and the limit, and the curves that it is made of.
-- @parent
-- @sorted
-- @summary  Dirty and writeback pages of the machine in % of the limit.
-- @grain    sample; order ts
-- @events   writeback:global_dirty_state
CREATE VIEW tl_dirty_ratio AS
SELECT
  d.ts,
  NULL AS dur,
  'Writeback/Dirty pages' AS track,
  NULL AS name,
  1.0 * d.dirty_bytes / nullif(d.limit_bytes, 0) AS value,
  'ratio' AS unit
FROM wb_dirty_drawn AS d
-- Thresholds of a real-time task are higher than those of all others.
WHERE d.is_boosted = 0;
