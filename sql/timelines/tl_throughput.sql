-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_throughput
-- @title    Throughput
-- @order    90
-- @group    Throughput: Bytes per second in windows of 2 s, of the whole
--   machine and of each disk.
-- @track    dirtied [rate]: pages that were dirtied
-- @track    written [rate]: pages whose writeback ended, swap included
-- @track    dirtied to written: pages dirtied for each page written; above
--   100 % dirty pages pile up, or are dirtied again
-- @summary  Pages dirtied and written in each window.
-- @grain    sample of one curve; order ts
-- @events   writeback:global_dirty_state
CREATE VIEW tl_throughput AS
WITH
  curve(place, name, unit) AS (
    SELECT 0, 'dirtied', 'bytes/s'
    UNION ALL SELECT 1, 'written', 'bytes/s'
    UNION ALL SELECT 2, 'dirtied to written', 'ratio'
  )
SELECT
  w.window_start_ns AS ts,
  NULL AS dur,
  'Writeback/Throughput/' || c.name AS track,
  NULL AS name,
  CASE c.place
    -- A window that tells nothing must not keep the value of another.
    WHEN 0 THEN 1.0 * coalesce(w.dirtied_bytes_per_s, 0)
    WHEN 1 THEN 1.0 * coalesce(w.written_bytes_per_s, 0)
    WHEN 2 THEN coalesce(
      1.0 * w.dirtied_bytes_per_s / nullif(w.written_bytes_per_s, 0),
      0
    )
  END AS value,
  c.unit AS unit
FROM wb_dirty_flow AS w
CROSS JOIN curve AS c;
