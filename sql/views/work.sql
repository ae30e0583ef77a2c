-- SPDX-License-Identifier: Apache-2.0
-- Work of the flushers, and which waits belong to it.

-- @view     wb_work
-- @summary  Work items of the flushers, put together from their events. Sync
--   and other ordered work is queued, then taken from the queue (exec);
--   background, periodic and vmscan work is never queued and shows only as
--   chunks. Chunks of one flusher are one work item while bdi, reason and the
--   number of pages go on where the chunk before left them.
-- @grain    work item; order seq
-- @events   writeback:writeback_start, writeback:writeback_written
-- @optional writeback:writeback_queue, writeback:writeback_exec,
--   writeback:writeback_pages_written
-- @column   seq INTEGER of the item's first event in the flusher, or of its
--   writeback_queue when it was not taken from the queue
-- @column   tid INTEGER flusher thread; NULL when not taken from the queue
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   reason TEXT why: background, periodic, sync, vmscan ...
-- @column   queued_ts INTEGER ns; NULL = not queued, or before the trace
-- @column   started_ts INTEGER ns, taken from the queue, or its first chunk
-- @column   finished_ts INTEGER ns, end of its last chunk; NULL = none ended
-- @column   chunks_count INTEGER writeback_start events
-- @column   ended_count INTEGER these that ended, and began in the trace
-- @column   pages_count INTEGER pages of its chunks
-- @column   bytes INTEGER pages_count in bytes
-- @column   queued_tid INTEGER thread that queued it; NULL where queued_ts is
-- @source   fs/fs-writeback.c wb_do_writeback(), wb_writeback()
-- @index    bdi started_ts
-- @materialize
-- @cost     70
CREATE VIEW wb_work AS
WITH
  work AS (
    SELECT
      c.work_seq AS seq,
      min(c.tid) AS tid,
      min(c.name) AS name,
      min(c.cgroup_ino) AS cgroup_ino,
      min(c.cgroup_path) AS cgroup_path,
      min(c.reason) AS reason,
      max(c.for_background) AS for_background,
      max(c.for_kupdate) AS for_kupdate,
      max(c.sync_mode) AS sync_mode,
      max(CASE WHEN c.step = 'exec' THEN c.nr_pages END) AS asked_pages,
      max(CASE WHEN c.step = 'exec' THEN c.seq END) AS exec_seq,
      min(c.ts) AS started_ts,
      max(CASE WHEN c.step = 'written' THEN c.ts END) AS finished_ts,
      sum(CASE WHEN c.step = 'start' THEN 1 ELSE 0 END) AS chunks_count,
      count(c.pages_count) AS ended_count,
      coalesce(sum(c.pages_count), 0) AS pages_count
    FROM _work_chunk AS c
    GROUP BY c.work_seq
  ),
  -- A wb's queue is first in, first out: the nth exec is of the nth queue,
  -- when those that were queued before the trace began are left out.
  queue_step AS (
    SELECT
      q.seq, q.ts, q.tid, 1 AS is_queue, q.name, q.cgroup_ino, q.cgroup_path,
      q.reason, q.sync_mode, q.nr_pages
    FROM raw_writeback_queue AS q
    UNION ALL
    SELECT
      w.exec_seq, w.started_ts, w.tid, 0, w.name, w.cgroup_ino, w.cgroup_path,
      w.reason, w.sync_mode, w.asked_pages
    FROM work AS w
    WHERE w.exec_seq IS NOT NULL
  ),
  counted AS (
    SELECT
      s.*,
      sum(s.is_queue) OVER same AS queues_count,
      sum(1 - s.is_queue) OVER same AS execs_count
    FROM queue_step AS s
    WINDOW same AS (
      PARTITION BY s.name, s.cgroup_ino, s.cgroup_path, s.reason, s.sync_mode,
        s.nr_pages
      ORDER BY s.seq ROWS UNBOUNDED PRECEDING
    )
  ),
  shifted AS (
    SELECT
      c.*,
      max(CASE
        WHEN c.execs_count > c.queues_count THEN c.execs_count - c.queues_count
        ELSE 0
      END) OVER (
        PARTITION BY c.name, c.cgroup_ino, c.cgroup_path, c.reason,
          c.sync_mode, c.nr_pages
      ) AS early_count
    FROM counted AS c
  ),
  placed AS (
    SELECT
      s.*,
      CASE
        WHEN s.is_queue = 1 THEN s.queues_count
        ELSE s.execs_count - s.early_count
      END AS place
    FROM shifted AS s
  ),
  queued AS (
    SELECT
      p.seq, p.ts, p.tid, p.is_queue, p.name, p.cgroup_ino, p.cgroup_path,
      p.reason, p.sync_mode,
      lag(p.ts) OVER item AS queued_ts,
      lag(p.tid) OVER item AS queued_tid,
      lag(p.is_queue) OVER item AS after_queue,
      lead(p.is_queue) OVER item AS before_exec
    FROM placed AS p
    WINDOW item AS (
      PARTITION BY p.name, p.cgroup_ino, p.cgroup_path, p.reason, p.sync_mode,
        p.nr_pages, p.place
      ORDER BY p.is_queue DESC
    )
  ),
  -- An item that was taken from the queue has the number of its exec.
  item AS (
    SELECT
      k.seq, max(k.tid) AS tid, max(k.name) AS name,
      max(k.cgroup_ino) AS cgroup_ino, max(k.cgroup_path) AS cgroup_path,
      max(k.reason) AS reason, max(k.for_background) AS for_background,
      max(k.for_kupdate) AS for_kupdate, max(k.sync_mode) AS sync_mode,
      max(k.queued_ts) AS queued_ts, max(k.started_ts) AS started_ts,
      max(k.finished_ts) AS finished_ts, max(k.chunks_count) AS chunks_count,
      max(k.ended_count) AS ended_count, max(k.pages_count) AS pages_count,
      max(k.queued_tid) AS queued_tid
    FROM (
      SELECT
        w.seq, w.tid, w.name, w.cgroup_ino, w.cgroup_path, w.reason,
        w.for_background, w.for_kupdate, w.sync_mode, NULL AS queued_ts,
        w.started_ts, w.finished_ts, w.chunks_count, w.ended_count,
        w.pages_count, NULL AS queued_tid
      FROM work AS w
      UNION ALL
      SELECT
        q.seq, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, q.queued_ts,
        NULL, NULL, NULL, NULL, NULL, q.queued_tid
      FROM queued AS q
      WHERE q.is_queue = 0 AND q.after_queue = 1
    ) AS k
    GROUP BY k.seq
    UNION ALL
    SELECT
      q.seq, NULL, q.name, q.cgroup_ino, q.cgroup_path, q.reason, NULL, NULL,
      q.sync_mode, q.ts, NULL, NULL, 0, 0, 0, q.tid
    FROM queued AS q
    WHERE q.is_queue = 1 AND q.before_exec IS NULL
  )
SELECT
  i.seq, i.tid,
  i.name AS bdi,
  coalesce(i.cgroup_ino, g.cgroup_ino) AS cgroup_ino,
  coalesce(
    (
      SELECT min(l.label)
      FROM raw_enum_label AS l
      WHERE l.field = 'reason'
        AND l.value = i.reason
        AND l.event LIKE 'writeback:writeback\_%' ESCAPE '\'
    ),
    'reason ' || i.reason,
    CASE
      WHEN i.for_background = 1 THEN 'background'
      WHEN i.for_kupdate = 1 THEN 'periodic'
      WHEN i.sync_mode = 1 THEN 'sync'
      ELSE 'unknown'
    END
  ) AS reason,
  i.queued_ts, i.started_ts, i.finished_ts, i.chunks_count, i.ended_count,
  i.pages_count,
  i.pages_count * u.page_bytes AS bytes,
  i.queued_tid
FROM item AS i
CROSS JOIN wb_units AS u
LEFT JOIN wb_cgroup AS g ON g.path = i.cgroup_path;

-- @view     wb_release
-- @shared
-- @summary  What ended waits: the last request of the device, the commit of the
--   journal or the work of a flusher that ended in the wait, and that the wait
--   was for. A throttled sleep is ended by a timer and has none.
-- @grain    wait; order wait_id
-- @optional block:block_rq_complete, jbd2:jbd2_end_commit,
--   writeback:writeback_written
-- @column   wait_id INTEGER of wb_stall
-- @column   wait_end_ts INTEGER ns, its end
-- @column   source TEXT request, commit or work
-- @column   source_ts INTEGER ns, end of that: at or before the end of the wait
-- @column   source_id INTEGER seq of wb_wait_request or of wb_work, or from_ts
--   of the commit in wb_busy
-- @column   flow INTEGER number of the arrow between the two
-- @source   fs/fs-writeback.c wb_wait_for_completion(); fs/jbd2/journal.c
--   jbd2_log_wait_commit(); mm/filemap.c folio_wait_writeback()
-- @materialize
-- @cost     88
CREATE VIEW wb_release AS
WITH
  wait AS (
    SELECT
      s.wait_id, s.ts,
      s.ts + s.span_ns AS end_ts,
      s.tid, s.kind, s.cause, s.bdi, s.ref_seq
    FROM wb_stall AS s
    WHERE s.span_ns IS NOT NULL
      -- The end of the trace ends nothing.
      AND s.cut IS NOT 'end'
      AND s.kind NOT IN (
        'throttle', 'direct reclaim', 'memcg reclaim', 'reclaim throttle'
      )
  ),
  ended AS (
    SELECT
      'request' AS source,
      q.seq AS source_id,
      q.device,
      q.end_ts AS ts
    FROM wb_wait_request AS q
    WHERE q.issue_ts IS NOT NULL
    UNION ALL
    SELECT 'commit', b.from_ts, b.device, b.to_ts
    FROM wb_busy AS b
    WHERE b.resource = 'journal'
      -- Not recorded, they are told from requests: these end the waits then.
      AND EXISTS (SELECT 1 FROM raw_jbd2_start_commit)
  ),
  numbered AS (
    SELECT
      e.*,
      row_number() OVER (ORDER BY e.source, e.ts, e.source_id) AS place
    FROM ended AS e
  ),
  step AS (
    SELECT n.source, n.device, n.ts, 0 AS is_wait, n.place, NULL AS wait_id
    FROM numbered AS n
    UNION ALL
    SELECT n.source, k.bdi, n.ts, 0, n.place, NULL
    FROM wb_stack AS k
    CROSS JOIN numbered AS n ON n.device = k.disk
    WHERE n.source = 'request' AND k.bdi IN (SELECT w.bdi FROM wait AS w)
    UNION ALL
    SELECT
      CASE
        WHEN w.cause = 'journal commit'
          AND EXISTS (SELECT 1 FROM raw_jbd2_start_commit) THEN 'commit'
        ELSE 'request'
      END,
      w.bdi, w.end_ts, 1, NULL, w.wait_id
    FROM wait AS w
    WHERE w.kind <> 'block queue' AND w.bdi IS NOT NULL
      AND w.cause IN ('journal commit', 'device latency')
  ),
  last_end AS (
    SELECT
      s.wait_id,
      max(s.place) OVER (
        PARTITION BY s.source, s.device ORDER BY s.ts, s.is_wait
        ROWS UNBOUNDED PRECEDING
      ) AS place
    FROM step AS s
  ),
  -- Who queues work and waits for it does so within one wait.
  task_step AS (
    SELECT
      w.queued_tid AS tid,
      w.queued_ts AS ts,
      1 AS is_work,
      w.seq AS work_seq,
      w.finished_ts,
      NULL AS wait_id
    FROM wb_work AS w
    WHERE w.queued_tid IS NOT NULL AND w.finished_ts IS NOT NULL
    UNION ALL
    SELECT w.tid, w.ts, 0, NULL, NULL, w.wait_id
    FROM wait AS w
    WHERE w.kind IN ('sync', 'fsync')
  ),
  -- The ids of waits of one rank grow with time.
  within AS (
    SELECT
      t.work_seq, t.ts, t.finished_ts,
      max(t.wait_id) OVER (
        PARTITION BY t.tid ORDER BY t.ts, t.is_work ROWS UNBOUNDED PRECEDING
      ) AS wait_id
    FROM task_step AS t
  ),
  found AS (
    -- Its own request.
    SELECT w.wait_id, 1 AS choice, n.source, n.source_id, n.ts
    FROM wait AS w
    JOIN numbered AS n ON n.source = 'request' AND n.source_id = w.ref_seq
    WHERE w.kind = 'block queue'
    UNION ALL
    SELECT i.wait_id, 2, 'work', i.work_seq, i.finished_ts
    FROM within AS i
    WHERE i.work_seq IS NOT NULL
    UNION ALL
    SELECT l.wait_id, 3, n.source, n.source_id, n.ts
    FROM last_end AS l
    JOIN numbered AS n ON n.place = l.place
    WHERE l.wait_id IS NOT NULL
  ),
  ranked AS (
    SELECT
      f.*,
      w.end_ts,
      row_number() OVER (
        PARTITION BY f.wait_id ORDER BY f.choice, f.ts DESC, f.source_id
      ) AS place
    FROM found AS f
    JOIN wait AS w
      ON w.wait_id = f.wait_id AND f.ts >= w.ts AND f.ts <= w.end_ts
  )
SELECT
  r.wait_id,
  r.end_ts AS wait_end_ts,
  r.source,
  r.ts AS source_ts,
  r.source_id,
  r.wait_id AS flow
FROM ranked AS r
WHERE r.place = 1;

-- @view     _work_chunk
-- @summary  What the flusher wrote of each work item, by event.
-- @grain    event; order work_seq, seq
-- @column   work_seq INTEGER of the event that began the work
-- @column   seq INTEGER of the event
-- @column   ts INTEGER ns
-- @column   tid INTEGER flusher
-- @column   step TEXT exec, start or written
-- @column   name TEXT of the bdi
-- @column   cgroup_ino INTEGER cgroup of the wb
-- @column   cgroup_path TEXT its path, in kernels that record that instead
-- @column   nr_pages INTEGER pages still to be written
-- @column   reason INTEGER as the kernel numbers it
-- @column   for_background INTEGER as recorded
-- @column   for_kupdate INTEGER as recorded
-- @column   sync_mode INTEGER as recorded
-- @column   pages_count INTEGER written by this event; NULL = not told
CREATE VIEW _work_chunk AS
WITH
  steps AS (
    SELECT
      e.seq, e.ts, e.tid, 'exec' AS step, e.name, e.cgroup_ino, e.cgroup_path,
      e.nr_pages, e.reason, e.for_background, e.for_kupdate, e.sync_mode
    FROM raw_writeback_exec AS e
    UNION ALL
    SELECT
      s.seq, s.ts, s.tid, 'start', s.name, s.cgroup_ino, s.cgroup_path,
      s.nr_pages, s.reason, s.for_background, s.for_kupdate, s.sync_mode
    FROM raw_writeback_start AS s
    UNION ALL
    SELECT
      w.seq, w.ts, w.tid, 'written', w.name, w.cgroup_ino, w.cgroup_path,
      w.nr_pages, w.reason, w.for_background, w.for_kupdate, w.sync_mode
    FROM raw_writeback_written AS w
    UNION ALL
    SELECT
      p.seq, p.ts, p.tid, 'run end', NULL, NULL, NULL, NULL, NULL, NULL, NULL,
      NULL
    FROM raw_writeback_pages_written AS p
    -- One for each time a flusher runs, most of them without any work.
    WHERE p.tid IN (SELECT s.tid FROM raw_writeback_start AS s)
  ),
  followed AS (
    SELECT
      s.*,
      lag(s.step) OVER flusher AS last_step,
      lag(s.name) OVER flusher AS last_name,
      lag(s.cgroup_ino) OVER flusher AS last_cgroup_ino,
      lag(s.cgroup_path) OVER flusher AS last_cgroup_path,
      lag(s.reason) OVER flusher AS last_reason,
      lag(s.for_background) OVER flusher AS last_for_background,
      lag(s.nr_pages) OVER flusher AS last_nr_pages
    FROM steps AS s
    WINDOW flusher AS (PARTITION BY s.tid ORDER BY s.seq)
  ),
  marked AS (
    SELECT
      f.*,
      CASE
        WHEN f.step = 'exec' THEN 1
        WHEN f.step = 'run end' THEN 0
        WHEN f.last_step IS NULL OR f.last_step = 'run end' THEN 1
        WHEN f.name <> f.last_name
          OR coalesce(f.cgroup_ino, 0) <> coalesce(f.last_cgroup_ino, 0)
          OR coalesce(f.cgroup_path, '') <> coalesce(f.last_cgroup_path, '')
          OR coalesce(f.reason, -1) <> coalesce(f.last_reason, -1)
          OR f.for_background <> f.last_for_background
          THEN 1
        WHEN f.step = 'start' AND f.nr_pages <> f.last_nr_pages THEN 1
        ELSE 0
      END AS is_new
    FROM followed AS f
  ),
  numbered AS (
    SELECT
      m.*,
      max(CASE WHEN m.is_new = 1 THEN m.seq END) OVER (
        PARTITION BY m.tid ORDER BY m.seq ROWS UNBOUNDED PRECEDING
      ) AS work_seq
    FROM marked AS m
  )
SELECT
  n.work_seq, n.seq, n.ts, n.tid, n.step, n.name, n.cgroup_ino,
  n.cgroup_path, n.nr_pages, n.reason, n.for_background, n.for_kupdate,
  n.sync_mode,
  -- A written without its start, at the trace's begin, tells no pages.
  CASE
    WHEN n.step = 'written' AND n.last_step = 'start' AND n.is_new = 0
      THEN n.last_nr_pages - n.nr_pages
  END AS pages_count
FROM numbered AS n
WHERE n.step <> 'run end' AND n.work_seq IS NOT NULL;
