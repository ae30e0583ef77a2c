-- SPDX-License-Identifier: Apache-2.0
-- Time that tasks of users lost, by finding (sql/findings).

-- @view     wb_loss
-- @summary  Waits of tasks, each with the finding that tells of it. No wait is
--   told of twice, so what findings cost can be added up.
-- @grain    wait of a task that is no kernel thread and none of the recorder,
--   and those of flushers for a journal; order wait_id
-- @key      wait_id
-- @optional writeback:balance_dirty_pages, writeback:global_dirty_state,
--   block:block_rq_issue, block:block_rq_complete, sched:sched_switch
-- @column   wait_id INTEGER of wb_stall
-- @column   dur INTEGER ns, its own time
-- @column   comm TEXT its name
-- @column   task_id INTEGER of wb_task
-- @column   kind TEXT as in wb_wait
-- @column   cause TEXT as in wb_stall
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; of memcg reclaim, and
--   of a throttle inside, the one that the task writes from, if it is one
-- @column   finding TEXT rule of sql/findings that tells of it; NULL = none
-- @column   device_ratio REAL share of dur in which the device had requests;
--   NULL = not recorded
-- @column   disk_bytes_per_s REAL what the device writes while it is busy
-- @column   sync_call TEXT as in wb_stall
-- @column   busy_ratio REAL share of dur in which the device was busy, by its
--   requests or the samples of its counters; 0 where neither was recorded
-- @column   wrote_disk TEXT where nothing tells on which disks the device lies:
--   as in wb_stall
-- @column   wrote_disks TEXT likewise
-- @column   is_proved INTEGER as in wb_stall
-- @column   waker TEXT as in wb_stall
-- @column   held_bdi TEXT as in wb_stall
-- @column   asleep_bdi TEXT device that its task waited longest for, in the
--   time of interest
-- @column   asleep_ns INTEGER all waits of its task then; NULL = none
-- @column   life_ns INTEGER of its task: from its first event to its last, or
--   to the end of its last wait
-- @column   asleep_ratio REAL share of life_ns that its task was asleep
-- @column   asleep_busy_ratio REAL busy_ratio of all waits of its task
-- @source   docs/findings.md
-- @materialize
-- @cost     82
CREATE VIEW wb_loss AS
WITH
  unknown AS (
    SELECT
      s.bdi,
      min(s.wrote_disk) AS wrote_disk,
      min(s.wrote_disks) AS wrote_disks
    FROM wb_stall AS s
    WHERE s.wrote_disks IS NOT NULL
    GROUP BY s.bdi
  ),
  -- Whose writes are mostly submitted by tasks themselves.
  past AS MATERIALIZED (
    SELECT r.device
    FROM wb_wait_request AS r
    CROSS JOIN wb_rule AS v
    LEFT JOIN wb_task AS t ON task_of!(t, r)
    WHERE r.op = 'write'
      AND r.device NOT IN (
        SELECT s.area_bdi FROM wb_swap AS s WHERE s.area_bdi IS NOT NULL
      )
    GROUP BY r.device, v.most_ratio, v.own_least_bytes
    HAVING total(CASE WHEN way!(r, t) = 'itself' THEN r.bytes END)
      >= max(v.own_least_bytes, v.most_ratio * sum(r.bytes))
  ),
  judged AS MATERIALIZED (
    SELECT
      t.wait_id, t.ts, t.dur, t.tid, t.comm, t.task_id, t.kind, t.cause,
      t.lost_bdi AS bdi,
      t.lost_cgroup_ino AS cgroup_ino,
      CASE
        -- The same kworker may be that of a loop device, which calls fsync.
        WHEN t.is_flusher AND t.kind <> 'fsync' THEN 'flusher_waits_journal'
        WHEN t.kind = 'throttle' THEN
          CASE
            WHEN n.bdi IS NOT NULL
              AND t.throttle_finding IN ('slow_device', 'cause_unknown')
              THEN 'disk_unknown'
            ELSE t.throttle_finding
          END
        WHEN t.is_asked THEN NULL
        WHEN t.is_memcg THEN 'small_memcg_limit'
        WHEN t.kind IN ('direct reclaim', 'reclaim throttle') THEN
          CASE
            WHEN t.is_shared_swap = 1 THEN 'swap_competes'
            WHEN t.is_meeting_dirty = 1 OR t.cause = 'writeback behind reclaim'
              THEN 'reclaim_meets_dirty'
            ELSE 'direct_reclaim'
          END
        WHEN t.is_failed = 1 THEN 'failed_writes'
        WHEN t.outside_reason = 'read' THEN 'disk_reads'
        WHEN t.outside_reason = 'memory.high' AND t.cause = 'unknown'
          THEN 'memcg_high'
        WHEN t.cause = 'held by a throttled task' THEN 'throttled_holder'
        WHEN t.cause = 'frozen file system' THEN 'frozen'
        WHEN t.cause = 'held by another task' THEN 'held_by_task'
        WHEN t.lost_bdi IN (SELECT p.device FROM past AS p)
          AND t.kind IN ('fsync', 'sync', 'folio wait', 'write')
          AND t.cause IN ('journal commit', 'device latency')
          THEN 'past_page_cache'
        WHEN t.cause IN ('journal commit', 'journal full') THEN
          CASE WHEN t.is_storm = 1 THEN 'fsync_storm' ELSE 'journal_commit' END
        WHEN t.cause = 'server latency' THEN 'slow_server'
        -- Folios of the swap cache have no bdi.
        WHEN t.is_swapping = 1 AND t.is_on_swap_device
          AND t.kind IN ('folio wait', 'block queue')
          THEN 'swap_competes'
        -- Who calls that for each piece of what it writes goes at the speed of
        -- the disk.
        WHEN t.sync_call = 'sync_file_range' AND t.dur <= v.little_most_ns
          THEN 'write_behind'
        WHEN t.kind IN ('fsync', 'sync', 'folio wait') THEN
          CASE
            -- An idle disk commits at once: something above it holds it back.
            WHEN t.cause = 'unknown' AND t.device_ratio < v.most_ratio
              THEN 'many_seconds'
            WHEN t.is_storm = 1 AND t.kind <> 'sync' THEN 'fsync_storm'
            ELSE 'many_seconds'
          END
        WHEN t.is_inside OR t.kind <> 'block queue' THEN NULL
        -- Metadata that a task writes itself is no direct I/O.
        WHEN t.what GLOB 'block_rq *W*' AND t.what NOT GLOB 'block_rq *M*'
          AND t.what NOT GLOB 'block_rq *F*' THEN 'direct_writes'
        WHEN t.what GLOB 'block_rq *R*' AND t.what NOT GLOB 'block_rq *[WD]*'
          THEN 'disk_reads'
      END AS finding,
      t.holder_bdi, t.holder_cgroup_ino, t.own_share_ratio,
      t.holder_share_ratio, t.rival_cgroup_ino, t.runs_count, t.device_ratio,
      t.nr_writeback, t.disk_bytes_per_s, t.call_seq, t.sync_call,
      t.is_proved, t.waker, t.held_bdi,
      -- A wait for a request of its own has one.
      CASE t.kind WHEN 'block queue' THEN 1.0
        ELSE coalesce(t.device_ratio, k.busy_ratio, 0.0)
      END AS busy_ratio,
      n.wrote_disk, n.wrote_disks
    FROM _loss_told AS t
    CROSS JOIN wb_rule AS v
    LEFT JOIN _device_pace AS k ON k.bdi = t.lost_bdi
    LEFT JOIN unknown AS n ON n.bdi = t.lost_bdi
  ),
  lost AS (
    SELECT
      j.task_id, j.bdi,
      sum(j.dur) AS dur,
      total(j.dur * j.busy_ratio) AS busy_ns,
      min(j.ts) AS first_ts,
      max(j.ts + j.dur) AS last_ts
    FROM judged AS j
    CROSS JOIN wb_bounds AS b
    WHERE j.finding IS NOT 'flusher_waits_journal' AND in_time!(j.ts, b)
    GROUP BY j.task_id, j.bdi
  ),
  ranked AS (
    SELECT
      l.*,
      row_number() OVER (
        PARTITION BY l.task_id ORDER BY l.dur DESC, l.bdi
      ) AS place
    FROM lost AS l
  ),
  asleep AS MATERIALIZED (
    SELECT
      l.task_id,
      max(CASE l.place WHEN 1 THEN l.bdi END) AS bdi,
      sum(l.dur) AS asleep_ns,
      sum(l.busy_ns) / nullif(sum(l.dur), 0) AS busy_ratio,
      -- A task without an event of its own is known by its waits only.
      CASE WHEN k.events_count = 0 THEN u.last_ts - u.first_ts
        ELSE max(max(l.last_ts), t.last_ts) - min(min(l.first_ts), t.first_ts)
      END AS life_ns
    FROM ranked AS l
    JOIN wb_task AS t ON t.task_id = l.task_id
    CROSS JOIN wb_units AS u
    LEFT JOIN raw_task AS k ON k.tid = t.tid
    GROUP BY l.task_id
  )
SELECT
  j.wait_id, j.ts, j.dur, j.tid, j.comm, j.task_id, j.kind, j.cause, j.bdi,
  j.cgroup_ino, j.finding, j.holder_bdi, j.holder_cgroup_ino,
  j.own_share_ratio, j.holder_share_ratio, j.rival_cgroup_ino, j.runs_count,
  j.device_ratio, j.nr_writeback, j.disk_bytes_per_s, j.call_seq, j.sync_call,
  j.busy_ratio, j.wrote_disk, j.wrote_disks,
  j.is_proved, j.waker, j.held_bdi,
  a.bdi AS asleep_bdi,
  a.asleep_ns, a.life_ns,
  1.0 * a.asleep_ns / nullif(a.life_ns, 0) AS asleep_ratio,
  a.busy_ratio AS asleep_busy_ratio
FROM judged AS j
LEFT JOIN asleep AS a ON a.task_id = j.task_id;

-- @view     _loss_told
-- @summary  Waits by which somebody may lose time, with all that a rule is
--   chosen by.
-- @grain    as wb_loss
-- @column   is_inside INTEGER 1: inside reclaim of a memory cgroup or a sync
-- @column   is_memcg INTEGER 1: inside that reclaim
-- @column   is_asked INTEGER 1: of memory.reclaim, which somebody asked for
-- @column   throttle_finding TEXT of a throttle: rule that tells of it
-- @column   device_ratio REAL as in wb_loss
-- @column   is_storm INTEGER 1: of its device fsync is called again and again
-- @column   lost_bdi TEXT bdi of wb_loss
-- @column   lost_cgroup_ino INTEGER cgroup_ino of wb_loss
-- @column   is_shared_swap INTEGER is_shared of wb_swap
-- @column   is_meeting_dirty INTEGER 1: reclaim met dirty pages
-- @column   is_on_swap_device INTEGER 1: its device is one that swap lies on
CREATE VIEW _loss_told AS
WITH
  -- Throttled inside the reclaim of a memory cgroup: that of its own limit.
  -- A request inside a sync is part of that.
  inside AS MATERIALIZED (
    SELECT
      i.wait_id,
      i.kind <> 'block queue' AS is_memcg,
      i.cause = 'memory.reclaim'
        OR coalesce(i.kind = 'reclaim throttle' AND i.ts < i.asked_until_ts, 0)
        AS is_asked
    FROM (
      SELECT
        s.wait_id, s.ts, s.kind, s.cause,
        max(CASE s.kind WHEN 'memcg reclaim' THEN s.ts + s.span_ns END)
          OVER so_far AS until_ts,
        max(CASE s.cause WHEN 'memory.reclaim' THEN s.ts + s.span_ns END)
          OVER so_far AS asked_until_ts,
        max(CASE WHEN s.kind IN ('sync', 'fsync') THEN s.ts + s.span_ns END)
          OVER so_far AS synced_until_ts
      FROM wb_stall AS s
      WHERE s.kind IN (
        'memcg reclaim', 'reclaim throttle', 'sync', 'fsync', 'block queue'
      )
      WINDOW so_far AS (PARTITION BY s.tid ORDER BY s.ts)
    ) AS i
    WHERE i.kind = 'memcg reclaim'
      OR (i.kind = 'reclaim throttle' AND i.ts < i.until_ts)
      OR (i.kind = 'block queue' AND i.ts < i.synced_until_ts)
  ),
  -- Its journal is asked to commit again and again; sync_file_range asks none.
  storm AS (
    SELECT
      s.bdi AS device,
      count(*) * u.second_ns
        >= v.storm_per_s * (b.last_ts - b.first_ts) AS is_storm
    FROM wb_stall AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_rule AS v
    CROSS JOIN wb_units AS u
    WHERE s.kind = 'fsync'
      AND s.what <> 'sync_file_range'
      AND s.bdi IS NOT NULL
    GROUP BY s.bdi, u.second_ns, v.storm_per_s, b.last_ts, b.first_ts
  )
SELECT
  p.wait_id, p.ts, p.dur, p.tid, p.comm, p.task_id, p.kind, p.cause, p.what,
  p.is_failed, p.sync_call, p.outside_reason, w.is_flusher,
  p.is_proved, p.waker, p.held_bdi,
  i.wait_id IS NOT NULL AS is_inside,
  i.is_memcg, i.is_asked,
  t.finding AS throttle_finding,
  t.holder_bdi, t.holder_cgroup_ino, t.own_share_ratio,
  t.holder_share_ratio, t.rival_cgroup_ino, t.runs_count,
  coalesce(t.device_ratio, p.device_ratio) AS device_ratio,
  t.nr_writeback, t.call_seq, d.disk_bytes_per_s, j.is_storm,
  CASE
    WHEN i.is_memcg THEN w.bdi
    WHEN p.kind IN ('direct reclaim', 'reclaim throttle') THEN p.bdi
    WHEN p.outside_reason = 'read' THEN p.read_device
    -- Nothing tells that it waited for a disk at all.
    WHEN p.kind = 'blocked outside throttling' AND p.cause = 'unknown'
      THEN p.bdi
    -- It waited for a task.
    WHEN p.waker IS NOT NULL THEN coalesce(p.held_bdi, p.bdi)
    -- With one disk there is no other that it can have waited for.
    ELSE coalesce(p.bdi, o.bdi)
  END AS lost_bdi,
  CASE WHEN i.is_memcg THEN w.cgroup_ino ELSE p.cgroup_ino END
    AS lost_cgroup_ino,
  m.is_swapping,
  m.is_shared AS is_shared_swap,
  -- The machine did; of a reclaim whose scans are told, it itself.
  coalesce(r.is_dirty, g.is_meeting_dirty) AS is_meeting_dirty,
  instr(m.bdis, ' ' || p.bdi || ' ') > 0
    OR p.bdi = '(unknown)' AS is_on_swap_device
FROM wb_stall AS p
CROSS JOIN _loss_task AS w ON w.task_id = p.task_id
CROSS JOIN wb_swap AS m
CROSS JOIN reclaim_run AS g
LEFT JOIN inside AS i ON i.wait_id = p.wait_id
LEFT JOIN _loss_throttle AS t ON p.kind = 'throttle' AND t.seq = p.ref_seq
LEFT JOIN _loss_reclaim AS r
  ON p.kind = 'direct reclaim' AND r.seq = p.ref_seq
LEFT JOIN wb_disk_rate AS d ON d.bdi = p.bdi
LEFT JOIN wb_disk_rate AS o ON o.is_only = 1
LEFT JOIN storm AS j ON j.device = coalesce(p.bdi, o.bdi)
WHERE p.dur > 0
  AND (
    w.is_kernel = 0
    OR (w.is_flusher = 1 AND p.kind <> 'fsync'
      AND p.cause IN ('journal commit', 'journal full'))
  )
  -- Of the recorder's pauses recorder_writes tells.
  AND (
    w.is_recorder = 0
    OR (p.kind = 'throttle' AND p.comm IN ('trace-cmd', 'wbscope'))
  );

-- @view     _loss_throttle
-- @summary  Each sleep of a throttled task with the finding that tells of it:
--   the first rule that fits.
-- @grain    balance_dirty_pages event that a task slept after; order seq
-- @key      seq
-- @column   seq INTEGER of the event
-- @column   finding TEXT rule
-- @column   holder_bdi TEXT throttle: of the wb, other than the task's own,
--   that held most of the pool; NULL = none is known
-- @column   holder_cgroup_ino INTEGER of that wb
-- @column   own_share_ratio REAL throttle: of the pool, held by the task's wb
-- @column   holder_share_ratio REAL throttle: of the pool, held by the holder;
--   0 = none is known
-- @column   rival_cgroup_ino INTEGER as in wb_pool
-- @column   runs_count INTEGER as in wb_pool
-- @column   device_ratio REAL as in wb_loss
-- @column   nr_writeback INTEGER throttle: pages under writeback when it was
--   decided; NULL = not recorded
-- @column   call_seq INTEGER throttle: call of balance_dirty_pages() that it is
--   part of, by its first event
-- @materialize
-- @cost     160
CREATE VIEW _loss_throttle AS
WITH
  first_of_wb AS (
    SELECT c.bdi, coalesce(c.cgroup_ino, 1) AS cgroup_ino, min(c.ts) AS ts
    FROM wb_throttle_cause AS c
    GROUP BY c.bdi, coalesce(c.cgroup_ino, 1)
  ),
  -- Whose pages filled its pool, and how busy its disk was.
  placed AS MATERIALIZED (
    SELECT
      c.seq, c.ts, c.bdi,
      coalesce(c.cgroup_ino, 1) AS cgroup_ino,
      c.cause, c.avg_write_bw_bytes_per_s, o.is_innocent, o.own_share_ratio,
      o.holder_bdi, o.holder_cgroup_ino, o.holder_share_ratio, o.has_rival,
      o.rival_cgroup_ino, o.is_written, o.still_ns, o.runs_count,
      -- What compresses pages is not idle.
      CASE WHEN d.reached_ratio IS NULL AND c.bdi IN (
        SELECT b.device FROM wb_busy AS b WHERE b.resource = 'device'
      ) THEN
        1.0 * (
          busy_until!(c.sleep_ts + c.slept_ns, 'device', c.bdi)
            - busy_until!(c.sleep_ts, 'device', c.bdi)
        ) / c.slept_ns
      END AS device_ratio,
      CASE WHEN c.ts < d.changed_ts THEN d.before_bytes_per_s
        ELSE coalesce(d.after_bytes_per_s, d.disk_bytes_per_s)
      END AS disk_bytes_per_s,
      -- Its requests tell nothing of the pages that it compresses.
      d.reached_ratio IS NOT NULL AS is_packed,
      c.ts - f.ts AS since_first_ns,
      c.slept_ns, c.call_seq, c.limit_bytes, c.dirty_bytes, c.wb_dirty_bytes,
      -- The call itself asked for it shortly before its event.
      (
        SELECT g.nr_writeback
        FROM raw_global_dirty_state AS g
        WHERE g.seq < c.seq AND g.seq >= c.seq - 256 AND g.tid = c.tid
        ORDER BY g.seq DESC
        LIMIT 1
      ) AS nr_writeback
    FROM wb_throttle_cause AS c
    CROSS JOIN wb_pool AS o ON o.seq = c.seq
    LEFT JOIN wb_disk_rate AS d ON d.bdi = c.bdi
    LEFT JOIN first_of_wb AS f
      ON f.bdi = c.bdi AND f.cgroup_ino = coalesce(c.cgroup_ino, 1)
  ),
  -- The file of a loop device lies there: only its threads are throttled.
  below_loop AS (
    SELECT c.bdi
    FROM wb_throttle_cause AS c
    JOIN wb_task AS k ON k.task_id = c.task_id
    GROUP BY c.bdi
    HAVING min(k.comm GLOB 'kworker/*' OR k.comm GLOB 'loop[0-9]*') = 1
  ),
  shown AS (
    SELECT
      p.bdi,
      sum(p.device_ratio * p.slept_ns)
        / sum(CASE WHEN p.device_ratio IS NOT NULL THEN p.slept_ns END)
        AS device_ratio
    FROM placed AS p
    GROUP BY p.bdi
  )
SELECT
  p.seq,
  CASE
    WHEN p.is_impossible THEN 'impossible_count'
    -- The wb's own limit, whatever the machine's pool holds and the disk does.
    WHEN p.cause = 'strictlimit' THEN
      CASE WHEN p.is_unwritten THEN 'no_writeback' ELSE 'strict_limit' END
    WHEN p.cause = 'memcg domain' THEN
      CASE
        WHEN p.is_unwritten THEN 'no_writeback'
        WHEN p.device_ratio < v.most_ratio AND p.nr_writeback > 0
          THEN 'device_idle'
        ELSE 'small_memcg_limit'
      END
    -- What a higher limit let gather is written first, whoever dirtied it.
    WHEN y.seq IS NOT NULL THEN 'limit_changed'
    -- Alone it would not wait, or its own disk could write.
    -- The pages in the file of a loop device are its own once more.
    WHEN p.own_share_ratio < v.most_ratio
      AND (p.is_innocent = 1 OR p.device_ratio < v.most_ratio)
      AND NOT (
        p.bdi GLOB '7:*'
        AND p.holder_bdi IN (SELECT o.bdi FROM below_loop AS o)
      ) THEN
      CASE
        WHEN coalesce(p.holder_bdi = p.bdi, p.has_rival) THEN 'cgroup_starves'
        ELSE 'slow_bdi_starves'
      END
    -- Nearly all of the pool was given to the block layer, and not to the disk.
    WHEN p.device_ratio < v.most_ratio
      AND p.nr_writeback * u.page_bytes > p.limit_bytes * v.handed_ratio
      THEN 'device_idle'
    WHEN p.limit_bytes * u.second_ns < p.disk_bytes_per_s * v.pause_max_ns
      THEN 'small_limit'
    WHEN p.is_unwritten THEN 'no_writeback'
    WHEN p.device_ratio < v.most_ratio AND p.nr_writeback > 0
      THEN 'device_idle'
    WHEN p.since_first_ns < v.new_bdi_ns
      AND p.avg_write_bw_bytes_per_s > p.disk_bytes_per_s * v.overrated_factor
      THEN 'new_bdi_bandwidth'
    -- A moment without a request is none of an idle device.
    WHEN p.is_packed
      OR p.device_ratio >= v.most_ratio
      OR coalesce(s.device_ratio, k.busy_ratio, k.pace_ratio) >= v.most_ratio
      THEN 'slow_device'
    ELSE 'cause_unknown'
  END AS finding,
  p.holder_bdi, p.holder_cgroup_ino, p.own_share_ratio, p.holder_share_ratio,
  p.rival_cgroup_ino, p.runs_count, p.device_ratio, p.nr_writeback, p.call_seq
FROM (
  SELECT
    a.*,
    a.dirty_bytes < 0 OR a.wb_dirty_bytes < 0 OR a.limit_bytes < 0
      OR a.dirty_bytes > e.memory_bytes AS is_impossible,
    max(
      coalesce(a.nr_writeback, a.is_written),
      coalesce(a.device_ratio, a.is_written)
    ) = 0
      -- Pages are with it, and it completes none.
      OR coalesce(a.still_ns >= u.worth_most_ns, 0)
        AND a.device_ratio IS NULL AS is_unwritten
  FROM placed AS a
  CROSS JOIN wb_units AS e
  CROSS JOIN wb_rule AS u
) AS p
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u
LEFT JOIN shown AS s ON s.bdi = p.bdi
LEFT JOIN _device_pace AS k ON k.bdi = p.bdi
LEFT JOIN wb_limit_change AS y ON p.ts >= y.ts AND p.ts < y.drained_ts;

-- @view     _flusher
-- @summary  Threads that write dirty pages back. Where the events of that work
--   were not recorded, any kworker may, but for those of the block layer, whose
--   names end in H.
-- @grain    thread; order tid
-- @column   tid INTEGER kworker
-- @source   fs/fs-writeback.c wb_workfn(); block/blk-core.c kblockd is
--   WQ_HIGHPRI; kernel/workqueue.c format_worker_id()
-- @materialize
CREATE VIEW _flusher AS
WITH
  works AS (
    SELECT s.tid FROM raw_writeback_start AS s
    UNION
    SELECT w.tid FROM raw_writeback_written AS w
    UNION
    SELECT e.tid FROM raw_writeback_exec AS e
  )
SELECT k.tid
FROM raw_task AS k
WHERE k.comm GLOB 'kworker/*'
  AND (
    k.tid IN (SELECT w.tid FROM works AS w)
    OR (NOT EXISTS (SELECT 1 FROM works) AND k.comm NOT GLOB 'kworker/*:*H*')
  );

-- @view     _device_pace
-- @summary  Whether the device of throttled tasks gave what it can, where its
--   requests do not tell: by the samples of its counters, or of the busiest
--   disk below it, and by what the kernel estimates that it writes.
-- @grain    bdi; order bdi
-- @key      bdi
-- @column   bdi TEXT backing device
-- @column   busy_ratio REAL of the time between samples, with a request; NULL =
--   no samples
-- @column   pace_ratio REAL what its throttled tasks dirtied, over the mean of
--   the kernel's estimate (avg_write_bw); NULL = one is not recorded, or for
--   less than a second
-- @source   mm/page-writeback.c wb_update_write_bandwidth()
-- @materialize
CREATE VIEW _device_pace AS
WITH
  sampled AS (
    SELECT s.device, 1.0 * sum(s.busy_ns) / sum(s.dur_ns) AS ratio
    FROM wb_usage AS s
    WHERE s.source = 'block' AND s.device IS NOT NULL
    GROUP BY s.device
  ),
  busy AS (
    SELECT o.bdi, max(o.ratio) AS ratio
    FROM (
      SELECT s.device AS bdi, s.ratio FROM sampled AS s
      UNION ALL
      SELECT k.bdi, s.ratio
      FROM wb_stack AS k
      JOIN sampled AS s ON s.device = k.disk
    ) AS o
    GROUP BY o.bdi
  ),
  estimated AS (
    SELECT b.bdi, avg(b.avg_write_bw_bytes_per_s) AS bytes_per_s
    FROM wb_bandwidth AS b
    -- Where requests tell, all events need not be read.
    WHERE b.bdi NOT IN (
      SELECT o.device FROM wb_busy AS o WHERE o.resource = 'device'
    )
    GROUP BY b.bdi
  ),
  dirtied AS (
    SELECT
      r.bdi,
      -- Later events of a call have the pages of the first once more.
      1.0 * sum(CASE WHEN r.paused > 0 THEN 0 ELSE r.dirtied END)
        * u.page_bytes * u.second_ns / (max(r.ts) - min(r.ts)) AS bytes_per_s
    FROM estimated AS e
    CROSS JOIN wb_units AS u
    CROSS JOIN raw_balance_dirty_pages AS r ON r.bdi = e.bdi
    GROUP BY r.bdi, u.page_bytes, u.second_ns
    HAVING max(r.ts) - min(r.ts) >= u.second_ns
  )
SELECT
  n.bdi,
  b.ratio AS busy_ratio,
  d.bytes_per_s / nullif(e.bytes_per_s, 0) AS pace_ratio
FROM (
  SELECT b.bdi FROM busy AS b
  UNION
  SELECT e.bdi FROM estimated AS e
) AS n
LEFT JOIN busy AS b ON b.bdi = n.bdi
LEFT JOIN estimated AS e ON e.bdi = n.bdi
LEFT JOIN dirtied AS d ON d.bdi = n.bdi;

-- @view     _loss_task
-- @summary  Tasks by whose waits somebody may lose time, and the one wb that
--   each writes to.
-- @grain    task under a name; order task_id
-- @key      task_id
-- @column   is_flusher INTEGER 1: writes dirty pages back
-- @column   is_recorder INTEGER 1: of the recorder: what it waited for, nobody
--   lost. Runs without the file recorder_tasks have none
-- @column   cgroup_ino INTEGER the memory cgroup that it writes from, if it is
--   one; not looked up where none was reclaimed
-- @column   bdi TEXT that it writes to from there
-- @source   docs/record.md
-- @materialize
CREATE VIEW _loss_task AS
WITH
  member AS (
    SELECT
      k.task_id,
      min(coalesce(t.cgroup_ino, g.cgroup_ino)) AS cgroup_ino,
      min(t.bdi) AS bdi
    FROM raw_balance_dirty_pages AS t
    LEFT JOIN wb_cgroup AS g ON g.path = t.cgroup_path
    CROSS JOIN wb_task AS k
      ON task_of!(k, t)
    WHERE is_step!(t) AND coalesce(t.cgroup_ino, g.cgroup_ino) > 1
      -- Nothing is read where nobody asks.
      AND EXISTS (SELECT 1 FROM wb_wait AS s WHERE s.kind = 'memcg reclaim')
    GROUP BY k.task_id
    HAVING min(coalesce(t.cgroup_ino, g.cgroup_ino))
      = max(coalesce(t.cgroup_ino, g.cgroup_ino))
  ),
  recorder AS MATERIALIZED (
    SELECT ' ' || replace(f.text, char(10), ' ') || ' ' AS tids
    FROM raw_text_file AS f
    WHERE f.name = 'recorder_tasks'
  )
SELECT
  k.task_id, k.is_kernel,
  k.tid IN (SELECT f.tid FROM _flusher AS f) AS is_flusher,
  EXISTS (
    SELECT 1 FROM recorder AS r WHERE instr(r.tids, ' ' || k.tid || ' ') > 0
  ) AS is_recorder,
  m.cgroup_ino, m.bdi
FROM wb_task AS k
LEFT JOIN member AS m ON m.task_id = k.task_id;

-- @view     _loss_reclaim
-- @summary  Whether each direct reclaim met dirty pages, by the scans in it;
--   asked only where the machine did: reclaim_work, which knows more, takes
--   long, and every verdict would wait for it.
-- @grain    direct reclaim whose scans were recorded; order seq
-- @key      seq
-- @column   seq INTEGER of mm_vmscan_direct_reclaim_begin
-- @column   is_dirty INTEGER 1: so much of what it scanned was dirty or under
--   writeback (wb_rule)
-- @source   mm/vmscan.c shrink_inactive_list(), evict_folios()
-- @materialize
CREATE VIEW _loss_reclaim AS
WITH
  asked AS (
    SELECT 1 AS one
    FROM reclaim_run AS m
    WHERE m.is_meeting_dirty = 1
      AND EXISTS (
        SELECT 1
        FROM raw_mm_vmscan_lru_shrink_inactive AS s
        WHERE s.nr_dirty IS NOT NULL
      )
  ),
  steps AS (
    SELECT b.tid, b.seq, b.seq AS border_seq, 0 AS dirty, 0 AS scanned
    FROM asked AS a
    CROSS JOIN raw_mm_vmscan_direct_reclaim_begin AS b
    UNION ALL
    SELECT e.tid, e.seq, e.seq, 0, 0
    FROM asked AS a
    CROSS JOIN raw_mm_vmscan_direct_reclaim_end AS e
    UNION ALL
    SELECT s.tid, s.seq, NULL, s.nr_dirty, s.nr_scanned
    FROM asked AS a
    CROSS JOIN raw_mm_vmscan_lru_shrink_inactive AS s
  ),
  owned AS (
    SELECT
      s.dirty, s.scanned,
      max(s.border_seq) OVER (
        PARTITION BY s.tid ORDER BY s.seq ROWS UNBOUNDED PRECEDING
      ) AS border_seq
    FROM steps AS s
  ),
  summed AS (
    SELECT
      o.border_seq,
      total(o.dirty) AS dirty,
      total(o.scanned) AS scanned
    FROM owned AS o
    WHERE o.border_seq IS NOT NULL
    GROUP BY o.border_seq
  )
SELECT
  b.seq,
  s.dirty > 0 AND s.dirty >= v.dirty_least_ratio * s.scanned AS is_dirty
FROM summed AS s
JOIN raw_mm_vmscan_direct_reclaim_begin AS b ON b.seq = s.border_seq
CROSS JOIN wb_rule AS v;
