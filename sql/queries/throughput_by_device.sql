-- SPDX-License-Identifier: Apache-2.0
-- Disks and flushers.

-- @query    throughput_by_device
-- @title    Block requests completed on each device
-- @summary  Bytes that each block device completed, measured.
-- @read     Includes direct I/O, journal and metadata, so it can exceed what
--   throughput says; a device that is full shows a flat written_bytes_per_s, a
--   utilisation near 100 % and requests as large as it takes. One that had a
--   request and completed none has a row, too.
-- @filters  window, range, bdi
-- @grain    window, device; order window_start_ns, device
-- @events   block:block_rq_complete
-- @optional block:block_rq_issue
-- @column   device TEXT major:minor
-- @column   requests_count INTEGER completions, partial ones counted each
-- @column   read_bytes INTEGER completed
-- @column   written_bytes INTEGER completed
-- @column   read_bytes_per_s REAL over the window's length
-- @column   written_bytes_per_s REAL over the window's length
-- @column   mean_request_bytes REAL of reads and writes; NULL = none completed
-- @column   utilisation_ratio REAL share of the window in which the device had
--   a request; NULL = not recorded
-- @column   utilisation_basis TEXT requests (from block_rq_issue on), or
--   samples (io_ticks of /sys/block, apportioned)
-- @column   lost_gaps_count INTEGER gaps in the window, where events are lost
-- @metric   written_bytes_per_s higher: how fast this disk wrote, whoever asked
--   for it
WITH
  placed AS (
    SELECT
      (c.ts - b.start_ts) / p.window_ns AS window_index,
      device!(c) AS device,
      CASE c.op WHEN 'read' THEN c.nr_sector ELSE 0 END * u.sector_bytes
        AS read_bytes,
      CASE c.op WHEN 'write' THEN c.nr_sector ELSE 0 END * u.sector_bytes
        AS written_bytes,
      1 AS requests_count
    FROM raw_block_rq_complete AS c
    CROSS JOIN wb_units AS u
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE in_time!(c.ts, b)
      AND (
        p.bdi IS NULL
        OR device!(c) = p.bdi
        OR device!(c) IN (
          SELECT k.disk FROM wb_params AS a JOIN wb_stack AS k ON k.bdi = a.bdi
        )
      )
  ),
  -- Stretches, cut at the borders of windows.
  busy AS (
    SELECT
      w.window_index, y.device,
      sum(
        min(y.to_ts, w.window_end_ns, b.end_ts)
          - max(y.from_ts, w.window_start_ns)
      ) AS busy_ns
    FROM wb_busy AS y
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    CROSS JOIN wb_window AS w
      ON w.window_index >= (max(y.from_ts, b.start_ts) - b.start_ts)
        / p.window_ns
      AND w.window_index <= (min(y.to_ts, b.end_ts) - 1 - b.start_ts)
        / p.window_ns
    WHERE y.resource = 'device'
      AND y.device NOT IN (SELECT k.bdi FROM wb_stack AS k)
      -- Else of requests that were queued, too.
      AND EXISTS (SELECT 1 FROM raw_block_rq_issue)
      AND y.to_ts > b.start_ts
      AND y.from_ts < b.end_ts
      AND of_disk!(y.device, p)
    GROUP BY w.window_index, y.device
  ),
  overlap AS (
    SELECT
      w.window_index, s.device, s.busy_ns, s.dur_ns,
      min(s.ts, w.window_end_ns, b.end_ts)
        - max(s.ts - s.dur_ns, w.window_start_ns) AS shared_ns
    FROM wb_usage AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    CROSS JOIN wb_window AS w
      ON w.window_index >= (max(s.ts - s.dur_ns, b.start_ts) - b.start_ts)
        / p.window_ns
      AND w.window_index <= (min(s.ts, b.end_ts) - 1 - b.start_ts)
        / p.window_ns
    WHERE s.source = 'block'
      AND s.ts > b.start_ts
      AND s.ts - s.dur_ns < b.end_ts
      AND NOT recorded!('block:block_rq_issue')
  ),
  sampled AS (
    SELECT
      o.window_index, o.device,
      min(1.0 * sum(1.0 * o.busy_ns * o.shared_ns / o.dur_ns)
        / sum(o.shared_ns), 1.0) AS busy_ratio
    FROM overlap AS o
    GROUP BY o.window_index, o.device
  ),
  summed AS (
    SELECT
      c.window_index, c.device,
      sum(c.requests_count) AS requests_count,
      sum(c.read_bytes) AS read_bytes,
      sum(c.written_bytes) AS written_bytes,
      sum(CASE WHEN c.read_bytes + c.written_bytes > 0 THEN 1 END)
        AS moved_count
    FROM (
      SELECT
        d.window_index, d.device, d.read_bytes, d.written_bytes,
        d.requests_count
      FROM placed AS d
      UNION ALL
      SELECT y.window_index, y.device, 0, 0, 0
      FROM busy AS y
    ) AS c
    GROUP BY c.window_index, c.device
  )
SELECT
  w.window_start_ns, s.device, s.requests_count, s.read_bytes, s.written_bytes,
  1.0 * s.read_bytes * u.second_ns
    / (min(w.window_end_ns, b.end_ts) - w.window_start_ns)
    AS read_bytes_per_s,
  1.0 * s.written_bytes * u.second_ns
    / (min(w.window_end_ns, b.end_ts) - w.window_start_ns)
    AS written_bytes_per_s,
  1.0 * (s.read_bytes + s.written_bytes) / s.moved_count AS mean_request_bytes,
  CASE
    WHEN i.is_issued
      THEN 1.0 * coalesce(y.busy_ns, 0)
        / (min(w.window_end_ns, b.end_ts) - w.window_start_ns)
    ELSE m.busy_ratio
  END AS utilisation_ratio,
  CASE
    WHEN i.is_issued THEN 'requests'
    WHEN m.busy_ratio IS NOT NULL THEN 'samples'
  END AS utilisation_basis,
  w.lost_gaps_count
FROM summed AS s
JOIN wb_window AS w ON w.window_index = s.window_index
LEFT JOIN busy AS y
  ON y.window_index = s.window_index AND y.device = s.device
LEFT JOIN sampled AS m
  ON m.window_index = s.window_index AND m.device = s.device
CROSS JOIN wb_units AS u
CROSS JOIN wb_bounds AS b
CROSS JOIN (
  SELECT
    recorded!('block:block_rq_issue') AS is_issued
) AS i
ORDER BY w.window_start_ns, s.device;
