-- SPDX-License-Identifier: Apache-2.0
-- @query    throughput_by_device
-- @title    Block requests completed on each device
-- @summary  Bytes that each block device completed, measured.
-- @read     Includes direct I/O, journal and metadata, so it can exceed what
--   throughput says; a device that is full shows a flat written_bytes_per_s.
-- @filters  window, range, bdi
-- @grain    window, device; order window_start_ns, device
-- @needs    wb_block_done, wb_window, wb_lost_window, wb_bounds, wb_params,
--   wb_units
-- @events   block:block_rq_complete
-- @column   window_start_ns INTEGER trace clock
-- @column   device TEXT major:minor
-- @column   requests_count INTEGER completions, partial ones counted each
-- @column   read_bytes INTEGER completed
-- @column   written_bytes INTEGER completed
-- @column   read_bytes_per_s REAL over the window's length
-- @column   written_bytes_per_s REAL over the window's length
-- @column   lost_gaps_count INTEGER gaps in the window, where events are lost
-- @metric   written_bytes_per_s higher: how fast this disk wrote, whoever asked
--   for it
WITH
  placed AS (
    SELECT
      (c.ts - b.start_ts) / p.window_ns AS window_index,
      c.device,
      CASE WHEN c.op = 'read' THEN c.bytes ELSE 0 END AS read_bytes,
      CASE WHEN c.op = 'write' THEN c.bytes ELSE 0 END AS written_bytes
    FROM wb_block_done AS c
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE c.ts >= b.start_ts
      AND c.ts < b.end_ts
      AND (p.bdi IS NULL OR c.device = p.bdi)
  ),
  summed AS (
    SELECT
      c.window_index,
      c.device,
      count(*) AS requests_count,
      sum(c.read_bytes) AS read_bytes,
      sum(c.written_bytes) AS written_bytes
    FROM placed AS c
    GROUP BY c.window_index, c.device
  )
SELECT
  w.window_start_ns,
  s.device,
  s.requests_count,
  s.read_bytes,
  s.written_bytes,
  1.0 * s.read_bytes * u.second_ns
    / (min(w.window_end_ns, b.end_ts) - w.window_start_ns)
    AS read_bytes_per_s,
  1.0 * s.written_bytes * u.second_ns
    / (min(w.window_end_ns, b.end_ts) - w.window_start_ns)
    AS written_bytes_per_s,
  coalesce(l.lost_gaps_count, 0) AS lost_gaps_count
FROM summed AS s
JOIN wb_window AS w ON w.window_index = s.window_index
LEFT JOIN wb_lost_window AS l ON l.window_index = s.window_index
CROSS JOIN wb_units AS u
CROSS JOIN wb_bounds AS b
ORDER BY w.window_start_ns, s.device;
