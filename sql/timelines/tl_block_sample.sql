-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_block_sample
-- @title    How busy each disk was
-- @order    112
-- @group    Disks: Statistics of each disk that did something, sampled by
--   wbscope record. A point shows the time up to the next one.
-- @level    One disk
-- @track    utilisation [share]: time with a request in flight
-- @track    written [rate]: completed writes
-- @track    read [rate]: completed reads
-- @track    request size [bytes]: mean of the requests that completed
-- @track    in flight [requests]: requests, mean over time
-- @summary  Utilisation, throughput and request size of each disk.
-- @grain    sample of one curve; order ts
CREATE VIEW tl_block_sample AS
WITH
  curve(place, name, unit) AS (
    SELECT 0, 'utilisation', 'ratio'
    UNION ALL SELECT 1, 'written', 'bytes/s'
    UNION ALL SELECT 2, 'read', 'bytes/s'
    UNION ALL SELECT 3, 'request size', 'bytes'
    UNION ALL SELECT 4, 'in flight', 'requests'
  )
SELECT
  s.ts - s.dur_ns AS ts,
  NULL AS dur,
  'Writeback/Disks/' || replace(replace(s.disk, '\', '\\'), '/', '\/')
    || '/' || c.name AS track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN min(1.0 * s.busy_ns / s.dur_ns, 1.0)
    WHEN 1 THEN 1.0 * s.written_bytes * u.second_ns / s.dur_ns
    WHEN 2 THEN 1.0 * s.read_bytes * u.second_ns / s.dur_ns
    WHEN 3 THEN coalesce(
      1.0 * (s.read_bytes + s.written_bytes)
        / nullif(s.reads_count + s.writes_count, 0),
      0
    )
    WHEN 4 THEN 1.0 * s.queued_ns / s.dur_ns
  END AS value,
  c.unit
FROM wb_block_sample AS s
CROSS JOIN curve AS c
CROSS JOIN wb_units AS u
UNION ALL
-- Behind the last sample nothing is known.
SELECT
  max(s.ts),
  NULL,
  'Writeback/Disks/' || replace(replace(s.disk, '\', '\\'), '/', '\/')
    || '/' || c.name,
  NULL, 0, c.unit
FROM wb_block_sample AS s
CROSS JOIN curve AS c
GROUP BY s.disk, c.name, c.unit;
