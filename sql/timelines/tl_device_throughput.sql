-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_device_throughput
-- @title    Throughput of each disk
-- @order    91
-- @group    Throughput
-- @track    * written [rate]: what this disk wrote, by completed requests: also
--   direct I/O, journal and metadata
-- @track    * read [rate]: what this disk read
-- @summary  Bytes that each disk completed in each window.
-- @grain    window, device; order ts
-- @needs    wb_block_done, wb_window, wb_bounds, wb_params, wb_units
-- @events   block:block_rq_complete
CREATE VIEW tl_device_throughput AS
WITH
  done AS (
    SELECT
      (c.ts - b.start_ts) / p.window_ns AS window_index,
      c.device,
      sum(CASE WHEN c.op = 'write' THEN c.bytes ELSE 0 END) AS written_bytes,
      sum(CASE WHEN c.op = 'read' THEN c.bytes ELSE 0 END) AS read_bytes
    FROM wb_block_done AS c
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE c.ts >= b.start_ts AND c.ts < b.end_ts
    GROUP BY 1, c.device
  ),
  device AS (SELECT DISTINCT d.device FROM done AS d),
  curve(place, name) AS (
    SELECT 0, ' written'
    UNION ALL SELECT 1, ' read'
  )
SELECT
  w.window_start_ns AS ts,
  NULL AS dur,
  'Writeback/Throughput/' || v.device || c.name AS track,
  NULL AS name,
  1.0 * u.second_ns
    * coalesce(CASE c.place
      WHEN 0 THEN d.written_bytes
      WHEN 1 THEN d.read_bytes
    END, 0)
    / (CASE WHEN w.window_end_ns > b.end_ts THEN b.end_ts ELSE w.window_end_ns
      END - w.window_start_ns) AS value,
  'bytes/s' AS unit,
  NULL AS args
FROM wb_window AS w
CROSS JOIN device AS v
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_units AS u
CROSS JOIN curve AS c
LEFT JOIN done AS d
  ON d.window_index = w.window_index AND d.device = v.device;
