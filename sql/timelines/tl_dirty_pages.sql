-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_dirty_pages
-- @title    Dirty pages
-- @order    31
-- @group    Dirty pages
-- @track    position: 0 where free run ends, 100 at the limit; below 0 nobody
--   is throttled, and the kernel steers towards the setpoint, 50
-- @track    setpoint of limit [percent]: in % of the limit, on one scale with
--   the next two
-- @track    freerun of limit [percent]: likewise; below, nobody is throttled
-- @track    bg_thresh of limit [percent]: likewise; the flusher works above
-- @track    dirty + writeback [bytes]: what the kernel compares with its
--   thresholds, NFS unstable pages included
-- @track    dirty [bytes]: pages of files that are to be written
-- @track    writeback [bytes]: pages that are being written, swap included
-- @track    limit [bytes]: max(thresh, dirty_limit): here the rate of a task
--   becomes 0
-- @track    setpoint [bytes]: (limit + freerun) / 2, where dirty pages settle
-- @track    freerun [bytes]: (thresh + bg_thresh) / 2: below, no task is
--   throttled
-- @track    thresh [bytes]: vm.dirty_ratio or dirty_bytes as a number of bytes
-- @track    thresh - thresh/4 [bytes]: lower end of the control range of the
--   2011 patches, which goes up to thresh
-- @track    bg_thresh [bytes]: vm.dirty_background_ratio: the flusher works
--   above
-- @summary  Dirty and writeback pages of the machine against their thresholds.
-- @grain    sample of one curve; order ts
-- @sorted
-- @events   writeback:global_dirty_state
-- @cost     110
CREATE VIEW tl_dirty_pages AS
WITH
  curve(place, track, unit) AS (
    SELECT 0, 'Writeback/Dirty pages/dirty + writeback', 'bytes'
    UNION ALL SELECT 1, 'Writeback/Dirty pages/dirty', 'bytes'
    UNION ALL SELECT 2, 'Writeback/Dirty pages/writeback', 'bytes'
    UNION ALL SELECT 3, 'Writeback/Dirty pages/limit', 'bytes'
    UNION ALL SELECT 4, 'Writeback/Dirty pages/setpoint', 'bytes'
    UNION ALL SELECT 5, 'Writeback/Dirty pages/freerun', 'bytes'
    UNION ALL SELECT 6, 'Writeback/Dirty pages/thresh', 'bytes'
    UNION ALL SELECT 7, 'Writeback/Dirty pages/thresh - thresh\/4', 'bytes'
    UNION ALL SELECT 8, 'Writeback/Dirty pages/bg_thresh', 'bytes'
    UNION ALL SELECT 9, 'Writeback/Dirty pages/position', 'ratio'
    UNION ALL SELECT 10, 'Writeback/Dirty pages/setpoint of limit', 'ratio'
    UNION ALL SELECT 11, 'Writeback/Dirty pages/freerun of limit', 'ratio'
    UNION ALL SELECT 12, 'Writeback/Dirty pages/bg_thresh of limit', 'ratio'
  )
SELECT
  d.ts,
  NULL AS dur,
  c.track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN d.dirty_bytes
    WHEN 1 THEN d.nr_dirty_bytes
    WHEN 2 THEN d.nr_writeback_bytes
    WHEN 3 THEN d.limit_bytes
    WHEN 4 THEN d.setpoint_bytes
    WHEN 5 THEN d.freerun_bytes
    WHEN 6 THEN d.thresh_bytes
    WHEN 7 THEN d.thresh_bytes - d.thresh_bytes / 4
    WHEN 8 THEN d.bg_thresh_bytes
    WHEN 9 THEN 1.0 * (d.dirty_bytes - d.freerun_bytes)
      / nullif(d.limit_bytes - d.freerun_bytes, 0)
    WHEN 10 THEN 1.0 * d.setpoint_bytes / nullif(d.limit_bytes, 0)
    WHEN 11 THEN 1.0 * d.freerun_bytes / nullif(d.limit_bytes, 0)
    WHEN 12 THEN 1.0 * d.bg_thresh_bytes / nullif(d.limit_bytes, 0)
  END AS value,
  c.unit
FROM wb_dirty_drawn AS d
CROSS JOIN curve AS c
-- Thresholds of a real-time task are higher than those of all others.
WHERE c.place <= 2 OR d.is_boosted = 0;
