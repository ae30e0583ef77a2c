-- SPDX-License-Identifier: Apache-2.0
-- What the kernel thinks that each bdi can write, and the rates that it
-- derives.

-- @view     wb_bandwidth
-- @summary  The kernel's estimates of each wb's bandwidth and the rates that it
--   lets tasks dirty at. With a memory cgroup the event fires twice in a row;
--   the second, which the kernel keeps, is the row here.
-- @grain    update; order ts
-- @events   writeback:bdi_dirty_ratelimit|writeback:dirty_throttle_bandwidth
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   write_bw_bytes_per_s INTEGER estimate before this update
-- @column   avg_write_bw_bytes_per_s INTEGER smoothed estimate
-- @column   dirty_rate_bytes_per_s INTEGER rate at which pages are dirtied
-- @column   dirty_ratelimit_bytes_per_s INTEGER base rate of a task
-- @column   task_ratelimit_bytes_per_s INTEGER base rate times pos_ratio
-- @column   balanced_dirty_ratelimit_bytes_per_s INTEGER rate that would
--   balance dirtying and writing
-- @source   mm/page-writeback.c wb_update_dirty_ratelimit()
-- @materialize
CREATE VIEW wb_bandwidth AS
WITH
  followed AS (
    SELECT
      r.ts, r.bdi,
      coalesce(r.cgroup_ino, c.cgroup_ino) AS cgroup_ino,
      r.write_bw, r.avg_write_bw, r.dirty_rate, r.dirty_ratelimit,
      r.task_ratelimit, r.balanced_dirty_ratelimit,
      lead(r.ts) OVER (
        PARTITION BY r.bdi, r.cgroup_ino, r.cgroup_path, r.tid ORDER BY r.seq
      ) AS next_ts
    FROM raw_bdi_dirty_ratelimit AS r
    LEFT JOIN wb_cgroup AS c ON c.path = r.cgroup_path
  )
SELECT
  f.ts, f.bdi, f.cgroup_ino,
  f.write_bw * u.kib_bytes AS write_bw_bytes_per_s,
  f.avg_write_bw * u.kib_bytes AS avg_write_bw_bytes_per_s,
  f.dirty_rate * u.kib_bytes AS dirty_rate_bytes_per_s,
  f.dirty_ratelimit * u.kib_bytes AS dirty_ratelimit_bytes_per_s,
  f.task_ratelimit * u.kib_bytes AS task_ratelimit_bytes_per_s,
  f.balanced_dirty_ratelimit * u.kib_bytes
    AS balanced_dirty_ratelimit_bytes_per_s
FROM followed AS f
CROSS JOIN wb_units AS u
WHERE f.next_ts IS NULL OR f.next_ts - f.ts > u.ms_ns
UNION ALL
-- The patches of March 2011 print the base rate in bytes/s.
SELECT
  t.ts, t.bdi, NULL,
  t.write_bw * v.kib_bytes,
  t.avg_write_bw * v.kib_bytes,
  t.dirty_rate * v.kib_bytes,
  t.base_bw, NULL, NULL
FROM raw_dirty_throttle_bandwidth AS t
CROSS JOIN wb_units AS v;

-- @view     wb_disk_rate
-- @summary  How fast each device writes while it has something to write. What
--   lies on disks (wb_stack) writes as fast as they do, whoever else is on
--   them, but where it is slow itself (dm-crypt), what it counts goes first.
--   Where pages are compressed, dirty ones are not worth the bytes that the
--   disk gets: the rate is that of page writeback. Of what several disks write
--   more than once (a mirror) it counts once. Where the device became slow in
--   the run (rate_changed), it is the slow one.
-- @grain    device; order bdi
-- @key      bdi
-- @optional block:block_rq_issue, block:block_rq_complete,
--   writeback:global_dirty_state
-- @column   bdi TEXT major:minor
-- @column   disk_bytes_per_s REAL written bytes over the time with a write or
--   flush, of block samples with any request; of the samples of a bdi (NFS,
--   FUSE) the fastest; of page writeback over the time in which pages were
--   written
-- @column   written_bytes REAL all that it wrote in the run; of what lies on
--   disks by its own counters, else what these wrote
-- @column   busy_ns INTEGER that time; of page writeback, in which
--   pages were written
-- @column   reached_ratio REAL where the disk got much less than the pages
--   that were written (compression): what it got, over their bytes; else NULL
-- @column   below_ratio REAL of a device that is slow itself: how long all its
--   disks were busy, over its own time; else NULL
-- @column   changed_ts INTEGER ns, when it became slow or fast; NULL = it did
--   not, or nothing tells
-- @column   before_bytes_per_s REAL rate until then
-- @column   after_bytes_per_s REAL rate from then on
-- @column   basis TEXT requests, block samples, bdi samples or page writeback
-- @column   request_bytes REAL mean size of its writes, or of those of its disk
--   with the smallest; NULL = not recorded
-- @column   is_only INTEGER 1: tasks can have waited for no other: what alone
--   lies on all disks, as it is written to, else the only disk; else 0
-- @materialize
-- @cost     33
CREATE VIEW wb_disk_rate AS
WITH
  best AS (
    SELECT
      k.*,
      row_number() OVER (PARTITION BY k.bdi ORDER BY k.grade) AS place
    FROM _disk_known AS k
    WHERE k.bytes_per_s > 0
  ),
  -- Of each byte that is written to it, disks of a mirror write two.
  copied AS (
    SELECT w.bdi, 1.0 * w.bytes / k.bytes AS own_ratio
    FROM _bdi_written AS w
    CROSS JOIN wb_rule AS v
    JOIN _disk_known AS k ON k.bdi = w.bdi AND k.grade IN (4, 5)
    -- The chunks of its flusher are a part of it.
    WHERE w.is_whole = 1 AND k.bytes > v.copied_factor * w.bytes
  )
SELECT
  b.bdi,
  CASE WHEN h.bdi IS NULL
    THEN b.bytes_per_s * min(coalesce(c.after_factor, 1.0), 1.0)
      * coalesce(m.own_ratio, 1.0)
    ELSE h.bytes * u.second_ns / h.busy_ns
  END AS disk_bytes_per_s,
  CASE
    WHEN h.bdi IS NOT NULL THEN h.bytes
    -- Its disks have other volumes' bytes, too.
    WHEN b.grade IN (2, 4, 5)
      THEN coalesce(w.bytes, b.bytes * coalesce(m.own_ratio, 1.0))
    ELSE b.bytes
  END AS written_bytes,
  CASE WHEN h.bdi IS NULL THEN b.busy_ns ELSE h.busy_ns END AS busy_ns,
  h.reached_ratio,
  CASE WHEN h.bdi IS NULL THEN b.below_ratio END AS below_ratio,
  CASE WHEN h.bdi IS NULL THEN c.ts END AS changed_ts,
  CASE WHEN h.bdi IS NULL
    THEN b.bytes_per_s * c.before_factor * coalesce(m.own_ratio, 1.0)
  END AS before_bytes_per_s,
  CASE WHEN h.bdi IS NULL
    THEN b.bytes_per_s * c.after_factor * coalesce(m.own_ratio, 1.0)
  END AS after_bytes_per_s,
  CASE CASE WHEN h.bdi IS NULL THEN b.grade ELSE 7 END
    WHEN 0 THEN 'block samples'
    WHEN 3 THEN 'block samples'
    WHEN 5 THEN 'block samples'
    WHEN 6 THEN 'bdi samples'
    WHEN 7 THEN 'page writeback'
    ELSE 'requests'
  END AS basis,
  b.request_bytes,
  CASE
    WHEN sum(b.is_stacked) OVER () = 1 AND sum(b.is_free) OVER () = 0
      THEN b.is_stacked
    WHEN sum(1 - b.is_stacked) OVER () = 1 THEN 1 - b.is_stacked
    ELSE 0
  END AS is_only
FROM (
  SELECT
    n.*,
    n.bdi IN (SELECT k.bdi FROM wb_stack AS k) AS is_stacked,
    n.bdi NOT IN (SELECT k.bdi FROM wb_stack AS k)
      AND n.bdi NOT IN (SELECT k.disk FROM wb_stack AS k) AS is_free
  FROM best AS n
  WHERE n.place = 1
) AS b
CROSS JOIN wb_units AS u
LEFT JOIN _disk_fewer AS h ON h.bdi = b.bdi
LEFT JOIN copied AS m ON m.bdi = b.bdi AND b.grade IN (4, 5)
LEFT JOIN _rate_change AS c ON c.bdi = b.bdi
LEFT JOIN _bdi_written AS w ON w.bdi = b.bdi AND w.is_whole = 1;

-- @view     _bdi_written
-- @summary  Pages that were written for each bdi in the run: by its statistics
--   in debugfs, of the files before and after the trace too; without them the
--   chunks of its flusher, which are a part of it, and need not have ended.
-- @grain    bdi; order bdi
-- @column   bdi TEXT backing device
-- @column   bytes INTEGER of the pages
-- @column   is_main INTEGER 1: nearly all pages were written for this one
-- @column   is_whole INTEGER 1: the statistics tell it
-- @source   mm/backing-dev.c bdi_debug_stats_show()
-- @materialize
CREATE VIEW _bdi_written AS
WITH
  gained AS (
    SELECT
      s.object AS bdi,
      (
        (s.value - lag(s.value) OVER bdi + u.long_half) & u.long_mask
      ) - u.long_half AS kib,
      u.kib_bytes
    FROM raw_sample AS s
    CROSS JOIN wb_units AS u
    WHERE s.source = 'bdi' AND s.name = 'BdiWritten'
    WINDOW bdi AS (
      PARTITION BY s.object
      ORDER BY
        CASE s.sample WHEN 'before' THEN 0 WHEN 'after' THEN 2 ELSE 1 END, s.ts
    )
  ),
  -- Where it went back another device has the name.
  counted AS (
    SELECT g.bdi, sum(max(g.kib, 0)) * g.kib_bytes AS bytes
    FROM gained AS g
    GROUP BY g.bdi, g.kib_bytes
  ),
  told AS (
    SELECT c.bdi, c.bytes, 1 AS is_whole
    FROM counted AS c
    UNION ALL
    SELECT w.bdi, sum(w.bytes), 0
    FROM wb_work AS w
    WHERE NOT EXISTS (SELECT 1 FROM counted)
    GROUP BY w.bdi
  )
SELECT
  t.bdi, t.bytes,
  t.bytes >= v.nearly_all_ratio * sum(t.bytes) OVER () AS is_main,
  t.is_whole
FROM told AS t
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u
WHERE t.bytes >= v.few_pages_count * u.page_bytes;

-- @view     _rate_change
-- @summary  When the rate at which a device writes while it is busy changed for
--   good, by its requests: of the moment that parts the run best, nearly all
--   busy time before is on one side of the geometric mean of the two rates, and
--   nearly all behind on the other. Where requests became smaller, or fewer at
--   a time, so did what was asked, and not the device: then there is no row.
-- @grain    device; order bdi
-- @key      bdi
-- @column   bdi TEXT the disk, or what lies on it
-- @column   ts INTEGER ns, when
-- @column   before_factor REAL rate before, over that of the whole run
-- @column   after_factor REAL rate behind, over that of the whole run
CREATE VIEW _rate_change AS
WITH
  summed AS (
    SELECT
      s.bdi, s.ts,
      sum(s.busy_ns) OVER so_far AS before_ns,
      sum(s.bytes) OVER so_far AS bytes,
      sum(s.requests_count) OVER so_far AS requests_count,
      count(*) OVER so_far AS steps_count,
      count(*) OVER (PARTITION BY s.bdi) AS all_steps_count,
      sum(s.busy_ns) OVER (PARTITION BY s.bdi) AS all_ns,
      sum(s.bytes) OVER (PARTITION BY s.bdi) AS all_bytes,
      sum(s.spent_ns) OVER so_far AS spent_ns,
      sum(s.requests_count) OVER (PARTITION BY s.bdi) AS all_count,
      sum(s.spent_ns) OVER (PARTITION BY s.bdi) AS all_spent_ns
    FROM _rate_step AS s
    WINDOW so_far AS (
      PARTITION BY s.bdi ORDER BY s.ts ROWS UNBOUNDED PRECEDING
    )
  ),
  rated AS (
    SELECT
      m.bdi, m.ts, m.before_ns,
      m.all_ns - m.before_ns AS after_ns,
      1.0 * m.bytes / m.before_ns AS before_per_ns,
      1.0 * (m.all_bytes - m.bytes) / (m.all_ns - m.before_ns) AS after_per_ns,
      1.0 * m.all_bytes / m.all_ns AS all_per_ns,
      1.0 * m.bytes / m.requests_count AS before_bytes,
      1.0 * (m.all_bytes - m.bytes) / (m.all_count - m.requests_count)
        AS after_bytes,
      1.0 * m.spent_ns / m.requests_count AS before_each_ns,
      1.0 * (m.all_spent_ns - m.spent_ns) / (m.all_count - m.requests_count)
        AS after_each_ns,
      v.rate_step_factor AS factor
    FROM summed AS m
    CROSS JOIN wb_rule AS v
    WHERE m.before_ns >= v.rate_side_ns
      AND m.all_ns - m.before_ns >= v.rate_side_ns
      AND m.steps_count >= v.rate_side_count
      AND m.all_steps_count - m.steps_count >= v.rate_side_count
  ),
  -- The variance between the two sides is largest where they are most alike
  -- within.
  best AS (
    SELECT
      r.*,
      row_number() OVER (
        PARTITION BY r.bdi
        ORDER BY
          1.0 * r.before_ns * r.after_ns
            * (r.before_per_ns - r.after_per_ns)
            * (r.before_per_ns - r.after_per_ns) DESC,
          r.ts
      ) AS place
    FROM rated AS r
  ),
  split AS MATERIALIZED (
    SELECT
      b.bdi, b.ts, b.before_ns, b.after_ns, b.before_per_ns, b.after_per_ns,
      b.all_per_ns
    FROM best AS b
    WHERE b.place = 1
      AND b.before_bytes * b.before_bytes
        < b.factor * b.after_bytes * b.after_bytes
      AND b.after_bytes * b.after_bytes
        < b.factor * b.before_bytes * b.before_bytes
      AND (
        (
          b.before_per_ns >= b.factor * b.after_per_ns
          AND b.after_each_ns > b.before_each_ns
        )
        OR (
          b.after_per_ns >= b.factor * b.before_per_ns
          AND b.after_each_ns < b.before_each_ns
        )
      )
  )
SELECT
  p.bdi, p.ts,
  p.before_per_ns / p.all_per_ns AS before_factor,
  p.after_per_ns / p.all_per_ns AS after_factor
FROM (
  SELECT
    o.*,
    s.ts <= o.ts AS is_before,
    s.busy_ns,
    (s.bytes * 1.0 * s.bytes
      >= o.before_per_ns * o.after_per_ns * s.busy_ns * s.busy_ns)
      = (o.before_per_ns > o.after_per_ns) AS is_as_before
  FROM split AS o
  JOIN _rate_step AS s ON s.bdi = o.bdi
) AS p
CROSS JOIN wb_rule AS v
GROUP BY
  p.bdi, p.ts, p.before_ns, p.after_ns, p.before_per_ns, p.after_per_ns,
  p.all_per_ns, v.nearly_all_ratio
HAVING total(CASE WHEN p.is_before AND p.is_as_before THEN p.busy_ns END)
    >= v.nearly_all_ratio * p.before_ns
  AND total(CASE WHEN NOT p.is_before AND NOT p.is_as_before THEN p.busy_ns END)
    >= v.nearly_all_ratio * p.after_ns;

-- @view     _rate_step
-- @summary  What a device wrote by the end of each second in which it completed
--   a write, and how long it was busy since the one before.
-- @grain    device, second with a write; order bdi, ts
-- @column   bdi TEXT the disk, or what lies on it
-- @column   ts INTEGER ns, end of the second; the last write, of the last
-- @column   bytes INTEGER completed
-- @column   requests_count INTEGER completed
-- @column   spent_ns INTEGER sum of the time that the driver had them
-- @column   busy_ns INTEGER with a write or flush
-- @materialize
-- @cost     22
CREATE VIEW _rate_step AS
WITH
  done AS (
    SELECT
      r.device,
      r.end_ts / u.second_ns AS second,
      sum(r.bytes) AS bytes,
      count(*) AS requests_count,
      sum(r.end_ts - coalesce(r.issue_ts, r.ts)) AS spent_ns,
      max(r.end_ts) AS last_ts
    FROM wb_wait_request AS r
    CROSS JOIN wb_units AS u
    WHERE r.bytes > 0 AND r.op = 'write'
    GROUP BY r.device, r.end_ts / u.second_ns
  ),
  lifted AS (
    SELECT
      d.device AS bdi,
      d.second, d.bytes, d.requests_count, d.spent_ns, d.last_ts
    FROM done AS d
    UNION ALL
    SELECT
      k.bdi, d.second,
      sum(d.bytes),
      sum(d.requests_count),
      sum(d.spent_ns),
      max(d.last_ts)
    FROM wb_stack AS k
    JOIN done AS d ON d.device = k.disk
    GROUP BY k.bdi, d.second
  ),
  ended AS (
    SELECT
      l.bdi, l.bytes, l.requests_count, l.spent_ns,
      min(
        (l.second + 1) * u.second_ns,
        max(l.last_ts) OVER (PARTITION BY l.bdi)
      ) AS ts
    FROM lifted AS l
    CROSS JOIN wb_units AS u
  ),
  writing AS (
    SELECT DISTINCT b.device
    FROM wb_busy AS b
    WHERE b.resource = 'write'
  ),
  kind AS (
    SELECT
      e.*,
      CASE WHEN w.device IS NULL THEN 'device' ELSE 'write' END AS resource
    FROM ended AS e
    LEFT JOIN writing AS w ON w.device = e.bdi
  ),
  reached AS (
    SELECT k.*, busy_until!(k.ts, k.resource, k.bdi) AS busy_ns
    FROM kind AS k
  ),
  stepped AS (
    SELECT
      r.bdi, r.ts, r.bytes, r.requests_count, r.spent_ns,
      r.busy_ns - coalesce(
        lag(r.busy_ns) OVER (PARTITION BY r.bdi ORDER BY r.ts), 0
      ) AS busy_ns
    FROM reached AS r
  )
SELECT s.bdi, s.ts, s.bytes, s.requests_count, s.spent_ns, s.busy_ns
FROM stepped AS s
WHERE s.busy_ns > 0;

-- @view     _disk_known
-- @summary  What each device wrote, by each source that tells, and in which
--   time.
-- @grain    bdi, source; order bdi, grade
-- @column   grade INTEGER which source, the best first: 0 its own samples, 1
--   its requests, 2 those of its one disk, 3 samples of the disk, 4 requests of
--   several disks, 5 their samples, 6 samples of the bdi
-- @column   bytes_per_s REAL while it had something to do
-- @column   bytes REAL written
-- @column   busy_ns INTEGER in this time
-- @column   below_ratio REAL as in wb_disk_rate
-- @column   request_bytes REAL mean of requests with data
-- @materialize
CREATE VIEW _disk_known AS
WITH
  busy AS (
    SELECT b.device, b.resource, sum(b.to_ts - b.from_ts) AS busy_ns
    FROM wb_busy AS b
    WHERE b.resource IN ('device', 'write')
    GROUP BY b.device, b.resource
  ),
  -- Without the time in which it only read or discarded, where that is told.
  writing AS (
    SELECT
      b.device,
      coalesce(
        max(CASE b.resource WHEN 'write' THEN b.busy_ns END), max(b.busy_ns)
      ) AS busy_ns
    FROM busy AS b
    GROUP BY b.device
  ),
  -- Disks of a mirror write the same twice, so where there are several, what a
  -- device counts itself goes before this.
  told AS (
    SELECT w.device AS bdi, 1 AS grade, w.bytes, w.request_bytes
    FROM _disk_written AS w
    UNION ALL
    SELECT
      k.bdi,
      CASE count(*) WHEN 1 THEN 2 ELSE 4 END,
      sum(w.bytes),
      min(w.request_bytes)
    FROM wb_stack AS k
    LEFT JOIN _disk_written AS w ON w.device = k.disk
    GROUP BY k.bdi
  ),
  sampled AS (
    SELECT
      s.device,
      1.0 * sum(s.written_bytes) * u.second_ns / nullif(sum(s.busy_ns), 0)
        AS bytes_per_s,
      1.0 * sum(s.written_bytes) AS bytes,
      1.0 * sum(s.written_bytes) / nullif(sum(s.writes_count), 0)
        AS request_bytes,
      sum(s.busy_ns) AS busy_ns
    FROM wb_usage AS s
    CROSS JOIN wb_units AS u
    WHERE s.source = 'block' AND s.device IS NOT NULL
    GROUP BY s.device, u.second_ns
  ),
  below AS (
    SELECT k.bdi, k.own_busy_ns, k.own_bytes, sum(b.busy_ns) AS busy_ns
    FROM wb_stack AS k
    JOIN busy AS b ON b.device = k.disk AND b.resource = 'device'
    GROUP BY k.bdi, k.own_busy_ns, k.own_bytes
  )
SELECT
  b.bdi,
  0 AS grade,
  1.0 * b.own_bytes * u.second_ns / b.own_busy_ns AS bytes_per_s,
  1.0 * b.own_bytes AS bytes,
  b.own_busy_ns AS busy_ns,
  1.0 * b.busy_ns / b.own_busy_ns AS below_ratio,
  NULL AS request_bytes
FROM below AS b
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u
WHERE b.own_busy_ns > v.own_busy_factor * b.busy_ns
UNION ALL
SELECT
  w.bdi, w.grade,
  1.0 * w.bytes * u.second_ns / nullif(b.busy_ns, 0),
  1.0 * w.bytes,
  b.busy_ns, NULL, w.request_bytes
FROM told AS w
JOIN writing AS b ON b.device = w.bdi
CROSS JOIN wb_units AS u
UNION ALL
SELECT s.device, 3, s.bytes_per_s, s.bytes, s.busy_ns, NULL, s.request_bytes
FROM sampled AS s
UNION ALL
SELECT
  k.bdi, 5, sum(s.bytes_per_s), sum(s.bytes), max(s.busy_ns), NULL,
  min(s.request_bytes)
FROM wb_stack AS k
JOIN sampled AS s ON s.device = k.disk
GROUP BY k.bdi
UNION ALL
SELECT
  s.device, 6,
  max(1.0 * s.written_bytes * u.second_ns / nullif(s.dur_ns, 0)),
  1.0 * sum(s.written_bytes),
  NULL, NULL, NULL
FROM wb_usage AS s
CROSS JOIN wb_units AS u
WHERE s.source = 'bdi' AND s.cgroup_ino IS NULL AND s.written_bytes > 0
GROUP BY s.device;

-- @view     _disk_fewer
-- @summary  What disks wrote of pages, where they got far fewer bytes than were
--   written back: zram compresses, device mapper may too.
-- @grain    bdi; order bdi
-- @column   bytes REAL of pages that were written back
-- @column   busy_ns INTEGER in this time
-- @column   reached_ratio REAL share of these bytes that the disk got
CREATE VIEW _disk_fewer AS
WITH
  -- Lost completions look like bytes that no disk got.
  shrunk AS MATERIALIZED (
    SELECT
      w.bdi, w.bytes, w.is_main,
      max(k.bytes) AS disk_bytes
    FROM _bdi_written AS w
    CROSS JOIN wb_rule AS v
    JOIN _disk_known AS k ON k.bdi = w.bdi AND k.grade < 6
    WHERE NOT EXISTS (SELECT 1 FROM raw_lost_events) OR k.grade IN (0, 3, 5)
    GROUP BY w.bdi
    HAVING w.bytes > v.shrunk_factor * max(k.bytes)
  ),
  -- What the machine wrote by each second, where it wrote for one bdi only.
  second AS (
    SELECT e.ts, e.nr_written
    FROM (
      SELECT max(g.ts) AS ts, max(g.nr_written) AS nr_written
      FROM raw_global_dirty_state AS g
      CROSS JOIN wb_units AS u
      GROUP BY g.ts / u.second_ns
      UNION ALL
      SELECT min(g.ts), min(g.nr_written)
      FROM raw_global_dirty_state AS g
    ) AS e
    WHERE EXISTS (SELECT 1 FROM shrunk AS h WHERE h.is_main = 1)
  ),
  stepped AS (
    SELECT
      s.ts - lag(s.ts) OVER (ORDER BY s.ts) AS dur_ns,
      s.nr_written - lag(s.nr_written) OVER (ORDER BY s.ts) AS written
    FROM second AS s
  ),
  paged AS (
    SELECT
      s.device AS bdi,
      1 AS grade,
      sum(s.written_bytes) AS bytes,
      sum(s.dur_ns) AS busy_ns
    FROM wb_usage AS s
    WHERE s.source = 'bdi' AND s.cgroup_ino IS NULL AND s.written_bytes > 0
      AND s.device IN (SELECT h.bdi FROM shrunk AS h)
    GROUP BY s.device
    UNION ALL
    SELECT h.bdi, 2, sum(t.written) * u.page_bytes, sum(t.dur_ns)
    FROM shrunk AS h
    CROSS JOIN wb_rule AS v
    CROSS JOIN stepped AS t
    CROSS JOIN wb_units AS u
    WHERE h.is_main = 1
      AND t.written > 0
      -- Nor did swap, which no flusher writes, take much of it elsewhere.
      AND (
        SELECT total(w.bytes)
        FROM _disk_written AS w
        WHERE w.device <> h.bdi
          AND w.device NOT IN (
            SELECT k.disk FROM wb_stack AS k WHERE k.bdi = h.bdi
          )
      ) <= (1 - v.nearly_all_ratio) * h.bytes
    GROUP BY h.bdi, u.page_bytes
  ),
  page AS (
    SELECT
      p.*,
      row_number() OVER (PARTITION BY p.bdi ORDER BY p.grade) AS place
    FROM paged AS p
    WHERE p.bytes > 0
  )
SELECT
  h.bdi,
  1.0 * p.bytes AS bytes,
  p.busy_ns,
  h.disk_bytes / p.bytes AS reached_ratio
FROM shrunk AS h
CROSS JOIN wb_rule AS v
JOIN page AS p ON p.bdi = h.bdi AND p.place = 1
WHERE p.bytes > v.shrunk_factor * h.disk_bytes;

-- @view     _disk_written
-- @summary  What requests wrote to each device.
-- @grain    device; order device
-- @key      device
-- @column   device TEXT major:minor
-- @column   bytes INTEGER in all
-- @column   request_bytes REAL mean of requests with data
-- @materialize
CREATE VIEW _disk_written AS
SELECT
  device!(c) AS device,
  sum(c.nr_sector) * u.sector_bytes AS bytes,
  avg(nullif(c.nr_sector, 0)) * u.sector_bytes AS request_bytes
FROM raw_block_rq_complete AS c
CROSS JOIN wb_units AS u
WHERE c.op = 'write'
GROUP BY 1;
