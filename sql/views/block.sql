-- SPDX-License-Identifier: Apache-2.0
-- Block requests, and when devices, journals and kswapd were busy.

-- @view     wb_block_request
-- @summary  Block requests from being given to the driver to their end. A
--   request may end in parts: the part that ends where the request ends is its
--   completion, and that is also how the two events are matched. Flushes have
--   no place, and one at a time is in flight; they end in order.
-- @grain    issued request; order seq
-- @events   block:block_rq_issue, block:block_rq_complete
-- @column   seq INTEGER of block_rq_issue
-- @column   issued_ts INTEGER ns, given to the driver
-- @column   end_seq INTEGER of block_rq_complete; NULL = still in flight
-- @column   completed_ts INTEGER ns; NULL = still in flight
-- @column   until_seq INTEGER of what until_ts is of; NULL = the trace's end
-- @column   until_ts INTEGER ns, completed_ts, when it was issued again, or the
--   trace's end
-- @column   is_known INTEGER 1: the device had it until until_ts; 0: it has no
--   end, and events are lost
-- @column   tid INTEGER thread that gave it to the driver, often a kworker
-- @column   device TEXT major:minor
-- @column   sector INTEGER first sector
-- @column   bytes INTEGER of the request
-- @source   include/trace/events/block.h; block/blk-mq.c blk_update_request()
-- @materialize
-- @cost     120
CREATE VIEW wb_block_request AS
WITH
  steps AS (
    SELECT
      i.dev_major, i.dev_minor, i.sector,
      CASE
        -- Where a zone append went, only its end tells: they end in order.
        WHEN i.rwbs GLOB '*ZA*' THEN -3
        WHEN i.nr_sector > 0 THEN i.sector + i.nr_sector
        WHEN i.op = 'flush' THEN -1
        ELSE -2
      END AS end_sector,
      i.seq, i.ts, i.tid, i.rwbs, i.op, i.nr_sector
    FROM raw_block_rq_issue AS i
    UNION ALL
    SELECT
      c.dev_major, c.dev_minor, c.sector,
      CASE
        WHEN c.rwbs GLOB '*ZA*' THEN -3
        WHEN c.nr_sector > 0 THEN c.sector + c.nr_sector
        WHEN c.op = 'flush' THEN -1
        ELSE -2
      END,
      c.seq, c.ts, NULL, NULL, NULL, NULL
    FROM raw_block_rq_complete AS c
  ),
  paired AS (
    SELECT
      s.dev_major, s.dev_minor, s.sector, s.seq, s.ts, s.tid, s.rwbs, s.op,
      s.nr_sector,
      lead(s.seq) OVER place AS until_seq,
      lead(s.ts) OVER place AS until_ts,
      lead(s.nr_sector) OVER place AS next_nr_sector
    FROM steps AS s
    WINDOW place AS (
      PARTITION BY s.end_sector, s.dev_major, s.dev_minor ORDER BY s.seq
    )
  )
SELECT
  p.seq,
  p.ts AS issued_ts,
  CASE WHEN p.next_nr_sector IS NULL THEN p.until_seq END AS end_seq,
  CASE WHEN p.next_nr_sector IS NULL THEN p.until_ts END AS completed_ts,
  p.until_seq,
  coalesce(p.until_ts, u.last_ts) AS until_ts,
  (p.until_seq IS NOT NULL AND p.next_nr_sector IS NULL)
    OR NOT EXISTS (SELECT 1 FROM raw_lost_events) AS is_known,
  p.tid,
  device!(p) AS device,
  p.sector, p.rwbs, p.op,
  p.nr_sector * u.sector_bytes AS bytes
FROM paired AS p
CROSS JOIN wb_units AS u
WHERE p.nr_sector IS NOT NULL;

-- @view     wb_wait_request
-- @summary  Block requests with the task that submitted them and the time that
--   they stood in a queue: those of wb_block_request, with the block_rq_insert
--   before them. One issued again after a requeue is one request. Where
--   block_rq_issue was not recorded, a request goes from its insert to its
--   first completion.
-- @grain    request; order seq
-- @optional block:block_rq_insert, block:block_rq_issue,
--   block:block_rq_complete
-- @column   seq INTEGER of its insert, or of its issue where it was never
--   queued
-- @column   ts INTEGER ns, when it was queued, or issued where it never was
-- @column   issue_ts INTEGER ns, when the driver first got it
-- @column   end_ts INTEGER ns, when its last part completed; the trace's end
--   where it did not
-- @column   tid INTEGER thread that queued it, or issued it
-- @column   device TEXT major:minor
-- @column   rwbs TEXT kind of request, as the kernel prints it
-- @column   op TEXT read, write, discard, flush or other
-- @column   sector INTEGER first sector
-- @column   bytes INTEGER of the request, as its first event tells
-- @column   is_sync INTEGER 1: somebody waits for it: a read that is no
--   readahead, a flush, or marked REQ_SYNC
-- @column   is_journal INTEGER 1: of the thread of a journal of jbd2
-- @source   include/trace/events/block.h; kernel/trace/blktrace.c
--   blk_fill_rwbs(); an insert is matched by device and first sector;
--   fs/jbd2/journal.c: the thread is called jbd2/<device>
-- @materialize
-- @cost     30
CREATE VIEW wb_wait_request AS
WITH
  -- Where a request was queued, or issued and not completed, one may have
  -- several events.
  several AS (
    SELECT device!(i) AS device, i.sector
    FROM raw_block_rq_insert AS i
    UNION
    SELECT r.device, r.sector
    FROM wb_block_request AS r
    WHERE r.completed_ts IS NULL
  ),
  steps AS (
    SELECT
      i.seq, i.ts, i.tid,
      device!(i) AS device,
      i.sector, i.rwbs, i.op,
      'insert' AS step,
      i.nr_sector * u.sector_bytes AS bytes,
      NULL AS done_ts,
      NULL AS until_ts
    FROM raw_block_rq_insert AS i
    CROSS JOIN wb_units AS u
    UNION ALL
    SELECT
      r.seq, r.issued_ts, r.tid, r.device, r.sector, r.rwbs, r.op,
      'issue',
      r.bytes, r.completed_ts, r.until_ts
    FROM wb_block_request AS r
    WHERE (r.device, r.sector) IN (SELECT o.device, o.sector FROM several AS o)
    UNION ALL
    SELECT
      c.seq, c.ts, c.tid,
      device!(c),
      c.sector, c.rwbs, c.op,
      'complete',
      NULL, c.ts, c.ts
    FROM raw_block_rq_complete AS c
    WHERE NOT EXISTS (SELECT 1 FROM wb_block_request)
  ),
  followed AS (
    SELECT
      s.*,
      lag(s.step) OVER place AS prev_step,
      lag(s.done_ts) OVER place AS prev_done_ts,
      lead(s.step, 1) OVER place AS step_1,
      lead(s.ts, 1) OVER place AS ts_1,
      lead(s.done_ts, 1) OVER place AS done_1_ts,
      lead(s.until_ts, 1) OVER place AS until_1_ts,
      lead(s.step, 2) OVER place AS step_2,
      lead(s.done_ts, 2) OVER place AS done_2_ts,
      lead(s.until_ts, 2) OVER place AS until_2_ts
    FROM steps AS s
    WINDOW place AS (PARTITION BY s.device, s.sector ORDER BY s.seq)
  ),
  -- A request that was queued and neither issued nor completed may have been
  -- merged into another one: not taken.
  timed AS (
    SELECT
      f.*,
      CASE
        WHEN f.step = 'issue' THEN f.ts
        WHEN f.step_1 = 'issue' THEN f.ts_1
      END AS issue_ts,
      CASE
        WHEN f.step = 'issue' AND f.done_ts IS NULL AND f.step_1 = 'issue'
          THEN f.done_1_ts
        WHEN f.step = 'issue' THEN f.done_ts
        WHEN f.step_1 = 'issue' AND f.done_1_ts IS NULL AND f.step_2 = 'issue'
          THEN f.done_2_ts
        WHEN f.step_1 IN ('issue', 'complete') THEN f.done_1_ts
      END AS complete_ts,
      CASE
        WHEN f.step = 'issue' AND f.done_ts IS NULL AND f.step_1 = 'issue'
          THEN f.until_1_ts
        WHEN f.step = 'issue' THEN f.until_ts
        WHEN f.step_1 = 'issue' AND f.done_1_ts IS NULL AND f.step_2 = 'issue'
          THEN f.until_2_ts
        WHEN f.step_1 = 'issue' THEN f.until_1_ts
      END AS open_until_ts
    FROM followed AS f
    WHERE f.step = 'insert'
      OR (
        f.step = 'issue'
        AND (
          f.prev_step IS NULL
          OR (f.prev_step = 'issue' AND f.prev_done_ts IS NOT NULL)
        )
      )
  ),
  known AS (
    SELECT
      t.seq, t.ts, t.issue_ts,
      coalesce(t.complete_ts, t.open_until_ts) AS end_ts,
      t.tid, t.device, t.rwbs, t.op, t.sector, t.bytes
    FROM timed AS t
    CROSS JOIN wb_units AS b
    WHERE t.complete_ts IS NOT NULL
      OR (
        t.open_until_ts = b.last_ts
        AND NOT EXISTS (SELECT 1 FROM raw_lost_events)
      )
    UNION ALL
    SELECT
      r.seq, r.issued_ts, r.issued_ts, r.completed_ts, r.tid, r.device, r.rwbs,
      r.op, r.sector, r.bytes
    FROM wb_block_request AS r
    WHERE (r.device, r.sector) NOT IN (
        SELECT o.device, o.sector FROM several AS o
      )
  )
SELECT
  t.seq, t.ts, t.issue_ts, t.end_ts, t.tid, t.device, t.rwbs, t.op, t.sector,
  t.bytes,
  CASE
    WHEN instr(t.rwbs, 'S') > 0 THEN 1
    -- To finish a zone is no flush.
    WHEN instr(t.rwbs, 'F') > 0 AND instr(t.rwbs, 'ZF') = 0 THEN 1
    WHEN t.op = 'read' AND instr(t.rwbs, 'A') = 0 THEN 1
    ELSE 0
  END AS is_sync,
  t.tid IN (SELECT k.tid FROM raw_task AS k WHERE k.comm GLOB 'jbd2/*')
    AS is_journal
FROM known AS t;

-- @view     wb_busy
-- @summary  Stretches of time in which a device had at least one request, a
--   journal committed (where its events were not recorded: had a request), the
--   server of a network or FUSE file system had a request, or kswapd of any
--   node was awake. What lies on disks (wb_stack) is busy while one of them is,
--   and while it has bios itself where that is for much longer.
--   The journal of a partition is one of its disk (wb_device). Where any
--   device had other requests, too, the time with one that writes or
--   flushes is told of all.
-- @grain    stretch; order resource, device, from_ts
-- @optional block:block_rq_issue, block:block_rq_complete,
--   jbd2:jbd2_start_commit, jbd2:jbd2_end_commit,
--   vmscan:mm_vmscan_kswapd_wake, vmscan:mm_vmscan_kswapd_sleep
-- @column   resource TEXT device, write (had a write or flush; only where any
--   device had others), journal, server or kswapd
-- @column   device TEXT major:minor; of a server the bdi; node for kswapd of
--   any node
-- @column   from_ts INTEGER ns, start
-- @column   to_ts INTEGER ns, end
-- @column   before_ns INTEGER sum of the stretches before this one
-- @column   silent_ns INTEGER of a device, where the longest time began in
--   which it completed nothing while it had one and the same request, of two
--   seconds or more: that time; else NULL
-- @column   silent_bytes INTEGER then: of the requests that it had meanwhile
-- @column   silent_is_open INTEGER then: 1: it lasted until the trace ended
-- @column   silent_from_ts INTEGER then: ns, start
-- @column   silent_to_ts INTEGER then: ns, end
-- @source   block/blk-mq.c; fs/jbd2/commit.c; mm/vmscan.c kswapd()
-- @index    resource device from_ts to_ts before_ns
-- @materialize
-- @cost     250
CREATE VIEW wb_busy AS
WITH
  reached AS (
    SELECT
      s.*,
      max(s.to_ts) OVER (
        PARTITION BY s.resource, s.device ORDER BY s.from_ts, s.to_ts
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ts
    FROM _busy_stretch AS s
  ),
  apart AS (
    SELECT
      r.resource, r.device,
      CASE WHEN r.reached_ts > r.from_ts THEN r.reached_ts ELSE r.from_ts END
        AS from_ts,
      r.to_ts
    FROM reached AS r
    WHERE r.reached_ts IS NULL OR r.to_ts > r.reached_ts
  ),
  -- All disks of a device together, and the device itself.
  below AS (
    SELECT k.bdi, sum(a.to_ts - a.from_ts) AS busy_ns
    FROM _stack AS k
    JOIN apart AS a ON a.device = k.disk
    WHERE a.resource = 'device'
    GROUP BY k.bdi
  ),
  own AS (
    SELECT o.bdi, sum(o.busy_ns) AS busy_ns
    FROM _stack_own AS o
    GROUP BY o.bdi
  ),
  slow AS (
    SELECT o.bdi
    FROM own AS o
    CROSS JOIN wb_rule AS v
    JOIN below AS b ON b.bdi = o.bdi
    WHERE o.busy_ns > v.own_busy_factor * b.busy_ns
  ),
  above AS (
    -- Which of the journals on a disk its requests are of, they do not tell.
    SELECT a.resource, k.bdi AS device, a.from_ts, a.to_ts
    FROM _stack AS k
    CROSS JOIN apart AS a ON a.device = k.disk
    WHERE a.resource = 'device'
      OR (a.resource = 'write' AND k.bdi NOT IN (SELECT l.bdi FROM slow AS l))
      OR (
        a.resource = 'journal'
        AND NOT EXISTS (SELECT 1 FROM raw_jbd2_start_commit)
      )
    UNION ALL
    SELECT 'device', s.bdi, max(s.from_ts, t.first_ts), s.to_ts
    FROM slow AS l
    CROSS JOIN wb_units AS t
    JOIN _stack_own AS s ON s.bdi = l.bdi
    WHERE s.to_ts > t.first_ts
  ),
  lifted AS (
    SELECT
      a.*,
      max(a.to_ts) OVER (
        PARTITION BY a.resource, a.device ORDER BY a.from_ts, a.to_ts
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ts
    FROM above AS a
  ),
  told AS (
    SELECT a.resource, a.device, a.from_ts, a.to_ts
    FROM apart AS a
    UNION ALL
    SELECT
      l.resource, l.device,
      CASE WHEN l.reached_ts > l.from_ts THEN l.reached_ts ELSE l.from_ts END,
      l.to_ts
    FROM lifted AS l
    WHERE l.reached_ts IS NULL OR l.to_ts > l.reached_ts
  )
SELECT
  t.resource, t.device, t.from_ts, t.to_ts,
  sum(t.to_ts - t.from_ts) OVER (
    PARTITION BY t.resource, t.device ORDER BY t.from_ts, t.to_ts
    ROWS UNBOUNDED PRECEDING
  ) - (t.to_ts - t.from_ts) AS before_ns,
  s.silent_ns,
  s.bytes AS silent_bytes,
  s.is_open AS silent_is_open,
  s.from_ts AS silent_from_ts,
  s.to_ts AS silent_to_ts
FROM told AS t
LEFT JOIN _silence AS s
  ON t.resource = 'device'
  AND s.device = t.device
  AND s.from_ts >= t.from_ts
  AND s.from_ts < t.to_ts;

-- @view     wb_stack
-- @summary  The disks that a device lies on, or a file system with a bdi of its
--   own: LVM, dm-crypt, md, btrfs. Its requests are theirs, and what lies
--   between has none. Without the file stacks there are no rows.
-- @grain    device, disk; order bdi, disk
-- @optional block:block_rq_issue, block:block_rq_complete
-- @column   bdi TEXT of the device, as events name it; one that has requests of
--   its own (multipath) is not here
-- @column   disk TEXT major:minor of a disk at the bottom
-- @column   own_busy_ns INTEGER how long the device had bios itself, by its own
--   counters, in steps of a sample: dm-crypt has one while it is enciphered,
--   and the disk has not yet got it; NULL = not known, or not at all
-- @column   own_bytes INTEGER what it wrote by these
-- @source   Documentation/ABI/testing/sysfs-block: slaves; docs/record.md
-- @materialize
CREATE VIEW wb_stack AS
SELECT k.bdi, k.disk, o.own_busy_ns, o.own_bytes
FROM _stack AS k
LEFT JOIN (
  SELECT
    s.bdi,
    sum(s.busy_ns) AS own_busy_ns,
    sum(s.written_bytes) AS own_bytes
  FROM _stack_own AS s
  GROUP BY s.bdi
) AS o ON o.bdi = k.bdi;

-- @view     _silence
-- @summary  Longest time in which a device completed nothing while it had one
--   and the same request: of devices that had any for two seconds or more.
-- @grain    device; order device
-- @key      device
-- @column   device TEXT major:minor
-- @column   silent_ns INTEGER that time
-- @column   bytes INTEGER of the requests that it had for two seconds then
-- @column   is_open INTEGER 1: it lasted until the trace ended
-- @column   from_ts INTEGER ns, start
-- @column   to_ts INTEGER ns, end
-- @materialize
CREATE VIEW _silence AS
WITH
  slow AS MATERIALIZED (
    SELECT r.device, r.issued_ts, r.until_ts, r.bytes
    FROM wb_block_request AS r
    CROSS JOIN wb_rule AS v
    WHERE r.is_known = 1
      AND r.until_ts - r.issued_ts >= v.little_most_ns
      -- Without completions nothing tells that there was none.
      AND EXISTS (SELECT 1 FROM raw_block_rq_complete)
    UNION ALL
    SELECT f.device, b.first_ts, f.to_ts, f.bytes
    FROM _block_before AS f
    CROSS JOIN wb_units AS b
  ),
  done AS (
    SELECT device!(c) AS device, c.ts
    FROM raw_block_rq_complete AS c
    WHERE device!(c) IN (SELECT s.device FROM slow AS s)
    UNION ALL
    SELECT s.device, b.first_ts
    FROM slow AS s
    CROSS JOIN wb_units AS b
    UNION ALL
    SELECT s.device, b.last_ts
    FROM slow AS s
    CROSS JOIN wb_units AS b
  ),
  gap AS (
    SELECT
      d.device,
      lag(d.ts) OVER (PARTITION BY d.device ORDER BY d.ts) AS from_ts,
      d.ts AS to_ts
    FROM done AS d
  ),
  silent AS (
    SELECT
      g.device,
      sum(s.bytes) AS bytes,
      min(max(s.issued_ts, g.from_ts)) AS from_ts,
      g.to_ts
    FROM gap AS g
    CROSS JOIN wb_rule AS v
    JOIN slow AS s
      ON s.device = g.device
      AND s.issued_ts < g.to_ts
      AND s.until_ts >= g.to_ts
    WHERE g.to_ts - g.from_ts >= v.little_most_ns
    GROUP BY g.device, g.to_ts
  )
SELECT
  s.device,
  max(s.to_ts - s.from_ts) AS silent_ns,
  s.bytes,
  s.to_ts = b.last_ts AS is_open,
  s.from_ts, s.to_ts
FROM silent AS s
CROSS JOIN wb_units AS b
CROSS JOIN wb_rule AS v
WHERE s.to_ts - s.from_ts >= v.little_most_ns
GROUP BY s.device;

-- @view     _block_before
-- @summary  Requests that devices had when the trace began: completions whose
--   issue was not recorded, and is not lost. Parts of a request begin where one
--   was issued. Where a device has too many, its issues were filtered.
-- @grain    device, op; order device, op
-- @column   device TEXT major:minor
-- @column   op TEXT of the completion
-- @column   to_ts INTEGER ns, end of the last
-- @column   bytes INTEGER of them
-- @materialize
CREATE VIEW _block_before AS
WITH
  unmatched AS MATERIALIZED (
    SELECT c.seq, c.ts, c.dev_major, c.dev_minor, c.sector, c.op, c.nr_sector
    FROM raw_block_rq_complete AS c
    WHERE c.nr_sector > 0
      AND c.seq NOT IN (
        SELECT r.end_seq FROM wb_block_request AS r
        WHERE r.end_seq IS NOT NULL
      )
      AND EXISTS (SELECT 1 FROM raw_block_rq_issue)
      AND NOT EXISTS (SELECT 1 FROM raw_lost_events)
  ),
  begun AS (
    SELECT
      device!(u) AS device,
      u.op, u.ts, u.nr_sector,
      count(*) OVER (PARTITION BY u.dev_major, u.dev_minor) AS requests_count
    FROM unmatched AS u
    LEFT JOIN raw_block_rq_issue AS i
      ON i.sector = u.sector
      AND i.dev_major = u.dev_major
      AND i.dev_minor = u.dev_minor
      AND i.seq < u.seq
    WHERE i.seq IS NULL
  )
SELECT
  b.device, b.op,
  max(b.ts) AS to_ts,
  sum(b.nr_sector) * o.sector_bytes AS bytes
FROM begun AS b
CROSS JOIN wb_units AS o
WHERE b.requests_count <= (SELECT v.begun_most_count FROM wb_rule AS v)
GROUP BY b.device, b.op, o.sector_bytes;

-- @view     _busy_stretch
-- @summary  Requests, commits, spans of kswapd and of servers, each as it was.
-- @grain    stretch; order resource, device, from_ts
-- @column   resource TEXT as in wb_busy
-- @column   device TEXT as in wb_busy
-- @column   from_ts INTEGER ns, start
-- @column   to_ts INTEGER ns, end
CREATE VIEW _busy_stretch AS
WITH
  commits AS (
    SELECT
      device!(c) AS journal,
      c.seq, c.ts,
      0 AS is_end
    FROM raw_jbd2_start_commit AS c
    UNION ALL
    SELECT device!(c), c.seq, c.ts, 1
    FROM raw_jbd2_end_commit AS c
  ),
  commit_pair AS (
    SELECT
      coalesce(n.bdi, c.journal) AS device,
      c.ts, c.is_end,
      lag(c.is_end) OVER journal AS prev_is_end,
      lead(c.is_end) OVER journal AS next_is_end,
      lead(c.ts) OVER journal AS next_ts
    FROM commits AS c
    LEFT JOIN wb_device AS n
      ON instr(n.partitions, ' ' || c.journal || ' ') > 0
    WINDOW journal AS (PARTITION BY c.journal ORDER BY c.seq)
  ),
  kswapd AS (
    SELECT w.nid, w.seq, w.ts, 0 AS is_end
    FROM raw_mm_vmscan_kswapd_wake AS w
    UNION ALL
    SELECT s.nid, s.seq, s.ts, 1
    FROM raw_mm_vmscan_kswapd_sleep AS s
  ),
  -- Several wakes can precede one sleep.
  kswapd_step AS (
    SELECT
      k.*,
      lag(k.is_end) OVER (PARTITION BY k.nid ORDER BY k.seq) AS prev_is_end
    FROM kswapd AS k
  ),
  kswapd_pair AS (
    SELECT
      k.ts, k.is_end, k.prev_is_end,
      lead(k.ts) OVER (PARTITION BY k.nid ORDER BY k.seq) AS next_ts
    FROM kswapd_step AS k
    WHERE k.prev_is_end IS NULL OR k.prev_is_end <> k.is_end
  )
SELECT
  'device' AS resource,
  r.device,
  coalesce(r.issue_ts, r.ts) AS from_ts,
  r.end_ts AS to_ts
FROM wb_wait_request AS r
UNION ALL
SELECT 'write', r.device, coalesce(r.issue_ts, r.ts), r.end_ts
FROM wb_wait_request AS r
-- Zeroes that the disk writes itself (other) have no bytes to count.
WHERE r.op IN ('write', 'flush')
  AND EXISTS (
    SELECT 1 FROM wb_wait_request AS q
    WHERE q.op NOT IN ('write', 'flush')
  )
UNION ALL
SELECT s.resource, f.device, b.first_ts, f.to_ts
FROM _block_before AS f
CROSS JOIN wb_units AS b
JOIN (SELECT 'device' AS resource UNION ALL SELECT 'write') AS s
  ON s.resource = 'device' OR f.op = 'write' AND EXISTS (
    SELECT 1 FROM wb_wait_request AS q
    WHERE q.op NOT IN ('write', 'flush')
  )
UNION ALL
SELECT 'journal', c.device, c.ts, coalesce(c.next_ts, b.last_ts)
FROM commit_pair AS c
CROSS JOIN wb_units AS b
WHERE c.is_end = 0 AND (c.next_is_end IS NULL OR c.next_is_end = 1)
UNION ALL
SELECT 'journal', c.device, b.first_ts, c.ts
FROM commit_pair AS c
CROSS JOIN wb_units AS b
WHERE c.is_end = 1 AND c.prev_is_end IS NULL
UNION ALL
SELECT 'journal', r.device, coalesce(r.issue_ts, r.ts), r.end_ts
FROM wb_wait_request AS r
WHERE r.is_journal = 1
  AND NOT EXISTS (SELECT 1 FROM raw_jbd2_start_commit)
UNION ALL
SELECT 'server', v.device, v.ts, coalesce(v.end_ts, b.last_ts)
FROM wb_call AS v
CROSS JOIN wb_units AS b
WHERE v.protocol IS NOT NULL
  AND (v.end_ts IS NOT NULL OR NOT EXISTS (SELECT 1 FROM raw_lost_events))
UNION ALL
SELECT 'kswapd', 'node', k.ts, coalesce(k.next_ts, b.last_ts)
FROM kswapd_pair AS k
CROSS JOIN wb_units AS b
WHERE k.is_end = 0
UNION ALL
SELECT 'kswapd', 'node', b.first_ts, k.ts
FROM kswapd_pair AS k
CROSS JOIN wb_units AS b
WHERE k.is_end = 1 AND k.prev_is_end IS NULL;

-- @view     _stack
-- @summary  The disks at the bottom of each device or file system.
-- @grain    device, disk; order bdi, disk
-- @column   bdi TEXT as in wb_stack
-- @column   disk TEXT as in wb_stack
-- @materialize
CREATE VIEW _stack AS
WITH RECURSIVE
  below(bdi, disk, depth) AS (
    SELECT n.bdi, n.disk, 1
    FROM _stack_right AS n
    UNION
    SELECT b.bdi, n.disk, b.depth + 1
    FROM below AS b
    JOIN _stack_right AS n ON n.bdi = b.disk
    WHERE b.depth < (SELECT v.depth_most_count FROM wb_rule AS v)
  )
SELECT DISTINCT b.bdi, b.disk
FROM below AS b
WHERE b.disk NOT IN (SELECT n.bdi FROM _stack_right AS n)
  AND b.bdi NOT IN (
    SELECT device!(i) FROM raw_block_rq_issue AS i
    UNION
    SELECT device!(c) FROM raw_block_rq_complete AS c
  );

-- @view     _stack_own
-- @summary  When a device that lies on disks (wb_stack) had bios itself, by its
--   own counters: dm-crypt has one while it is enciphered, and the disk has
--   not yet got it. A file system with a bdi of its own has those of the one
--   device that it lies on.
-- @grain    sample of a device; order bdi, to_ts
-- @column   bdi TEXT of the device, as events name it
-- @column   from_ts INTEGER ns, start of the time that the sample adds
-- @column   to_ts INTEGER ns, the sample. The kernel counts the time of a bio
--   when it ends, so the time may reach back beyond the sample before
-- @column   busy_ns INTEGER from the one to the other
-- @column   written_bytes INTEGER that the sample adds
-- @source   block/blk-core.c update_io_ticks(); drivers/md/dm.c
--   dm_start_io_acct()
-- @materialize
CREATE VIEW _stack_own AS
WITH
  stacked AS (
    SELECT DISTINCT
      k.bdi,
      CAST(substr(k.bdi, instr(k.bdi, ':') + 1) AS INTEGER) AS minor
    FROM _stack AS k
    WHERE k.bdi GLOB '[0-9]*:[0-9]*'
  ),
  -- A sample that has no number has the kernel's name: dm-0 has the minor 0,
  -- and md127 is 9:127.
  named AS (
    SELECT
      CASE WHEN t.bdi GLOB '9:*' THEN 'md' || t.minor ELSE 'dm-' || t.minor END
        AS disk,
      min(t.bdi) AS bdi
    FROM stacked AS t
    GROUP BY 1
    HAVING count(*) = 1
  ),
  own AS (
    SELECT
      coalesce(s.device, n.bdi) AS bdi,
      s.ts, s.busy_ns, s.queued_ns, s.written_bytes
    FROM wb_usage AS s
    LEFT JOIN named AS n ON n.disk = s.object
    WHERE s.source = 'block'
      AND coalesce(s.device, n.bdi) IN (SELECT t.bdi FROM stacked AS t)
  ),
  -- Old kernels count a whole jiffy for each bio, however short: the time is
  -- right where bios waited at least as long.
  watched AS (
    SELECT o.bdi
    FROM own AS o
    GROUP BY o.bdi
    HAVING sum(o.queued_ns) >= sum(o.busy_ns)
  ),
  -- btrfs on dm-crypt.
  borrowed AS (
    SELECT r.bdi, min(r.disk) AS device
    FROM _stack_right AS r
    WHERE r.bdi NOT GLOB '[0-9]*:[0-9]*'
    GROUP BY r.bdi
    HAVING count(*) = 1
  )
SELECT
  b.bdi,
  o.ts - o.busy_ns AS from_ts,
  o.ts AS to_ts,
  o.busy_ns, o.written_bytes
FROM (
  SELECT w.bdi, w.bdi AS device FROM watched AS w
  UNION ALL
  SELECT r.bdi, r.device FROM borrowed AS r
) AS b
JOIN watched AS w ON w.bdi = b.device
JOIN own AS o ON o.bdi = w.bdi
WHERE o.busy_ns > 0;

-- @view     _stack_right
-- @summary  What lies right below a device, or a file system with a bdi of its
--   own.
-- @grain    device, device below; order bdi, disk
CREATE VIEW _stack_right AS
SELECT DISTINCT s.bdi, s.disk
FROM raw_stack AS s
WHERE s.bdi <> s.disk;
