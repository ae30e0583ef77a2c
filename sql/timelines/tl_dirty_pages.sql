-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_dirty_pages
-- @title    Dirty pages
-- @order    20
-- @summary  Dirty and writeback pages of the machine against their thresholds.
-- @grain    sample of one curve; order ts
-- @needs    wb_dirty_state
-- @events   writeback:global_dirty_state
CREATE VIEW tl_dirty_pages AS
SELECT
  d.ts,
  NULL AS dur,
  'Writeback/Dirty pages/dirty + writeback' AS track,
  NULL AS name,
  d.dirty_bytes AS value,
  'bytes' AS unit,
  NULL AS args,
  0 AS rank
FROM wb_dirty_state AS d
UNION ALL
SELECT d.ts, NULL, 'Writeback/Dirty pages/dirty', NULL, d.nr_dirty_bytes,
  'bytes', NULL, 1
FROM wb_dirty_state AS d
UNION ALL
SELECT d.ts, NULL, 'Writeback/Dirty pages/writeback', NULL,
  d.nr_writeback_bytes, 'bytes', NULL, 2
FROM wb_dirty_state AS d
UNION ALL
SELECT d.ts, NULL, 'Writeback/Dirty pages/limit', NULL, d.limit_bytes,
  'bytes', NULL, 3
FROM wb_dirty_state AS d WHERE d.is_boosted = 0
UNION ALL
SELECT d.ts, NULL, 'Writeback/Dirty pages/setpoint', NULL, d.setpoint_bytes,
  'bytes', NULL, 4
FROM wb_dirty_state AS d WHERE d.is_boosted = 0
UNION ALL
SELECT d.ts, NULL, 'Writeback/Dirty pages/freerun', NULL, d.freerun_bytes,
  'bytes', NULL, 5
FROM wb_dirty_state AS d WHERE d.is_boosted = 0
UNION ALL
SELECT d.ts, NULL, 'Writeback/Dirty pages/thresh', NULL, d.thresh_bytes,
  'bytes', NULL, 6
FROM wb_dirty_state AS d WHERE d.is_boosted = 0
UNION ALL
SELECT d.ts, NULL, 'Writeback/Dirty pages/bg_thresh', NULL, d.bg_thresh_bytes,
  'bytes', NULL, 7
FROM wb_dirty_state AS d WHERE d.is_boosted = 0;
