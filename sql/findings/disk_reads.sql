-- SPDX-License-Identifier: Apache-2.0
-- @finding   disk_reads
-- @title     Tasks wait for their reads of a disk
-- @summary   Tasks sent reads to a disk and slept while these were in flight:
--   files that were not in memory, swap, metadata. No dirty page blocks them,
--   but writes that the disk does meanwhile can. A warning where a task was
--   asleep for them half of its life or more. inferred where most of it is
--   readahead: no event says that somebody waits for that.
-- @when      disk_reads
-- @severity  note
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} for reads of {bdi}, the longest
--   {longest_ns}[: the disk read {read_bytes} in {reads_count:request} of
--   {request_bytes}, the median of which took {latency_ns}][, and wrote
--   {written_bytes}].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=disk_reads,
--   bdi={bdi}); longest_ns = max(max_ns, finding=disk_reads, bdi={bdi})
-- @evidence  block_latency: read_bytes = sum(bytes, device={bdi}, op=read);
--   reads_count = sum(count, device={bdi}, op=read); request_bytes = sum(bytes,
--   device={bdi}, op=read) / sum(count, device={bdi}, op=read); latency_ns =
--   max(latency_p50_ns, device={bdi}, op=read); written_bytes = sum(bytes,
--   device={bdi}, op=write)
-- @events    block:block_rq_issue, block:block_rq_complete
-- @column    cost_task_ns INTEGER time that all tasks lost to it
-- @column    severity TEXT warning or note
-- @column    confidence TEXT inferred where most of it are reads ahead
-- @column    tasks TEXT who lost it
-- @column    bdi TEXT the device
-- @column    longest_ns INTEGER longest wait
-- @column    read_bytes INTEGER that the disk read, for whomever
-- @column    reads_count INTEGER in so many requests
-- @column    request_bytes INTEGER mean of these
-- @column    latency_ns INTEGER median of the time that the disk took for one
-- @column    written_bytes INTEGER that it wrote; NULL = nothing
-- @column    first_ts INTEGER ns, start of the first wait
-- @column    last_ts INTEGER ns, end of the last
-- @source    docs/findings.md; mm/filemap.c filemap_update_page()
WITH
  total AS MATERIALIZED (
    SELECT t.*
    FROM wb_loss_total AS t
    CROSS JOIN wb_rule AS v
    WHERE t.finding = 'disk_reads' AND t.cost_task_ns >= v.long_call_ns
  ),
  ahead AS (
    SELECT l.bdi, sum(l.dur) AS dur
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.finding = 'disk_reads'
      AND l.kind = 'blocked outside throttling'
      AND in_time!(l.ts, b)
    GROUP BY l.bdi
  ),
  done AS MATERIALIZED (
    SELECT r.device, r.op, r.bytes, r.completed_ts - r.issued_ts AS took_ns
    FROM wb_block_request AS r
    CROSS JOIN wb_bounds AS b
    WHERE in_time!(r.issued_ts, b)
      AND r.completed_ts IS NOT NULL
      AND r.op IN ('read', 'write')
      AND r.device IN (SELECT t.bdi FROM total AS t)
  ),
  summed AS (
    SELECT
      d.device,
      sum(CASE d.op WHEN 'read' THEN d.bytes END) AS read_bytes,
      sum(d.op = 'read') AS reads_count,
      sum(CASE d.op WHEN 'write' THEN d.bytes END) AS written_bytes
    FROM done AS d
    GROUP BY d.device
  ),
  ranked AS (
    SELECT
      d.device, d.took_ns,
      row_number() OVER (PARTITION BY d.device ORDER BY d.took_ns) AS place,
      count(*) OVER (PARTITION BY d.device) AS places_count
    FROM done AS d
    WHERE d.op = 'read'
  )
SELECT
  t.cost_task_ns,
  CASE WHEN t.life_ratio >= v.most_ratio THEN 'warning' ELSE 'note' END
    AS severity,
  CASE WHEN a.dur >= v.most_ratio * t.cost_task_ns THEN 'inferred'
    ELSE 'measured'
  END AS confidence,
  t.tasks, t.bdi, t.longest_ns, s.read_bytes, s.reads_count,
  s.read_bytes / nullif(s.reads_count, 0) AS request_bytes,
  r.took_ns AS latency_ns,
  nullif(s.written_bytes, 0) AS written_bytes,
  t.first_ts, t.last_ts
FROM total AS t
CROSS JOIN wb_rule AS v
LEFT JOIN ahead AS a ON a.bdi = t.bdi
LEFT JOIN summed AS s ON s.device = t.bdi
LEFT JOIN ranked AS r
  ON r.device = t.bdi AND r.place = rank_of!(50, r.places_count)
ORDER BY t.cost_task_ns DESC, t.bdi;
