-- SPDX-License-Identifier: Apache-2.0
-- What disks did, drawn.

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
      device!(c) AS device,
      CASE c.op WHEN 'write' THEN c.nr_sector ELSE 0 END * u.sector_bytes
        AS written_bytes,
      CASE c.op WHEN 'read' THEN c.nr_sector ELSE 0 END * u.sector_bytes
        AS read_bytes
    FROM raw_block_rq_complete AS c
    CROSS JOIN wb_units AS u
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE in_time!(c.ts, b)
    UNION ALL
    -- Also windows in which a disk did nothing.
    SELECT w.window_index, d.device, 0, 0
    FROM (
      SELECT DISTINCT device!(c) AS device
      FROM raw_block_rq_complete AS c
    ) AS d
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
    || device_part!(n.device, d.device) || c.name AS track,
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

-- @timeline tl_bandwidth
-- @title    Bandwidth of each bdi
-- @order    40
-- @group    Bandwidth: The kernel's estimates of each bdi's bandwidth, and the
--   rates that it lets tasks dirty pages at. Only while tasks are throttled,
--   every 200 ms at most; a new bdi starts at a made-up 100 MiB/s.
-- @level    One backing device (bdi), or what one cgroup writes to it
-- @track    write_bw [rate]: bandwidth of the disk in the last interval, before
--   this update
-- @track    avg_write_bw [rate]: the same, smoothed
-- @track    dirty_rate [rate]: how fast pages were dirtied
-- @track    dirty_ratelimit [rate]: base rate of one task, about write_bw /
--   tasks
-- @track    balanced_dirty_ratelimit [rate]: rate that would balance dirtying
--   and writing
-- @track    task_ratelimit [rate]: base rate times pos_ratio, for the bdi
-- @summary  The kernel's estimates of bandwidth and its rate limits, by bdi and
--   cgroup.
-- @grain    sample of one curve; order ts
-- @events   writeback:bdi_dirty_ratelimit|writeback:dirty_throttle_bandwidth
-- @cost     30
CREATE VIEW tl_bandwidth AS
WITH
  curve(place, name) AS (
    SELECT 0, 'write_bw'
    UNION ALL SELECT 1, 'avg_write_bw'
    UNION ALL SELECT 2, 'dirty_rate'
    UNION ALL SELECT 3, 'dirty_ratelimit'
    UNION ALL SELECT 4, 'balanced_dirty_ratelimit'
    UNION ALL SELECT 5, 'task_ratelimit'
  )
SELECT
  r.ts,
  NULL AS dur,
  'Writeback/Bandwidth/'
    || device_part!(d.device, r.bdi)
    || CASE WHEN r.cgroup_ino > 1 THEN ' cgroup ' || r.cgroup_ino ELSE '' END
    || '/' || c.name AS track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN r.write_bw_bytes_per_s
    WHEN 1 THEN r.avg_write_bw_bytes_per_s
    WHEN 2 THEN r.dirty_rate_bytes_per_s
    WHEN 3 THEN r.dirty_ratelimit_bytes_per_s
    WHEN 4 THEN r.balanced_dirty_ratelimit_bytes_per_s
    WHEN 5 THEN r.task_ratelimit_bytes_per_s
  END AS value,
  'bytes/s' AS unit
FROM wb_bandwidth AS r
CROSS JOIN curve AS c
LEFT JOIN wb_device AS d ON d.bdi = r.bdi;

-- @timeline tl_block
-- @title    Block requests
-- @order    110
-- @group    Block requests
-- @track    * queued: requests from block_rq_insert to block_rq_issue
-- @track    * in the device: requests from block_rq_issue to their end
-- @summary  Block requests of each disk: their time in the queue and in the
--   device.
-- @grain    part of a request; order ts
-- @flat
-- @events   block:block_rq_issue, block:block_rq_complete
-- @optional block:block_rq_insert
-- @column   arg_why TEXT its size, and where its time went; NULL = in less
--   than a millisecond
-- @column   arg_tid INTEGER thread that sent it; NULL = not known
-- @column   arg_comm TEXT its name then
-- @column   arg_rwbs TEXT as the kernel prints it: R, W, D, F, S, M ...
-- @column   arg_sector INTEGER first sector
-- @column   arg_bytes INTEGER size
-- @column   arg_queue_ns INTEGER in the queue; NULL = never issued
-- @column   arg_device_ns INTEGER in the device; NULL = never issued
-- @column   arg_cut TEXT end: not complete when the trace ended
-- @cost     120
CREATE VIEW tl_block AS
WITH
  request AS (
    SELECT
      q.ts, q.issue_ts, q.end_ts,
      device_part!(d.device, q.device) AS place,
      a.flows, q.op
        || CASE WHEN q.bytes > 0 THEN ' ' || size!(q.bytes) ELSE '' END AS op,
      q.tid, t.comm, q.rwbs, q.sector, q.bytes,
      q.issue_ts - q.ts AS queue_ns,
      q.end_ts - q.issue_ts AS device_ns,
      CASE WHEN q.end_ts >= b.last_ts THEN 'end' END AS cut
    FROM wb_wait_request AS q
    CROSS JOIN wb_bounds AS b
    LEFT JOIN wb_device AS d ON d.bdi = q.device
    LEFT JOIN _arrow AS a ON a.source = 'request' AND a.source_id = q.seq
    LEFT JOIN wb_task AS t ON task_of!(t, q)
  )
SELECT
  r.ts,
  coalesce(r.issue_ts, r.end_ts) - r.ts AS dur,
  'Writeback/Block requests/' || r.place || ' queued' AS track,
  r.op AS name,
  NULL AS value,
  NULL AS unit,
  NULL AS rank,
  NULL AS tid,
  NULL AS flows,
  CASE
    WHEN coalesce(r.device_ns, 0) + coalesce(r.queue_ns, 0) >= v.call_least_ns
      THEN printf(
        '%s: %.1f ms in the queue, %.1f ms in the device',
        r.op, coalesce(r.queue_ns, 0) / 1e6, coalesce(r.device_ns, 0) / 1e6
      )
  END AS arg_why,
  r.tid AS arg_tid,
  r.comm AS arg_comm,
  r.rwbs AS arg_rwbs,
  r.sector AS arg_sector,
  r.bytes AS arg_bytes,
  r.queue_ns AS arg_queue_ns,
  r.device_ns AS arg_device_ns,
  r.cut AS arg_cut
FROM request AS r
CROSS JOIN wb_rule AS v
WHERE r.issue_ts IS NULL OR r.issue_ts > r.ts
UNION ALL
SELECT
  r.issue_ts,
  r.end_ts - r.issue_ts,
  'Writeback/Block requests/' || r.place || ' in the device',
  r.op, NULL, NULL, NULL, NULL, r.flows,
  CASE
    WHEN coalesce(r.device_ns, 0) + coalesce(r.queue_ns, 0) >= v.call_least_ns
      THEN printf(
        '%s: %.1f ms in the queue, %.1f ms in the device',
        r.op, coalesce(r.queue_ns, 0) / 1e6, coalesce(r.device_ns, 0) / 1e6
      )
  END,
  r.tid, r.comm, r.rwbs, r.sector, r.bytes, r.queue_ns, r.device_ns, r.cut
FROM request AS r
CROSS JOIN wb_rule AS v
WHERE r.issue_ts IS NOT NULL;

-- @timeline tl_block_depth
-- @title    Depth of the queues
-- @order    111
-- @group    Block requests
-- @track    * requests queued [requests]: how many stand in the I/O scheduler
-- @track    * requests in the device [requests]: how many the disk has
-- @summary  How many requests of each disk are queued, and in the device.
-- @grain    change of one curve; order ts
-- @sorted
-- @events   block:block_rq_issue, block:block_rq_complete
-- @optional block:block_rq_insert
-- @cost     190
CREATE VIEW tl_block_depth AS
WITH
  border AS (
    SELECT q.device, ' requests queued' AS part, q.ts, 1 AS step
    FROM wb_wait_request AS q
    WHERE q.issue_ts IS NULL OR q.issue_ts > q.ts
    UNION ALL
    SELECT q.device, ' requests queued', coalesce(q.issue_ts, q.end_ts), -1
    FROM wb_wait_request AS q
    WHERE q.issue_ts IS NULL OR q.issue_ts > q.ts
    UNION ALL
    SELECT q.device, ' requests in the device', q.issue_ts, 1
    FROM wb_wait_request AS q
    WHERE q.issue_ts IS NOT NULL
    UNION ALL
    SELECT q.device, ' requests in the device', q.end_ts, -1
    FROM wb_wait_request AS q
    WHERE q.issue_ts IS NOT NULL
  ),
  change AS (
    SELECT b.device, b.part, b.ts, sum(b.step) AS step
    FROM border AS b
    GROUP BY b.device, b.part, b.ts
  )
SELECT
  c.ts,
  NULL AS dur,
  'Writeback/Block requests/'
    || device_part!(d.device, c.device) || c.part AS track,
  NULL AS name,
  sum(c.step) OVER (
    PARTITION BY c.device, c.part ORDER BY c.ts ROWS UNBOUNDED PRECEDING
  ) AS value,
  'requests' AS unit
FROM change AS c
LEFT JOIN wb_device AS d ON d.bdi = c.device;

-- @timeline tl_in_device
-- @title    Requests that the disks have
-- @order    109
-- @group    Block requests: How many requests the disks have at a time. Below:
--   requests of each disk, how long each stood in the I/O scheduler's queue,
--   and how long the disk took. Overlapping requests are rows of one track.
-- @parent
-- @sorted
-- @summary  How many requests all disks have at a time.
-- @grain    change; order ts
-- @events   block:block_rq_issue, block:block_rq_complete
-- @cost     86
CREATE VIEW tl_in_device AS
WITH
  border AS (
    SELECT q.issue_ts AS ts, 1 AS step
    FROM wb_wait_request AS q
    WHERE q.issue_ts IS NOT NULL
    UNION ALL
    SELECT q.end_ts, -1
    FROM wb_wait_request AS q
    WHERE q.issue_ts IS NOT NULL
  ),
  change AS (
    SELECT b.ts, sum(b.step) AS step
    FROM border AS b
    GROUP BY b.ts
  )
SELECT
  c.ts,
  NULL AS dur,
  'Writeback/Block requests' AS track,
  NULL AS name,
  sum(c.step) OVER (ORDER BY c.ts ROWS UNBOUNDED PRECEDING) AS value,
  'requests' AS unit
FROM change AS c;

-- @timeline tl_commit
-- @title    Commits of journals
-- @order    101
-- @group    Flusher work
-- @track    journal of *: commits of this device's journal
-- @summary  Commits of journals; arrows lead to the waits that they ended.
-- @grain    commit; order ts
-- @events   jbd2:jbd2_start_commit, jbd2:jbd2_end_commit
-- @column   arg_why TEXT how long it took, and who waited
-- @column   arg_bdi TEXT device of the journal
-- @column   arg_waits_count INTEGER waits that ended with it
CREATE VIEW tl_commit AS
SELECT
  b.from_ts AS ts,
  b.to_ts - b.from_ts AS dur,
  'Writeback/Flusher work/journal of '
    || device_part!(d.device, b.device) AS track,
  'commit' AS name,
  NULL AS value,
  NULL AS unit,
  NULL AS rank,
  NULL AS tid,
  a.flows AS flows,
  printf('the journal committed for %.1f ms', (b.to_ts - b.from_ts) / 1e6)
    || coalesce(
      '; ' || a.waits_count || CASE a.waits_count
        WHEN 1 THEN ' wait ended with it'
        ELSE ' waits ended with it'
      END,
      ''
    ) AS arg_why,
  b.device AS arg_bdi,
  a.waits_count AS arg_waits_count
FROM wb_busy AS b
LEFT JOIN wb_device AS d ON d.bdi = b.device
LEFT JOIN _arrow AS a ON a.source = 'commit' AND a.source_id = b.from_ts
WHERE b.resource = 'journal'
  -- Else the stretches are told from requests.
  AND EXISTS (SELECT 1 FROM raw_jbd2_start_commit);

-- @timeline tl_flusher
-- @title    Work of the flushers
-- @order    100
-- @group    Flusher work: What the kernel's writing threads did, by bdi and by
--   the reason why, and the commits of journals. Arrows lead from their ends to
--   the ends of waits for them.
-- @track    journal of *: commits of this journal
-- @track    *: work of this reason: background (above bg_thresh), periodic (old
--   pages), sync (ordered), vmscan (reclaim met dirty pages) and others; before
--   ordered work the time that it stood in the queue
-- @summary  Work items of the flushers by bdi and reason, and their time in the
--   queue.
-- @grain    work item; order ts
-- @flat
-- @events   writeback:writeback_start, writeback:writeback_written
-- @optional writeback:writeback_queue, writeback:writeback_exec
-- @column   arg_why TEXT what it did
-- @column   arg_tid INTEGER thread of the flusher; NULL = not known
-- @column   arg_comm TEXT its name then
-- @column   arg_bdi TEXT backing device; NULL = not known
-- @column   arg_cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   arg_reason TEXT why: background, periodic, sync, vmscan ...
-- @column   arg_bytes INTEGER written
-- @column   arg_pages_count INTEGER pages written
-- @column   arg_chunks_count INTEGER rounds
-- @column   arg_queue_wait_ns INTEGER from being queued to its start
-- @column   arg_queued_tid INTEGER thread that asked for it
-- @column   arg_cut TEXT end: not done when the trace ended
CREATE VIEW tl_flusher AS
WITH
  item AS (
    SELECT
      w.*,
      'Writeback/Flusher work/'
        || device_part!(d.device, w.bdi)
        || CASE
          WHEN w.cgroup_ino > 1 THEN ' cgroup ' || w.cgroup_ino
          ELSE ''
        END
        || ' ' || replace(replace(w.reason, '\', '\\'), '/', '\/') AS track,
      t.comm
    FROM wb_work AS w
    LEFT JOIN wb_device AS d ON d.bdi = w.bdi
    LEFT JOIN wb_task AS t ON task_of!(t, w)
  )
SELECT
  i.started_ts AS ts,
  coalesce(i.finished_ts, b.last_ts) - i.started_ts AS dur,
  i.track,
  i.reason AS name,
  NULL AS value,
  NULL AS unit,
  NULL AS rank,
  NULL AS tid,
  a.flows AS flows,
  'wrote ' || mib!(i.bytes) || printf(
    ' in %.1f ms for ',
    (coalesce(i.finished_ts, b.last_ts) - i.started_ts) / 1e6
  ) || i.reason AS arg_why,
  CASE WHEN i.comm IS NOT NULL THEN i.tid END AS arg_tid,
  i.comm AS arg_comm,
  i.bdi AS arg_bdi,
  i.cgroup_ino AS arg_cgroup_ino,
  i.reason AS arg_reason,
  i.bytes AS arg_bytes,
  i.pages_count AS arg_pages_count,
  i.chunks_count AS arg_chunks_count,
  i.started_ts - i.queued_ts AS arg_queue_wait_ns,
  i.queued_tid AS arg_queued_tid,
  CASE WHEN i.finished_ts IS NULL THEN 'end' END AS arg_cut
FROM item AS i
CROSS JOIN wb_bounds AS b
LEFT JOIN _arrow AS a ON a.source = 'work' AND a.source_id = i.seq
WHERE i.started_ts IS NOT NULL
UNION ALL
SELECT
  i.queued_ts,
  coalesce(i.started_ts, b.last_ts) - i.queued_ts,
  i.track,
  'queued',
  NULL, NULL, NULL, NULL, NULL,
  'ordered, and waits for the flusher',
  NULL, NULL, i.bdi, NULL, i.reason, NULL, NULL, NULL, NULL, i.queued_tid,
  CASE WHEN i.started_ts IS NULL THEN 'end' END
FROM item AS i
CROSS JOIN wb_bounds AS b
WHERE i.queued_ts IS NOT NULL;

-- @view     _arrow
-- @summary  The arrows from what ended waits to these.
-- @grain    what ended waits; order source, source_id
-- @column   flows TEXT numbers of the arrows
-- @column   waits_count INTEGER waits that ended with it
-- @materialize
CREATE VIEW _arrow AS
WITH
  listed AS (
    SELECT
      r.source, r.source_id,
      group_concat(r.flow, ' ') OVER (
        PARTITION BY r.source, r.source_id ORDER BY r.flow
        ROWS UNBOUNDED PRECEDING
      ) AS flows,
      row_number() OVER (
        PARTITION BY r.source, r.source_id ORDER BY r.flow DESC
      ) AS place,
      count(*) OVER (PARTITION BY r.source, r.source_id) AS waits_count
    FROM wb_release AS r
  )
SELECT l.source, l.source_id, l.flows, l.waits_count
FROM listed AS l
WHERE l.place = 1;
