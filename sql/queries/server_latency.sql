-- SPDX-License-Identifier: Apache-2.0
-- Disks and flushers.

-- @query    server_latency
-- @title    Time that servers of NFS and FUSE took
-- @summary  Latency of the requests to each server of a network or FUSE file
--   system, by kind of request.
-- @read     From the event that sends a request to its answer. A WRITE of NFS
--   leaves the data in the server's memory, a COMMIT has it written to disk: a
--   writer in fsync() or close() waits for both. queue and rtt are of all calls
--   of that name and of all mounts, as the client counts them in
--   /proc/self/mountstats: time before the call was sent, and from then to the
--   answer. A queue that is far longer than rtt is the client's: too many
--   requests for the connection, not a slow server.
-- @filters  range, bdi
-- @grain    device, op; order device, op
-- @events   nfs:nfs_initiate_write|nfs:nfs_initiate_commit
--   |fuse:fuse_request_send
-- @optional nfs:nfs_writeback_done, nfs:nfs_commit_done, fuse:fuse_request_end,
--   sunrpc:rpc_stats_latency
-- @column   device TEXT name of the bdi
-- @column   protocol TEXT nfs or fuse
-- @column   op TEXT WRITE, COMMIT; of FUSE all others, too
-- @column   count INTEGER requests with an answer
-- @column   bytes INTEGER data of those that are WRITE
-- @column   open_count INTEGER requests without an answer in the trace
-- @column   errors_count INTEGER requests that ended with an error
-- @column   latency_mean_ns INTEGER mean
-- @column   latency_p50_ns INTEGER median, nearest rank
-- @column   latency_p99_ns INTEGER nearest rank
-- @column   latency_max_ns INTEGER longest
-- @column   calls_count INTEGER of sunrpc: calls of this name, of all mounts
-- @column   queue_mean_ns INTEGER of them, time in the client's queue
-- @column   rtt_mean_ns INTEGER of them, time from sending to the answer
-- @metric   latency_p99_ns lower: 99 of 100 requests were answered within this
--   time
-- @metric   latency_max_ns lower: the longest that the server took for one
--   request
-- @source   nearest rank; net/sunrpc/stats.c
WITH
  chosen AS (
    SELECT
      r.device, r.protocol, r.call AS op, r.end_ts, r.bytes, r.error,
      r.end_ts - r.ts AS latency_ns
    FROM wb_call AS r
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE r.protocol IS NOT NULL
      AND in_time!(r.ts, b)
      AND (p.bdi IS NULL OR r.device = p.bdi)
  ),
  ranked AS (
    SELECT
      c.*,
      row_number() OVER (
        PARTITION BY c.device, c.op, c.end_ts IS NULL ORDER BY c.latency_ns
      ) AS place,
      count(c.end_ts) OVER (PARTITION BY c.device, c.op) AS places_count
    FROM chosen AS c
  ),
  calls AS (
    SELECT
      s.procname AS op,
      count(*) AS calls_count,
      CAST(avg(s.backlog) * max(u.us_ns) AS INTEGER) AS queue_mean_ns,
      CAST(avg(s.rtt) * max(u.us_ns) AS INTEGER) AS rtt_mean_ns
    FROM raw_rpc_stats_latency AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_units AS u
    WHERE in_time!(s.ts, b)
      AND s.progname GLOB 'nfs*'
    GROUP BY s.procname
  )
SELECT
  r.device, r.protocol, r.op,
  count(r.end_ts) AS count,
  sum(CASE WHEN r.end_ts IS NOT NULL THEN r.bytes END) AS bytes,
  count(*) - count(r.end_ts) AS open_count,
  count(CASE WHEN r.error < 0 THEN 1 END) AS errors_count,
  CAST(avg(r.latency_ns) AS INTEGER) AS latency_mean_ns,
  max(CASE WHEN r.place = rank_of!(50, r.places_count)
    THEN r.latency_ns END) AS latency_p50_ns,
  max(CASE WHEN r.place = rank_of!(99, r.places_count)
    THEN r.latency_ns END) AS latency_p99_ns,
  max(r.latency_ns) AS latency_max_ns,
  max(s.calls_count) AS calls_count,
  max(s.queue_mean_ns) AS queue_mean_ns,
  max(s.rtt_mean_ns) AS rtt_mean_ns
FROM ranked AS r
LEFT JOIN calls AS s ON r.protocol = 'nfs' AND s.op = r.op
GROUP BY r.device, r.protocol, r.op
ORDER BY r.device, r.op;
