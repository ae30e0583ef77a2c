-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_throughput
-- @title    Throughput
-- @order    40
-- @summary  Pages dirtied and written in each window, and since the start.
-- @grain    sample of one curve; order ts
-- @needs    wb_dirty_flow, wb_dirty_state
-- @events   writeback:global_dirty_state
CREATE VIEW tl_throughput AS
WITH
  origin AS (
    SELECT d.dirtied_total_bytes, d.written_total_bytes
    FROM wb_dirty_state AS d
    ORDER BY d.ts
    LIMIT 1
  )
SELECT
  w.window_start_ns AS ts,
  NULL AS dur,
  'Writeback/Throughput/dirtied in window' AS track,
  NULL AS name,
  1.0 * w.dirtied_bytes_per_s AS value,
  'bytes/s' AS unit,
  NULL AS args,
  0 AS rank
FROM wb_dirty_flow AS w
WHERE w.dirtied_bytes_per_s IS NOT NULL
UNION ALL
SELECT w.window_start_ns, NULL, 'Writeback/Throughput/written in window', NULL,
  1.0 * w.written_bytes_per_s, 'bytes/s', NULL, 1
FROM wb_dirty_flow AS w
WHERE w.dirtied_bytes_per_s IS NOT NULL
UNION ALL
SELECT d.ts, NULL, 'Writeback/Throughput/dirtied since start', NULL,
  d.dirtied_total_bytes - o.dirtied_total_bytes, 'bytes', NULL, 2
FROM wb_dirty_state AS d
CROSS JOIN origin AS o
UNION ALL
SELECT d.ts, NULL, 'Writeback/Throughput/written since start', NULL,
  d.written_total_bytes - o.written_total_bytes, 'bytes', NULL, 3
FROM wb_dirty_state AS d
CROSS JOIN origin AS o;
