-- SPDX-License-Identifier: Apache-2.0
-- Waits of tasks without double counting, and why each task waited.

-- @view     wb_stall
-- @summary  Waits of tasks without double counting, each with its cause.
-- @grain    wait that keeps time of its own, or whose end no event tells; order
--   wait_id
-- @key      wait_id
-- @column   wait_id INTEGER of wb_wait
-- @column   seq INTEGER of the event, or of the sched_switch, that it is from
-- @column   ts INTEGER ns, trace clock, start
-- @column   dur INTEGER ns, its time without the waits inside it; NULL = no
--   event tells
-- @column   span_ns INTEGER from its start to its end, those included
-- @column   tid INTEGER thread
-- @column   comm TEXT its name at that time
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   kind TEXT throttle, direct reclaim, memcg reclaim, reclaim
--   throttle, folio wait, journal, block queue, server, fsync, sync, write or
--   blocked outside throttling
-- @column   what TEXT event or call that it is from
-- @column   cause TEXT why the task waited here, or unknown; docs/stalls.md
-- @column   bdi TEXT backing device, or device, where the events tell
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root; throttle only
-- @column   basis TEXT how well its time is known; as in wb_wait
-- @column   cut TEXT start or end: under way when the trace began or ended;
--   exit: the task exited in it; lost: an event is missing
-- @column   pos_ratio REAL throttle: task_ratelimit over dirty_ratelimit
-- @column   global_pos_ratio REAL factor of it for the machine's dirty pages
-- @column   wb_pos_ratio REAL factor of it for the wb's dirty pages
-- @column   global_share_ratio REAL share of the former in what both take away
-- @column   journal_ratio REAL share of dur in which the journal committed
-- @column   device_ratio REAL share of dur in which the device had requests
-- @column   server_ratio REAL share of dur in which the server had requests
-- @column   kswapd_ratio REAL share of dur in which a kswapd was awake
-- @column   ref_seq INTEGER of the event that says why
-- @column   sync_call TEXT of sync, fsync and waits for a page: the call that
--   it was in, as in what; NULL = in none that events tell of
-- @column   is_failed INTEGER of these 1: that call returned an error of
--   writing: what it waited for is not on the disk
-- @column   outside_reason TEXT of what is blocked outside throttling: read or
--   memory.high, where what the task did right before tells; else NULL
-- @column   read_device TEXT of a read: the device, major:minor
-- @column   wrote_disk TEXT of a throttle where nothing tells on which disks
--   its device lies, as it has no request: the disk that wrote most; else NULL
-- @column   wrote_disks TEXT then: all disks that wrote, in words
-- @column   is_proved INTEGER 1: its event, or who woke the task, proves the
--   cause; 0: it is inferred from what went on at the same time
-- @column   waker TEXT of waits for another task: its name and number
-- @column   held_bdi TEXT device whose writers' pause held that task; NULL = it
--   was not throttled
-- @source   docs/stalls.md; mm/vmscan.c reclaim_throttle();
--   include/linux/mmzone.h enum vmscan_throttle_state
-- @materialize
-- @cost     180
CREATE VIEW wb_stall AS
WITH
  -- Where the wait's events name no device, the only one that commits or
  -- requests name is taken, if it is one; for requests also where they name
  -- another one (a partition, a device mapper), but no bdi of NFS or FUSE,
  -- which have no disk: 0:45.
  asked AS (
    SELECT
      w.wait_id,
      coalesce(n.resource, o.resource) AS resource,
      coalesce(n.device, o.device) AS device
    FROM wb_wait AS w
    CROSS JOIN (SELECT DISTINCT s.resource FROM _busy_kind AS s) AS r
    LEFT JOIN _busy_kind AS n ON n.resource = r.resource AND n.device = w.device
    LEFT JOIN _busy_kind AS o
      ON o.resource = r.resource
      AND o.devices_count = 1
      AND o.is_disk
      AND r.resource <> 'server'
      AND (
        w.device IS NULL
        OR (r.resource <> 'journal' AND w.device NOT GLOB '0:*')
      )
    WHERE w.end_ts IS NOT NULL
      AND CASE r.resource
        WHEN 'kswapd' THEN w.kind = 'direct reclaim' AND w.ts >= o.first_ts
        ELSE w.kind IN (
          'folio wait', 'journal', 'server', 'fsync', 'sync', 'write',
          'blocked outside throttling'
        )
      END
      AND (n.resource IS NOT NULL OR o.resource IS NOT NULL)
  ),
  covered AS (
    SELECT
      p.wait_id, a.resource,
      busy_until!(p.to_ts, a.resource, a.device)
        - busy_until!(p.from_ts, a.resource, a.device) AS busy_ns
    FROM wb_wait_piece AS p
    CROSS JOIN asked AS a ON a.wait_id = p.wait_id
    -- busy_until reads it.
    WHERE EXISTS (SELECT 1 FROM wb_busy)
  ),
  busy AS (
    SELECT
      c.wait_id,
      sum(CASE WHEN c.resource = 'journal' THEN c.busy_ns END) AS journal_ns,
      sum(CASE WHEN c.resource = 'device' THEN c.busy_ns END) AS device_ns,
      sum(CASE WHEN c.resource = 'server' THEN c.busy_ns END) AS server_ns,
      sum(CASE WHEN c.resource = 'kswapd' THEN c.busy_ns END) AS kswapd_ns
    FROM covered AS c
    GROUP BY c.wait_id
  ),
  own AS (
    SELECT p.wait_id, sum(p.to_ts - p.from_ts) AS own_ns
    FROM wb_wait_piece AS p
    GROUP BY p.wait_id
  ),
  known AS (
    SELECT
      w.*,
      w.kind IN (
        'folio wait', 'fsync', 'sync', 'write', 'blocked outside throttling'
      ) AS is_generic,
      CASE WHEN w.kind = 'throttle' THEN w.ref_seq END AS throttle_seq,
      CASE WHEN w.kind = 'block queue' THEN w.ref_seq END AS request_seq,
      CASE WHEN w.kind = 'memcg reclaim' THEN w.ref_seq END AS memcg_seq,
      o.own_ns,
      1.0 * b.journal_ns / o.own_ns AS journal_ratio,
      1.0 * b.device_ns / o.own_ns AS device_ratio,
      1.0 * b.server_ns / o.own_ns AS server_ratio,
      1.0 * b.kswapd_ns / o.own_ns AS kswapd_ratio
    FROM wb_wait AS w
    CROSS JOIN wb_rule AS v
    LEFT JOIN own AS o ON o.wait_id = w.wait_id
    LEFT JOIN busy AS b ON b.wait_id = o.wait_id
    WHERE w.end_ts IS NULL
      -- What a known wait leaves of a sleep at its ends is none of its own.
      OR (o.wait_id IS NOT NULL AND (w.rank > 0 OR o.own_ns >= v.call_least_ns))
  )
SELECT
  s.wait_id, s.seq, s.ts,
  s.own_ns AS dur,
  s.end_ts - s.ts AS span_ns,
  s.tid, s.comm, s.task_id, s.kind, s.what,
  CASE
    -- The events of 2011 say nothing about the dirty pages.
    WHEN s.kind = 'throttle' THEN coalesce(c.cause, 'unknown')
    WHEN s.kind = 'memcg reclaim' THEN
      CASE WHEN o.seq IS NULL THEN 'memcg limit' ELSE 'memory.reclaim' END
    WHEN s.kind = 'reclaim throttle' THEN
      CASE s.reason
        WHEN 1 THEN 'writeback behind reclaim'
        WHEN 2 THEN 'too many reclaimers'
        WHEN 4 THEN 'reclaim without progress'
        WHEN 8 THEN 'writeback behind reclaim'
        ELSE 'unknown'
      END
    WHEN s.what = 'xfs_log_grant' THEN 'journal full'
    WHEN s.what = 'xfs_log_cil_wait' THEN 'journal commit'
    WHEN s.what = 'node_reclaim' THEN 'zone reclaim mode'
    WHEN s.kind = 'direct reclaim' THEN
      CASE
        WHEN s.kswapd_ratio >= r.most_ratio THEN 'kswapd behind'
        WHEN s.kswapd_ratio < r.most_ratio THEN 'kswapd asleep'
        ELSE 'unknown'
      END
    WHEN s.kind = 'block queue' THEN
      CASE
        WHEN q.issue_ts IS NULL THEN 'unknown'
        WHEN (q.end_ts - q.issue_ts) >= (q.end_ts - q.ts) * r.most_ratio
          THEN 'device latency'
        ELSE 'queued behind others'
      END
    WHEN e.cause = 'held by another task' AND s.server_ratio >= r.most_ratio
      THEN 'server latency'
    WHEN e.cause IS NOT NULL THEN e.cause
    WHEN s.kind <> 'folio wait' AND s.journal_ratio >= r.most_ratio
      AND e.is_other IS NOT 1 THEN 'journal commit'
    WHEN s.server_ratio >= r.most_ratio THEN 'server latency'
    WHEN s.device_ratio >= r.most_ratio THEN 'device latency'
    ELSE 'unknown'
  END AS cause,
  s.device AS bdi,
  c.cgroup_ino, s.basis, s.cut, c.pos_ratio, c.global_pos_ratio, c.wb_pos_ratio,
  c.global_share_ratio, s.journal_ratio, s.device_ratio, s.server_ratio,
  s.kswapd_ratio, s.ref_seq, y.sync_call, y.is_failed,
  x.reason AS outside_reason,
  x.device AS read_device,
  n.disk AS wrote_disk,
  n.disks AS wrote_disks,
  CASE WHEN s.is_generic THEN coalesce(e.is_proved, 0) ELSE 1 END AS is_proved,
  e.waker, e.held_bdi
FROM known AS s
CROSS JOIN wb_rule AS r
LEFT JOIN wb_throttle_cause AS c ON c.seq = s.throttle_seq
LEFT JOIN wb_wait_request AS q ON q.seq = s.request_seq
LEFT JOIN _stall_proactive AS o ON o.seq = s.memcg_seq
LEFT JOIN _stall_sync AS y ON y.wait_id = s.wait_id
LEFT JOIN _stall_reason AS x ON x.wait_id = s.wait_id
LEFT JOIN _stall_ended AS e
  ON s.is_generic
  AND e.wait_id = s.wait_id
  AND e.known_ns >= r.most_ratio * s.own_ns
LEFT JOIN _stall_unknown AS n ON s.kind = 'throttle' AND n.bdi = s.device;

-- @view     wb_wait_piece
-- @summary  Which wait each moment of a task belongs to: the innermost one.
--   Pieces of a task do not overlap, so they never add up to more than the time
--   that has passed.
-- @grain    piece of a wait; order tid, from_ts
-- @column   wait_id INTEGER of wb_wait
-- @column   from_ts INTEGER ns, start of the piece
-- @column   to_ts INTEGER ns, end of the piece
-- @materialize
-- @cost     130
CREATE VIEW wb_wait_piece AS
WITH
  borders AS (
    SELECT w.tid, w.ts, w.rank, 1 AS step, w.wait_id
    FROM wb_wait AS w
    WHERE w.end_ts IS NOT NULL
    UNION ALL
    SELECT w.tid, w.end_ts, w.rank, -1, NULL
    FROM wb_wait AS w
    WHERE w.end_ts IS NOT NULL
  ),
  -- What goes on before each border: a bit for each rank, as waits of one rank
  -- do not overlap. The last one begun is the one going on.
  going_on AS (
    SELECT
      b.tid,
      lag(b.ts) OVER task AS from_ts,
      b.ts AS to_ts,
      sum(b.step * (1 << b.rank)) OVER task - b.step * (1 << b.rank) AS ranks,
      max(CASE WHEN b.rank = 4 THEN b.wait_id END) OVER task AS wait_4,
      max(CASE WHEN b.rank = 3 THEN b.wait_id END) OVER task AS wait_3,
      max(CASE WHEN b.rank = 2 THEN b.wait_id END) OVER task AS wait_2,
      max(CASE WHEN b.rank = 1 THEN b.wait_id END) OVER task AS wait_1,
      max(CASE WHEN b.rank = 0 THEN b.wait_id END) OVER task AS wait_0
    FROM borders AS b
    WINDOW task AS (
      PARTITION BY b.tid ORDER BY b.ts, b.step, b.wait_id
      ROWS UNBOUNDED PRECEDING
    )
  )
SELECT
  CASE
    WHEN g.ranks >= 1 << 4 THEN g.wait_4
    WHEN g.ranks >= 1 << 3 THEN g.wait_3
    WHEN g.ranks >= 1 << 2 THEN g.wait_2
    WHEN g.ranks >= 1 << 1 THEN g.wait_1
    ELSE g.wait_0
  END AS wait_id,
  g.tid, g.from_ts, g.to_ts
FROM going_on AS g
WHERE g.to_ts > g.from_ts AND g.ranks > 0;

-- @view     _stall_proactive
-- @summary  Reclaim of a memory cgroup that somebody asked for (memory.reclaim)
--   and no limit: a patched kernel tells it of each dirty folio. Not made of
--   reclaim_work, for the same reason as _loss_reclaim.
-- @grain    reclaim; order seq
-- @key      seq
-- @column   seq INTEGER of mm_vmscan_memcg_reclaim_begin
-- @source   kernel-tracepoints/
-- @materialize
CREATE VIEW _stall_proactive AS
WITH
  steps AS (
    SELECT y.tid, y.seq, NULL AS border_seq
    FROM raw_mm_vmscan_reclaim_writeback AS y
    WHERE y.reclaimer = 4
    UNION ALL
    SELECT b.tid, b.seq, b.seq
    FROM raw_mm_vmscan_memcg_reclaim_begin AS b
    WHERE EXISTS (SELECT 1 FROM raw_mm_vmscan_reclaim_writeback)
    UNION ALL
    SELECT e.tid, e.seq, e.seq
    FROM raw_mm_vmscan_memcg_reclaim_end AS e
    WHERE EXISTS (SELECT 1 FROM raw_mm_vmscan_reclaim_writeback)
  ),
  owned AS (
    SELECT
      s.border_seq,
      max(s.border_seq) OVER (
        PARTITION BY s.tid ORDER BY s.seq ROWS UNBOUNDED PRECEDING
      ) AS owner_seq
    FROM steps AS s
  )
SELECT b.seq
FROM (
  SELECT DISTINCT o.owner_seq FROM owned AS o WHERE o.border_seq IS NULL
) AS w
JOIN raw_mm_vmscan_memcg_reclaim_begin AS b ON b.seq = w.owner_seq;

-- @view     _busy_kind
-- @summary  What was busy at all, and how many of its kind. What is busy
--   because its disks are (wb_stack) is none of these.
-- @grain    resource, device; order resource, device
-- @column   resource TEXT as in wb_busy, but write
-- @column   device TEXT as in wb_busy
-- @column   first_ts INTEGER ns, start of the first stretch
-- @column   is_disk INTEGER 0: it is busy because its disks are
-- @column   devices_count INTEGER with the resource and is_disk = 1
-- @materialize
CREATE VIEW _busy_kind AS
WITH
  named AS (
    SELECT d.resource, d.device, min(d.from_ts) AS first_ts
    FROM wb_busy AS d
    WHERE d.resource <> 'write'
    GROUP BY d.resource, d.device
  ),
  told AS (
    SELECT
      d.*,
      NOT EXISTS (
        SELECT 1
        FROM wb_stack AS k
        JOIN named AS l ON l.device = k.disk
        WHERE k.bdi = d.device AND l.resource = d.resource
      ) AS is_disk
    FROM named AS d
  )
SELECT
  t.resource, t.device, t.first_ts, t.is_disk,
  sum(t.is_disk) OVER (PARTITION BY t.resource) AS devices_count
FROM told AS t;

-- @view     _stall_sync
-- @summary  Waits until dirty data is on the disk: in sync and fsync, or only
--   for a page under writeback, as truncate and whoever writes to it do.
-- @grain    wait for a page, in sync or in fsync; order wait_id
-- @key      wait_id
-- @column   sync_call TEXT the call that it was in, as in what of wb_wait; NULL
--   = for a page, in no call that events tell of
-- @column   is_failed INTEGER 1: that call returned an error of writing: what
--   it waited for is not on the disk
-- @source   fs/sync.c; mm/truncate.c truncate_inode_pages_range()
-- @materialize
CREATE VIEW _stall_sync AS
WITH
  calls AS (
    SELECT s.wait_id, s.tid, s.end_ts, s.what
    FROM wb_wait AS s
    WHERE s.kind IN ('sync', 'fsync')
  ),
  -- A call begins not later than the waits inside it, and is the last one that
  -- had begun: calls of a task do not overlap.
  inside AS (
    SELECT
      s.wait_id, s.tid, s.ts,
      max(
        CASE WHEN s.kind <> 'folio wait' THEN s.wait_id END
      ) OVER (PARTITION BY s.tid ORDER BY s.ts) AS call_id
    FROM wb_wait AS s
    WHERE s.kind IN ('sync', 'fsync', 'folio wait')
  ),
  failed AS (
    SELECT DISTINCT f.tid, f.end_ts
    FROM wb_call AS f
    WHERE write_error!(f.errno) IS NOT NULL
  )
SELECT
  i.wait_id,
  c.what AS sync_call,
  f.tid IS NOT NULL AS is_failed
FROM inside AS i
LEFT JOIN calls AS c
  ON c.wait_id = i.call_id AND (c.wait_id = i.wait_id OR c.end_ts > i.ts)
LEFT JOIN failed AS f ON f.tid = c.tid AND f.end_ts = c.end_ts;

-- @view     _stall_ended
-- @summary  What those who woke a task prove of its wait. Each sleep counts for
--   the innermost wait that it is in: its own, or the call around that.
-- @grain    wait with sleeps whose end was recorded; order wait_id
-- @key      wait_id
-- @column   wait_id INTEGER of wb_wait
-- @column   cause TEXT of wb_stall where another task woke it for the most
--   part, or the journal; NULL = neither
-- @column   known_ns INTEGER its sleeps whose end was recorded
-- @column   is_other INTEGER 1: no journal woke it for the most part
-- @column   is_proved INTEGER as in wb_stall
-- @column   waker TEXT as in wb_stall
-- @column   held_bdi TEXT as in wb_stall
-- @source   fs/super.c thaw_super(); mm/filemap.c generic_perform_write(),
--   which calls balance_dirty_pages() with the inode locked
-- @materialize
CREATE VIEW _stall_ended AS
WITH
  -- A call of the file system begins not later than the sleeps in it, and is
  -- the last one that had begun.
  steps AS (
    SELECT w.tid, w.ts, w.wait_id, w.end_ts, NULL AS seq
    FROM wb_wait AS w
    WHERE w.rank = 1 AND w.basis = 'events' AND w.end_ts IS NOT NULL
      AND EXISTS (SELECT 1 FROM wb_wait_end)
    UNION ALL
    SELECT e.tid, e.ts, NULL, e.end_ts, e.seq
    FROM wb_wait_end AS e
    WHERE e.wake_ts IS NOT NULL
  ),
  around AS (
    SELECT
      s.seq, s.tid, s.ts, s.end_ts,
      max(s.wait_id) OVER so_far AS call_id,
      max(CASE WHEN s.seq IS NULL THEN s.end_ts END) OVER so_far AS call_end_ts
    FROM steps AS s
    WINDOW so_far AS (
      PARTITION BY s.tid ORDER BY s.ts, s.seq ROWS UNBOUNDED PRECEDING
    )
  ),
  own AS (
    SELECT
      a.seq, a.tid, a.ts, a.end_ts,
      CASE WHEN a.call_end_ts > a.ts THEN a.call_id END AS call_id,
      max(w.wait_id) AS wait_id,
      max(w.rank) AS rank
    FROM around AS a
    LEFT JOIN wb_wait AS w ON w.seq = a.seq
    WHERE a.seq IS NOT NULL
    GROUP BY a.seq, a.tid, a.ts, a.end_ts, a.call_end_ts, a.call_id
  ),
  -- For how long the waker had slept in balance_dirty_pages() when the sleep
  -- began and ended; where an interrupt may have run in its place, it has to
  -- have done so until shortly before.
  marks AS (
    SELECT e.waker_tid AS tid, e.ts, e.seq, 0 AS is_end, NULL AS slept_ns,
      NULL AS bdi
    FROM wb_wait_end AS e
    WHERE coalesce(e.ender, 'task') = 'task' AND e.waker_tid IS NOT NULL
    UNION ALL
    SELECT e.waker_tid, e.wake_ts, e.seq, 1, NULL, NULL
    FROM wb_wait_end AS e
    WHERE coalesce(e.ender, 'task') = 'task' AND e.waker_tid IS NOT NULL
    UNION ALL
    SELECT p.tid, p.sleep_ts, NULL, NULL, p.slept_ns, p.bdi
    FROM wb_throttle_pause AS p
    WHERE p.slept_ns > 0 AND EXISTS (SELECT 1 FROM wb_wait_end)
  ),
  passed AS (
    SELECT
      m.seq, m.is_end, m.ts,
      max(m.ts + m.slept_ns) OVER so_far AS until_ts,
      total(m.slept_ns) OVER so_far
        - max(coalesce(max(m.ts + m.slept_ns) OVER so_far - m.ts, 0), 0)
        AS held_ns,
      max(m.bdi) OVER so_far AS bdi
    FROM marks AS m
    WINDOW so_far AS (
      PARTITION BY m.tid ORDER BY m.ts, m.seq ROWS UNBOUNDED PRECEDING
    )
  ),
  held AS (
    SELECT f.seq, t.held_ns - f.held_ns AS held_ns, t.bdi
    FROM passed AS f
    CROSS JOIN wb_rule AS v
    JOIN passed AS t ON t.seq = f.seq AND t.is_end = 1
    JOIN wb_wait_end AS e ON e.seq = f.seq
    WHERE f.is_end = 0
      AND t.held_ns > f.held_ns
      AND (e.ender = 'task' OR t.until_ts >= t.ts - v.run_slack_ns)
  ),
  by_ender AS (
    SELECT
      CASE WHEN o.rank >= 2 THEN o.wait_id ELSE coalesce(o.call_id, o.wait_id)
      END AS wait_id,
      e.ender,
      k.comm AS waker_comm,
      CASE WHEN e.ender = 'task' OR h.seq IS NOT NULL
        THEN task_name!(k)
      END AS waker,
      sum(e.end_ts - e.ts) AS slept_ns,
      total(h.held_ns) AS held_ns,
      max(h.bdi) AS held_bdi
    FROM own AS o
    JOIN wb_wait_end AS e ON e.seq = o.seq
    LEFT JOIN held AS h ON h.seq = o.seq
    LEFT JOIN wb_task AS k
      ON k.tid = e.waker_tid
      AND e.wake_seq >= k.from_seq AND e.wake_seq < k.until_seq
    WHERE e.ender IS NOT NULL OR h.seq IS NOT NULL
    GROUP BY 1, e.ender, k.comm, 4
  ),
  summed AS (
    SELECT
      b.wait_id,
      sum(b.slept_ns) AS known_ns,
      total(CASE b.ender WHEN 'journal' THEN b.slept_ns END) AS journal_ns,
      max(CASE WHEN b.waker IS NOT NULL THEN b.slept_ns END) AS task_ns
    FROM by_ender AS b
    WHERE b.wait_id IS NOT NULL
    GROUP BY b.wait_id
  ),
  judged AS (
    SELECT
      s.wait_id, s.known_ns,
      s.journal_ns >= v.most_ratio * s.known_ns AS is_journal,
      t.held_ns >= v.most_ratio * t.slept_ns AS is_held,
      t.waker, t.waker_comm, t.held_bdi,
      t.ender IS NOT NULL AS is_told
    FROM summed AS s
    CROSS JOIN wb_rule AS v
    LEFT JOIN by_ender AS t
      ON t.wait_id = s.wait_id AND t.waker IS NOT NULL
      AND t.slept_ns = s.task_ns AND t.slept_ns >= v.most_ratio * s.known_ns
  )
SELECT
  j.wait_id,
  CASE
    WHEN j.is_journal THEN 'journal commit'
    WHEN j.is_held THEN 'held by a throttled task'
    WHEN j.waker_comm IN ('fsfreeze', 'dmsetup', 'lvcreate',
      'lvm', 'lvconvert', 'qemu-ga') THEN 'frozen file system'
    WHEN j.is_told AND j.waker IS NOT NULL THEN 'held by another task'
  END AS cause,
  j.known_ns,
  NOT j.is_journal AS is_other,
  j.is_journal OR (j.is_told AND j.waker IS NOT NULL) AS is_proved,
  CASE WHEN NOT j.is_journal THEN j.waker END AS waker,
  CASE WHEN j.is_held THEN j.held_bdi END AS held_bdi
FROM judged AS j;

-- @view     _stall_reason
-- @summary  What a task waited for outside of throttling, where what it did
--   right before tells: a read that it had given to a disk was in flight for
--   half of the sleep or more; or reclaim of its memory cgroup had just ended,
--   and it slept for longer than memory.high lets a task go without.
-- @grain    such a wait, also one that known waits explain; order wait_id
-- @key      wait_id
-- @column   reason TEXT read or memory.high; a read goes before
-- @column   device TEXT of the last such read, major:minor; else NULL
-- @source   mm/filemap.c filemap_update_page(), which sleeps for readahead,
--   too; mm/memcontrol.c mem_cgroup_handle_over_high(): behind its reclaim a
--   task sleeps for up to 2 s, and not at all for HZ / 100 jiffies and less
-- @materialize
CREATE VIEW _stall_reason AS
WITH
  asked AS MATERIALIZED (
    SELECT w.wait_id, w.seq, w.ts, w.end_ts, w.tid
    FROM wb_wait AS w
    WHERE w.kind = 'blocked outside throttling'
      AND w.basis = 'sched'
      -- Nothing is read where nobody asks.
      AND EXISTS (SELECT 1 FROM wb_wait_end)
  ),
  steps AS (
    SELECT
      a.tid, a.seq, a.ts, a.end_ts, a.wait_id,
      NULL AS read_seq,
      NULL AS read_end_ts,
      NULL AS reclaim_end_ts
    FROM asked AS a
    UNION ALL
    SELECT r.tid, r.seq, r.ts, NULL, NULL, r.seq, r.end_ts, NULL
    FROM wb_wait_request AS r
    WHERE r.op = 'read'
      AND r.tid IN (SELECT a.tid FROM asked AS a)
      AND EXISTS (SELECT 1 FROM asked)
    UNION ALL
    SELECT m.tid, m.seq, m.ts, NULL, NULL, NULL, NULL, m.end_ts
    FROM wb_wait AS m
    WHERE m.kind = 'memcg reclaim'
      AND m.end_ts IS NOT NULL
      AND m.tid IN (SELECT a.tid FROM asked AS a)
      AND EXISTS (SELECT 1 FROM asked)
  ),
  followed AS (
    SELECT
      s.wait_id, s.ts, s.end_ts,
      max(s.read_seq) OVER so_far AS read_seq,
      max(s.read_end_ts) OVER so_far AS read_end_ts,
      max(s.reclaim_end_ts) OVER so_far AS reclaim_end_ts
    FROM steps AS s
    WINDOW so_far AS (
      PARTITION BY s.tid ORDER BY s.seq ROWS UNBOUNDED PRECEDING
    )
  ),
  judged AS (
    SELECT
      f.wait_id, f.read_seq,
      coalesce(
        min(f.read_end_ts, f.end_ts) - f.ts
          >= v.most_ratio * (f.end_ts - f.ts), 0
      ) AS is_read,
      f.end_ts - f.ts > v.penalty_least_ns
        AND f.ts - f.reclaim_end_ts BETWEEN 0 AND v.run_slack_ns AS is_high
    FROM followed AS f
    CROSS JOIN wb_rule AS v
    WHERE f.wait_id IS NOT NULL
  )
SELECT
  j.wait_id,
  CASE WHEN j.is_read THEN 'read' ELSE 'memory.high' END AS reason,
  CASE WHEN j.is_read THEN r.device END AS device
FROM judged AS j
LEFT JOIN wb_wait_request AS r ON r.seq = j.read_seq
WHERE j.is_read OR j.is_high;

-- @view     _stall_unknown
-- @summary  Bdis whose writers were throttled and that have no block request,
--   while other devices wrote: they lie on others (LVM, dm-crypt, md, btrfs),
--   and nothing tells on which. NFS and FUSE (0:45) have no disk; disks of
--   SCSI, SATA and USB, SD cards and loop devices lie on none.
-- @grain    bdi; order bdi
-- @key      bdi
-- @column   disk TEXT major:minor of what wrote most
-- @column   disks TEXT all that wrote, in words
-- @source   Documentation/admin-guide/devices.txt: majors 7, 8, 65-71, 128-135,
--   179
-- @materialize
CREATE VIEW _stall_unknown AS
WITH
  throttled AS MATERIALIZED (
    SELECT DISTINCT c.bdi
    FROM wb_throttle_cause AS c
    WHERE c.bdi GLOB 'btrfs-[0-9]*'
      OR (
        c.bdi GLOB '[1-9]*:[0-9]*'
        AND c.bdi NOT GLOB '[78]:*'
        AND c.bdi NOT GLOB '6[5-9]:*'
        AND c.bdi NOT GLOB '7[01]:*'
        AND c.bdi NOT GLOB '12[89]:*'
        AND c.bdi NOT GLOB '13[0-5]:*'
        AND c.bdi NOT GLOB '179:*'
      )
  ),
  -- Nothing is read where nobody asks.
  wrote AS (
    SELECT
      device!(c) AS device,
      row_number() OVER (ORDER BY sum(c.nr_sector) DESC, device!(c)) AS place
    FROM raw_block_rq_complete AS c
    WHERE c.op = 'write' AND EXISTS (SELECT 1 FROM throttled)
    GROUP BY 1
  ),
  named AS (
    SELECT
      count(*) AS disks_count,
      max(CASE w.place WHEN 1 THEN w.device END) AS disk,
      max(CASE w.place WHEN 2 THEN w.device END) AS second
    FROM wrote AS w
  )
SELECT
  t.bdi, n.disk,
  n.disk || CASE n.disks_count
    WHEN 1 THEN ''
    WHEN 2 THEN ' and ' || n.second
    ELSE ', ' || n.second || ' and ' || (n.disks_count - 2) || ' more'
  END AS disks
FROM throttled AS t
CROSS JOIN named AS n
WHERE n.disks_count > 0
  AND t.bdi NOT IN (SELECT k.bdi FROM wb_stack AS k)
  AND t.bdi NOT IN (
    SELECT b.device FROM wb_busy AS b WHERE b.resource = 'device'
  )
  AND t.bdi NOT IN (SELECT w.device FROM wrote AS w);
