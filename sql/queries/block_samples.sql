-- SPDX-License-Identifier: Apache-2.0
-- Counters that were sampled.

-- @query    block_samples
-- @title    How busy each disk was
-- @summary  Requests, bytes and utilisation of each disk, from samples of
--   /sys/block.
-- @read     Needs no block event. A disk that is the limit has a utilisation
--   near 100 % and requests as large as it takes; one that serves many requests
--   at a time can do more also at 100 %. Values are between samples, a second
--   apart as a rule, and count in the window in which the later one lies.
-- @filters  window, range, bdi
-- @grain    window, disk; order window_start_ns, disk
-- @keys     window_start_ns, disk
-- @column   window_start_ns INTEGER trace clock; also before the first event
-- @column   disk TEXT its name, such as vda
-- @column   device TEXT major:minor; NULL = not recorded
-- @column   reads_count INTEGER requests that completed
-- @column   writes_count INTEGER requests that completed
-- @column   read_bytes_per_s REAL of these
-- @column   written_bytes_per_s REAL of these
-- @column   utilisation_ratio REAL share of the time with a request in flight
-- @column   depth_mean_count REAL requests in flight, mean over time
-- @column   mean_request_bytes REAL of reads and writes; NULL = there were none
-- @source   Documentation/block/stat.rst
WITH
  placed AS (
    SELECT s.*
    FROM sampled!('block') AS s
    CROSS JOIN wb_params AS p
    WHERE of_disk!(s.device, p)
  )
SELECT
  s.window_start_ns,
  s.object AS disk,
  max(s.device) AS device,
  sum(s.reads_count) AS reads_count,
  sum(s.writes_count) AS writes_count,
  1.0 * sum(s.read_bytes) * max(u.second_ns) / sum(s.dur_ns)
    AS read_bytes_per_s,
  1.0 * sum(s.written_bytes) * max(u.second_ns) / sum(s.dur_ns)
    AS written_bytes_per_s,
  min(1.0 * sum(s.busy_ns) / sum(s.dur_ns), 1.0) AS utilisation_ratio,
  1.0 * sum(s.queued_ns) / sum(s.dur_ns) AS depth_mean_count,
  1.0 * sum(s.read_bytes + s.written_bytes)
    / nullif(sum(s.reads_count + s.writes_count), 0) AS mean_request_bytes
FROM placed AS s
CROSS JOIN wb_units AS u
GROUP BY s.window_start_ns, s.object
ORDER BY s.window_start_ns, s.object;
