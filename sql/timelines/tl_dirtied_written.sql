-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_dirtied_written
-- @title    Pages dirtied and written
-- @order    70
-- @group    Dirtied and written: What the whole machine dirtied and wrote since
--   the trace began, from the kernel's counters.
-- @track    dirtied since start [bytes]: pages dirtied; can go back, because a
--   page that a file system dirties again is taken off
-- @track    written since start [bytes]: pages whose writeback ended, swap
--   included
-- @track    dirtied - written [gap]: the gap between the two
-- @track    unexplained gap [gap]: the gap without what is still dirty or
--   being written: grows when dirty data is deleted, or was dirtied again
-- @summary  Pages dirtied and written since the start, and the gap between.
-- @grain    sample of one curve; order ts
-- @sorted
-- @events   writeback:global_dirty_state
-- @cost     35
CREATE VIEW tl_dirtied_written AS
WITH
  curve(place, track) AS (
    SELECT 0, 'Writeback/Dirtied and written/dirtied since start'
    UNION ALL SELECT 1, 'Writeback/Dirtied and written/written since start'
    UNION ALL SELECT 2, 'Writeback/Dirtied and written/dirtied - written'
    UNION ALL SELECT 3, 'Writeback/Dirtied and written/unexplained gap'
  ),
  origin AS (
    SELECT
      d.dirtied_total_bytes, d.written_total_bytes,
      d.nr_dirty_bytes + d.nr_writeback_bytes AS cached_bytes
    FROM wb_dirty_drawn AS d
    ORDER BY d.seq
    LIMIT 1
  ),
  since AS (
    SELECT
      d.ts,
      d.dirtied_total_bytes - o.dirtied_total_bytes AS dirtied,
      d.written_total_bytes - o.written_total_bytes AS written,
      d.nr_dirty_bytes + d.nr_writeback_bytes - o.cached_bytes AS growth
    FROM wb_dirty_drawn AS d
    CROSS JOIN origin AS o
  )
SELECT
  s.ts,
  NULL AS dur,
  c.track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN s.dirtied
    WHEN 1 THEN s.written
    WHEN 2 THEN s.dirtied - s.written
    WHEN 3 THEN s.dirtied - s.written - s.growth
  END AS value,
  'bytes' AS unit
FROM since AS s
CROSS JOIN curve AS c;
