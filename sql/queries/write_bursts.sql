-- SPDX-License-Identifier: Apache-2.0
-- Disks and flushers.

-- @query    write_bursts
-- @title    How even the writes to each device were
-- @summary  Bytes that each device completed by window: the fastest one, the
--   mean of the run, and the share that came in bursts.
-- @read     Write-behind and a low limit write all the time; the defaults let
--   pages wait and write them at once, which holds up reads and fsync of
--   others. A device that is busy from start to end is even, too.
-- @filters  window, range, bdi
-- @grain    device; order written_bytes descending, device
-- @events   block:block_rq_complete
-- @column   device TEXT major:minor
-- @column   written_bytes INTEGER completed
-- @column   written_bytes_per_s REAL over the run, or the part asked for
-- @column   peak_bytes_per_s REAL in the fastest window
-- @column   windows_count INTEGER windows in which something was written
-- @column   windows_ratio REAL share of the time that these are
-- @column   burst_ratio REAL share of written_bytes beyond the mean speed: what
--   would have to move to other windows to make all of them equal; 0 = even
-- @metric   burst_ratio lower: share of the written data that came in bursts,
--   faster than the mean of the run; 0 % when each second wrote the same
-- @metric   peak_bytes_per_s neutral: speed in the two seconds in which most
--   was written
WITH
  written AS (
    SELECT
      device!(c) AS device,
      (c.ts - b.start_ts) / p.window_ns AS window_index,
      sum(c.nr_sector) * u.sector_bytes AS written_bytes
    FROM raw_block_rq_complete AS c
    CROSS JOIN wb_units AS u
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE c.op = 'write'
      AND in_time!(c.ts, b)
      AND (
        p.bdi IS NULL
        OR device!(c) = p.bdi
        OR device!(c) IN (
          SELECT k.disk FROM wb_params AS a JOIN wb_stack AS k ON k.bdi = a.bdi
        )
      )
    GROUP BY 1, 2
  ),
  -- The last window may be cut short.
  timed AS (
    SELECT
      i.device, i.written_bytes,
      min(w.window_end_ns, b.end_ts) - w.window_start_ns AS window_ns
    FROM written AS i
    JOIN wb_window AS w ON w.window_index = i.window_index
    CROSS JOIN wb_bounds AS b
    WHERE i.written_bytes > 0
  ),
  whole AS (
    SELECT
      t.device,
      sum(t.written_bytes) AS written_bytes
    FROM timed AS t
    GROUP BY t.device
  )
SELECT
  t.device, h.written_bytes,
  1.0 * h.written_bytes * u.second_ns / (b.end_ts - b.start_ts)
    AS written_bytes_per_s,
  max(1.0 * t.written_bytes * u.second_ns / t.window_ns) AS peak_bytes_per_s,
  count(*) AS windows_count,
  1.0 * sum(t.window_ns) / (b.end_ts - b.start_ts) AS windows_ratio,
  -- Equal above and below the mean, so empty windows need no row.
  sum(max(
    1.0 * t.written_bytes / h.written_bytes
      - 1.0 * t.window_ns / (b.end_ts - b.start_ts), 0
  )) AS burst_ratio
FROM timed AS t
JOIN whole AS h ON h.device = t.device
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_units AS u
GROUP BY t.device
ORDER BY h.written_bytes DESC, t.device;
