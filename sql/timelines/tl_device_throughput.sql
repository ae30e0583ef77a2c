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
-- @events   block:block_rq_complete
-- @cost     42
CREATE VIEW tl_device_throughput AS
WITH
  part AS (
    SELECT
      (c.ts - b.start_ts) / p.window_ns AS window_index,
      c.device,
      CASE WHEN c.op = 'write' THEN c.bytes ELSE 0 END AS written_bytes,
      CASE WHEN c.op = 'read' THEN c.bytes ELSE 0 END AS read_bytes
    FROM wb_block_done AS c
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE in_time!(c.ts, b)
    UNION ALL
    -- Also windows in which a disk did nothing.
    SELECT w.window_index, d.device, 0, 0
    FROM (SELECT DISTINCT c.device FROM wb_block_done AS c) AS d
    CROSS JOIN wb_window AS w
  ),
  done AS (
    SELECT
      p.window_index, p.device,
      sum(p.written_bytes) AS written_bytes,
      sum(p.read_bytes) AS read_bytes
    FROM part AS p
    GROUP BY p.window_index, p.device
  ),
  curve(place, name) AS (
    SELECT 0, ' written'
    UNION ALL SELECT 1, ' read'
  )
SELECT
  w.window_start_ns AS ts,
  NULL AS dur,
  'Writeback/Throughput/'
    || replace(
      replace(coalesce(n.device || ' ', '') || d.device, '\', '\\'),
      '/',
      '\/'
    ) || c.name AS track,
  NULL AS name,
  1.0 * u.second_ns
    * CASE c.place WHEN 0 THEN d.written_bytes ELSE d.read_bytes END
    / (min(w.window_end_ns, b.end_ts) - w.window_start_ns) AS value,
  'bytes/s' AS unit
FROM done AS d
JOIN wb_window AS w ON w.window_index = d.window_index
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_units AS u
CROSS JOIN curve AS c
LEFT JOIN wb_device AS n ON n.bdi = d.device;
