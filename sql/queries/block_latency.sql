-- SPDX-License-Identifier: Apache-2.0
-- Disks and flushers.

-- @query    block_latency
-- @title    Time that block requests took
-- @order    60
-- @summary  Latency and queue depth of each device, by kind of request.
-- @read     From block_rq_issue, when the driver gets a request, to its last
--   block_rq_complete; time in an I/O scheduler comes before it. depth_mean is
--   how many requests were in flight, on average over the whole run; a device
--   that has enough to do shows a depth that does not go to 0. Percentiles are
--   of requests that were issued and completed in the trace. A disk that is the
--   limit has a utilisation near 100 % and requests as large as it takes; one
--   that serves many at a time can do more also at 100 %.
-- @filters  range, bdi
-- @grain    device, op; order device, op
-- @first    latency_p50_ns, latency_p99_ns, latency_max_ns,
--   utilisation_ratio, count
-- @events   block:block_rq_issue, block:block_rq_complete
-- @column   count INTEGER requests issued and completed
-- @column   bytes INTEGER of those requests
-- @column   open_count INTEGER requests without an end in the trace: in flight
--   when it ended, or issued again
-- @column   latency_mean_ns INTEGER mean
-- @column   latency_p50_ns INTEGER median, nearest rank
-- @column   latency_p95_ns INTEGER nearest rank
-- @column   latency_p99_ns INTEGER nearest rank
-- @column   latency_max_ns INTEGER longest
-- @column   depth_mean_count REAL requests in flight, mean over time; without
--   those whose end may be lost
-- @column   depth_max_count INTEGER most requests in flight at once; likewise
-- @column   mean_request_bytes REAL of those completed
-- @column   utilisation_ratio REAL share of the time in which the device had a
--   request, of any kind; the same in all rows of a device
-- @column   silent_max_ns INTEGER longest time of the whole trace in which the
--   device completed nothing while it had a request: the same in all rows of a
--   device; NULL = under 2 s
-- @metric   latency_p99_ns lower: 99 of 100 requests were done by the device
--   within this time
-- @metric   latency_max_ns lower: the longest that the device took for one
--   request
-- @metric   depth_mean_count neutral: how many requests the device had at a
--   time; a long queue raises throughput and latency
-- @source   nearest rank; J. Little's law for the mean depth
-- @cost     200
WITH
  chosen AS (
    SELECT
      r.seq, r.issued_ts, r.completed_ts, r.until_seq, r.until_ts, r.is_known,
      r.device, r.op, r.bytes,
      r.completed_ts - r.issued_ts AS latency_ns
    FROM wb_block_request AS r
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE in_time!(r.issued_ts, b)
      AND of_disk!(r.device, p)
  ),
  ranked AS (
    SELECT
      c.device, c.op, c.latency_ns,
      row_number() OVER (
        PARTITION BY c.device, c.op ORDER BY c.latency_ns
      ) AS place,
      count(*) OVER (PARTITION BY c.device, c.op) AS places_count
    FROM chosen AS c
    WHERE c.completed_ts IS NOT NULL
  ),
  quantile AS (
    SELECT
      r.device, r.op,
      max(CASE WHEN r.place = rank_of!(50, r.places_count)
        THEN r.latency_ns END) AS latency_p50_ns,
      max(CASE WHEN r.place = rank_of!(95, r.places_count)
        THEN r.latency_ns END) AS latency_p95_ns,
      max(CASE WHEN r.place = rank_of!(99, r.places_count)
        THEN r.latency_ns END) AS latency_p99_ns
    FROM ranked AS r
    GROUP BY r.device, r.op
  ),
  step AS (
    SELECT c.device, c.op, c.seq, 1 AS change
    FROM chosen AS c
    WHERE c.is_known = 1
    UNION ALL
    SELECT c.device, c.op, c.until_seq, -1
    FROM chosen AS c
    WHERE c.is_known = 1 AND c.until_seq IS NOT NULL
  ),
  depth AS (
    SELECT
      s.device, s.op,
      sum(s.change) OVER (
        PARTITION BY s.device, s.op ORDER BY s.seq, s.change
        ROWS UNBOUNDED PRECEDING
      ) AS in_flight_count
    FROM step AS s
  ),
  deepest AS (
    SELECT d.device, d.op, max(d.in_flight_count) AS depth_max_count
    FROM depth AS d
    GROUP BY d.device, d.op
  ),
  busy AS (
    SELECT
      y.device,
      1.0 * sum(min(y.to_ts, b.end_ts) - max(y.from_ts, b.start_ts))
        / nullif(max(b.end_ts - b.start_ts), 0) AS utilisation_ratio
    FROM wb_busy AS y
    CROSS JOIN wb_bounds AS b
    WHERE y.resource = 'device'
      AND y.to_ts > b.start_ts
      AND y.from_ts < b.end_ts
    GROUP BY y.device
  ),
  summed AS (
    SELECT
      c.device, c.op,
      count(c.completed_ts) AS ended_count,
      sum(CASE WHEN c.completed_ts IS NOT NULL THEN c.bytes ELSE 0 END)
        AS ended_bytes,
      count(*) - count(c.completed_ts) AS open_count,
      CAST(avg(c.latency_ns) AS INTEGER) AS latency_mean_ns,
      max(c.latency_ns) AS latency_max_ns,
      1.0 * sum(
        CASE WHEN c.is_known = 1
          THEN min(c.until_ts, b.end_ts) - c.issued_ts
        END
      ) / nullif(max(b.end_ts - b.start_ts), 0) AS depth_mean_count
    FROM chosen AS c
    CROSS JOIN wb_bounds AS b
    GROUP BY c.device, c.op
  )
SELECT
  s.device, s.op,
  s.ended_count AS count,
  s.ended_bytes AS bytes,
  s.open_count, s.latency_mean_ns, q.latency_p50_ns, q.latency_p95_ns,
  q.latency_p99_ns, s.latency_max_ns, s.depth_mean_count, d.depth_max_count,
  1.0 * s.ended_bytes / nullif(s.ended_count, 0) AS mean_request_bytes,
  y.utilisation_ratio,
  e.silent_ns AS silent_max_ns
FROM summed AS s
LEFT JOIN deepest AS d ON d.device = s.device AND d.op = s.op
LEFT JOIN quantile AS q ON q.device = s.device AND q.op = s.op
LEFT JOIN busy AS y ON y.device = s.device
LEFT JOIN (
  SELECT y.device, max(y.silent_ns) AS silent_ns
  FROM wb_busy AS y
  GROUP BY y.device
) AS e ON e.device = s.device
ORDER BY s.device, s.op;
