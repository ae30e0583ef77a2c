-- SPDX-License-Identifier: Apache-2.0
-- The kernel's control law: has each balance_dirty_pages event the rate that
-- its own numbers give, and why did it throttle its task?

-- @view     wb_law
-- @summary  The task_ratelimit of each balance_dirty_pages event beside what
--   wb_position_ratio() makes of the numbers that it was decided on: those of
--   the event, the thresholds that its call told just before and the bandwidth
--   that its wb had then. In the kernel's integers. Slow with a million events:
--   only those with a why are kept.
-- @grain    event; order seq
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, writeback:bdi_dirty_ratelimit,
--   writeback:wb_domain_dirty_state
-- @source   mm/page-writeback.c wb_position_ratio(), pos_ratio_polynom(), 3.2
--   to 7.x; up to 4.0 divisors are + 1 where they are | 1 here
CREATE VIEW wb_law AS
WITH
  agreed AS (
    SELECT r.seq, r.predicted, r.recorded
    FROM _law_rate AS r
    WHERE r.is_agreed = 1
    UNION ALL
    SELECT n.seq, a.predicted, a.recorded
    FROM agreed AS a
    CROSS JOIN _law_repeat AS n ON n.prev_seq = a.seq
  )
SELECT
  b.seq, b.predicted_pages_per_s, b.recorded_pages_per_s, b.is_agreed,
  b.is_replayed, b.why
FROM _law_break AS b
UNION ALL
SELECT a.seq, a.predicted, a.recorded, 1, 1, NULL
FROM agreed AS a
UNION ALL
SELECT e.seq, NULL, NULL, NULL, 0, k.unknown_why
FROM _law_kernel AS k
CROSS JOIN raw_balance_dirty_pages AS e
WHERE k.unknown_why IS NOT NULL;

-- @view     wb_throttle_cause
-- @summary  Why each throttled task had to sleep: its pos_ratio, how much of
--   that is the machine's and how much its wb's, and what the kernel thought of
--   the bdi's bandwidth.
-- @grain    balance_dirty_pages event that a task slept after; order seq
-- @key      seq
-- @events   writeback:balance_dirty_pages
-- @optional writeback:bdi_dirty_ratelimit, writeback:global_dirty_state
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   ts INTEGER ns, of the event
-- @column   tid INTEGER thread
-- @column   task_id INTEGER of wb_task
-- @column   bdi TEXT backing device
-- @column   sleep_ts INTEGER ns, start of the sleep
-- @column   slept_ns INTEGER how long
-- @column   slept_basis TEXT as in wb_throttle
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   cause TEXT over the limit, above setpoint, bdi slower than its
--   share, falling bdi bandwidth, slow bdi bandwidth, memcg domain, strictlimit
--   or unknown; see docs/stalls.md
-- @column   domain TEXT whose limits decided: global or memcg; NULL = the
--   events do not tell; as in wb_throttle
-- @column   limit_bytes INTEGER as in wb_throttle
-- @column   setpoint_bytes INTEGER as in wb_throttle
-- @column   wb_setpoint_bytes INTEGER as in wb_throttle
-- @column   dirty_bytes INTEGER as in wb_throttle
-- @column   wb_dirty_bytes INTEGER as in wb_throttle
-- @column   wb_limit_bytes INTEGER this wb's share of the limit, by its share
--   of the setpoint; NULL = its setpoint is not known
-- @column   bandwidth_ts INTEGER ns, the last bdi_dirty_ratelimit of this wb
-- @column   avg_write_bw_bytes_per_s INTEGER that it told
-- @column   top_write_bw_bytes_per_s INTEGER highest of its last 16 updates
-- @column   pos_ratio REAL task_ratelimit over dirty_ratelimit; not in 0 to 1
-- @column   global_pos_ratio REAL factor of the machine's dirty pages, 0 to 2
-- @column   wb_pos_ratio REAL factor of the wb's dirty pages: the quotient
-- @column   global_share_ratio REAL share of the machine's factor in what both
--   take away; the rest is the wb's
-- @column   call_seq INTEGER as in wb_throttle_pause
-- @source   mm/page-writeback.c wb_position_ratio(), pos_ratio_polynom(),
--   balance_dirty_pages(); docs/stalls.md
-- @materialize
-- @cost     110
CREATE VIEW wb_throttle_cause AS
WITH
  slept AS (
    SELECT
      t.seq, t.ts, t.tid, t.bdi, t.sleep_ts, t.slept_ns, t.slept_basis,
      t.task_id,
      t.cgroup_ino AS told_cgroup_ino,
      coalesce(t.cgroup_ino, 1) AS cgroup_ino,
      t.call_seq,
      CASE WHEN d.seq IS NULL THEN 'global' ELSE d.domain END AS domain,
      CASE WHEN d.has_limit = 0 THEN NULL ELSE r."limit" * u.page_bytes END
        AS limit_bytes,
      r.setpoint * u.page_bytes AS setpoint_bytes,
      wb_setpoint!(r, u) * u.page_bytes AS wb_setpoint_bytes,
      r.dirty * u.page_bytes AS dirty_bytes,
      r.wb_dirty * u.page_bytes AS wb_dirty_bytes,
      r.dirty_ratelimit * u.kib_bytes AS base_bytes_per_s,
      r.task_ratelimit * u.kib_bytes AS task_bytes_per_s
    FROM wb_throttle_pause AS t
    CROSS JOIN wb_units AS u
    CROSS JOIN raw_balance_dirty_pages AS r ON r.seq = t.seq
    LEFT JOIN wb_throttle_domain AS d ON d.seq = t.seq
    WHERE t.slept_ns > 0
  ),
  -- LIMIT -1: all of them. Without it SQLite works each column out anew
  -- wherever a later step names it.
  placed AS (
    SELECT
      c.*,
      -- Of free run, of the setpoint, of the limit: 1, 0 and -1.
      1.0 * (c.setpoint_bytes - c.dirty_bytes)
        / nullif(c.limit_bytes - c.setpoint_bytes, 0) AS x,
      1.0 * c.task_bytes_per_s / nullif(c.base_bytes_per_s, 0) AS pos_ratio,
      w.ts AS bandwidth_ts,
      w.avg_write_bw_bytes_per_s, w.top_write_bw_bytes_per_s
    FROM slept AS c
    -- The last update of its wb before it.
    LEFT JOIN _cause_bandwidth AS w
      ON w.update_id = (
        SELECT l.update_id
        FROM _cause_bandwidth AS l
        WHERE l.bdi = c.bdi AND l.cgroup_ino = c.cgroup_ino AND l.ts <= c.ts
        ORDER BY l.ts DESC, l.update_id DESC
        LIMIT 1
      )
    LIMIT -1
  ),
  factors AS (
    SELECT
      p.*,
      CASE
        WHEN p.domain IS NULL OR p.domain <> 'global' THEN NULL
        WHEN p.limit_bytes <= p.setpoint_bytes THEN NULL
        -- The limit is older than the one that decided.
        WHEN p.x <= -1 AND p.pos_ratio > 0 THEN NULL
        WHEN p.x <= -1 THEN 0.0
        WHEN p.x >= 1 THEN 2.0
        ELSE 1 + p.x * p.x * p.x
      END AS global_pos_ratio
    FROM placed AS p
    LIMIT -1
  ),
  losses AS (
    SELECT
      f.*,
      f.pos_ratio / nullif(f.global_pos_ratio, 0) AS wb_pos_ratio,
      CASE WHEN f.global_pos_ratio < 1 THEN 1 - f.global_pos_ratio ELSE 0 END
        AS global_loss,
      CASE
        WHEN f.pos_ratio < f.global_pos_ratio
          THEN 1 - f.pos_ratio / f.global_pos_ratio
        ELSE 0
      END AS wb_loss
    FROM factors AS f
    LIMIT -1
  ),
  shares AS (
    SELECT
      l.*,
      CASE
        WHEN l.pos_ratio < 1 AND l.global_pos_ratio IS NOT NULL
          THEN l.global_loss / nullif(l.global_loss + l.wb_loss, 0)
      END AS global_share_ratio
    FROM losses AS l
  )
SELECT
  s.seq, s.ts, s.tid, s.task_id, s.bdi, s.sleep_ts, s.slept_ns, s.slept_basis,
  s.told_cgroup_ino AS cgroup_ino,
  CASE
    WHEN s.domain IS NULL OR s.pos_ratio IS NULL THEN 'unknown'
    WHEN s.domain = 'memcg' THEN 'memcg domain'
    WHEN s.limit_bytes <= s.setpoint_bytes THEN 'unknown'
    WHEN s.global_pos_ratio IS NULL THEN 'above setpoint'
    WHEN s.pos_ratio = 0 AND s.global_pos_ratio < r.at_limit_ratio
      THEN 'over the limit'
    -- Below free run only the bdi's own limit throttles.
    WHEN s.x >= 1 + r.freerun_margin_ratio THEN 'strictlimit'
    -- The wb's factor is a quarter at least without strictlimit. Pages/s are
    -- whole numbers, so a low rate can round to 0.
    WHEN s.pos_ratio = 0
      AND s.base_bytes_per_s * s.global_pos_ratio / 4 >= 2 * u.page_bytes
      THEN 'strictlimit'
    WHEN s.pos_ratio = 0 THEN 'unknown'
    WHEN s.global_share_ratio >= r.most_ratio THEN 'above setpoint'
    WHEN s.global_share_ratio < r.most_ratio THEN 'bdi slower than its share'
    WHEN s.avg_write_bw_bytes_per_s
      < s.top_write_bw_bytes_per_s * r.falling_ratio
      THEN 'falling bdi bandwidth'
    ELSE 'slow bdi bandwidth'
  END AS cause,
  s.domain, s.limit_bytes, s.setpoint_bytes, s.wb_setpoint_bytes, s.dirty_bytes,
  s.wb_dirty_bytes,
  CAST(
    1.0 * s.limit_bytes * s.wb_setpoint_bytes / nullif(s.setpoint_bytes, 0)
    AS INTEGER
  ) AS wb_limit_bytes,
  s.bandwidth_ts, s.avg_write_bw_bytes_per_s, s.top_write_bw_bytes_per_s,
  s.pos_ratio, s.global_pos_ratio, s.wb_pos_ratio, s.global_share_ratio,
  s.call_seq
FROM shares AS s
CROSS JOIN wb_rule AS r
CROSS JOIN wb_units AS u;

-- @view     _law_break
-- @summary  balance_dirty_pages events that have not the rate of the law, and
--   those that cannot be replayed.
-- @grain    event; order seq
-- @key      seq
-- @column   seq INTEGER of the event
-- @column   predicted_pages_per_s INTEGER dirty_ratelimit times pos_ratio; NULL
--   = not replayed: a number that it takes is not recorded, or too large
-- @column   recorded_pages_per_s INTEGER task_ratelimit
-- @column   is_agreed INTEGER 1: they differ by 1 % at most; NULL = not
--   replayed
-- @column   is_replayed INTEGER 1: the two can be compared; 0: a number that it
--   takes is not told, or not exactly, or nobody knows the law
-- @column   why TEXT what it can be that the two differ, or what is missing;
--   NULL = they agree
-- @materialize
-- @cost     650
CREATE VIEW _law_break AS
WITH
  broken AS (
    SELECT w.seq, w.predicted, w.recorded, w.is_agreed
    FROM _law_rate AS w
    WHERE coalesce(w.is_agreed, 0) = 0
    UNION ALL
    SELECT n.seq, b.predicted, b.recorded, b.is_agreed
    FROM broken AS b
    CROSS JOIN _law_repeat AS n ON n.prev_seq = b.seq
  ),
  known AS (
    SELECT
      b.*,
      CASE WHEN d.seq IS NULL THEN 'global' ELSE d.domain END AS domain,
      d.seq IS NOT NULL AS is_member,
      e.dirty_ratelimit / k.page_kib AS base,
      (e."limit" | e.dirty) >> 31 <> 0
        OR (k.long_bytes = 4 AND e.setpoint * e."limit" >= 1 << 32) AS is_large,
      EXISTS (
        SELECT 1
        FROM _law_bandwidth AS w
        WHERE w.bdi = e.bdi AND w.cgroup_ino = coalesce(e.cgroup_ino, 1)
      ) AS has_bandwidth,
      -- Updates are 200 ms apart (BANDWIDTH_INTERVAL), and those that flushers
      -- make fire no event. None stops a task, or lets it go on.
      b.predicted = 0
      OR b.recorded = 0
      OR coalesce(
        (
          SELECT w.ts - e.ts <= u.second_ns / 5
          FROM _law_bandwidth AS w
          WHERE w.bdi = e.bdi
            AND w.cgroup_ino = coalesce(e.cgroup_ino, 1)
            AND w.seq > e.seq
          ORDER BY w.seq
          LIMIT 1
        ),
        0
      ) AS is_exact
    FROM broken AS b
    CROSS JOIN _law_kernel AS k
    CROSS JOIN wb_units AS u
    CROSS JOIN raw_balance_dirty_pages AS e ON e.seq = b.seq
    LEFT JOIN wb_throttle_domain AS d ON d.seq = b.seq
  )
SELECT
  k.seq,
  k.predicted AS predicted_pages_per_s,
  k.recorded AS recorded_pages_per_s,
  k.is_agreed,
  CASE WHEN k.is_agreed IS NOT NULL AND k.is_exact THEN 1 ELSE 0 END
    AS is_replayed,
  CASE
    WHEN k.is_agreed IS NULL THEN
      CASE
        WHEN k.domain IS NULL THEN 'which limits throttled is not known'
        WHEN k.domain = 'memcg'
          THEN 'the thresholds of the memory cgroup are not recorded'
        WHEN k.is_large THEN 'its numbers are too large'
        WHEN NOT k.has_bandwidth
          THEN 'no bdi_dirty_ratelimit tells the bandwidth of its wb'
        ELSE 'no global_dirty_state of its call'
      END
    WHEN NOT k.is_exact
      THEN 'the bandwidth can have changed before the next bdi_dirty_ratelimit'
    WHEN abs(k.predicted - k.recorded) <= (k.base >> 10) + 1
      THEN 'one step of pos_ratio: a number changed within the call'
    WHEN k.recorded = 0 THEN 'strictlimit: stopped below the limit'
    WHEN k.is_member THEN 'a memory cgroup''s wb: the other limits throttled'
    ELSE 'a changed kernel, strictlimit, or wb_thresh not told exactly'
  END AS why
FROM known AS k;

-- @view     _law_repeat
-- @summary  The events that were decided on just what the one before was: they
--   have its rate.
-- @grain    event that _law_rate is without; order seq
-- @column   seq INTEGER of the event
-- @column   prev_seq INTEGER of the one before, of the same task
CREATE VIEW _law_repeat AS
SELECT e.seq, e.prev_seq
FROM raw_balance_dirty_pages AS e
WHERE e.repeats_count > 0
  AND NOT EXISTS (SELECT 1 FROM wb_throttle_domain AS d WHERE d.seq = e.seq);

-- @view     _law_rate
-- @summary  wb_law, but for the events of _law_repeat, two of three in a busy
--   run: what the numbers that an event was decided on give, in pages and
--   pages/s, of the domain that throttled.
-- @grain    event; order seq
-- @column   seq INTEGER of the event
-- @column   predicted INTEGER pages/s; NULL = not all of them are told
-- @column   recorded INTEGER pages/s, task_ratelimit
-- @column   is_agreed INTEGER as in wb_law
-- @source   mm/page-writeback.c balance_dirty_pages(), wb_position_ratio(): an
--   update in the same call changes dirty_limit and avg_write_bw when pos_ratio
--   is computed and the event is not fired yet
CREATE VIEW _law_rate AS
WITH
  called AS (
    SELECT
      e.seq,
      e.task_ratelimit / k.page_kib AS recorded,
      e.dirty_ratelimit / k.page_kib AS base,
      e.dirty, e.wb_dirty,
      coalesce(g.thresh, m.thresh) AS thresh,
      -- The least wb_thresh that gives the wb_setpoint of the event.
      (
        wb_setpoint!(e, k) * (coalesce(g.thresh, m.thresh) + 1)
        + e.setpoint - 1
      ) / e.setpoint AS wb_thresh,
      -- Only a patched kernel tells the thresholds of a memory cgroup. Without,
      -- the event has its limit (or not), and nobody may dirty beyond that.
      CASE
        WHEN g.seq IS NOT NULL THEN hard_limit!(g)
        WHEN m.seq IS NOT NULL THEN hard_limit!(m)
        WHEN coalesce(d.domain, 'memcg') = 'memcg' AND d.has_limit = 1
          THEN e."limit"
      END AS hard_limit,
      coalesce(g.thresh + g.bg_thresh, m.thresh + m.bg_thresh) / 2 AS freerun,
      e.bdi,
      coalesce(e.cgroup_ino, 1) AS cgroup_ino,
      coalesce(g.seq, m.seq, e.seq) AS state_seq,
      k.floor_factor
    FROM _law_kernel AS k
    CROSS JOIN raw_balance_dirty_pages AS e
    LEFT JOIN wb_throttle_domain AS d ON d.seq = e.seq
    -- Each loop of each call fires one before its event: most often the record
    -- just before, which is found in less time.
    LEFT JOIN raw_global_dirty_state AS g
      ON (d.seq IS NULL OR d.domain = 'global')
      AND g.seq = coalesce(
        (
          SELECT n.seq
          FROM raw_global_dirty_state AS n
          WHERE n.seq = e.seq - 1 AND n.tid = e.tid
        ),
        (
          SELECT s.seq
          FROM raw_global_dirty_state AS s
          WHERE s.seq < e.seq
            AND s.seq > coalesce(e.prev_seq, 0)
            AND s.tid = e.tid
          ORDER BY s.seq DESC
          LIMIT 1
        )
      )
    LEFT JOIN raw_wb_domain_dirty_state AS m
      ON d.seq IS NOT NULL
      AND coalesce(d.domain, 'memcg') = 'memcg'
      AND m.seq = (
        SELECT s.seq
        FROM raw_wb_domain_dirty_state AS s
        WHERE s.seq < e.seq
          AND s.seq > coalesce(e.prev_seq, 0)
          AND s.tid = e.tid
          AND s.domain = 1
        ORDER BY s.seq DESC
        LIMIT 1
      )
    WHERE k.unknown_why IS NULL
      AND (d.seq IS NOT NULL OR coalesce(e.repeats_count, 0) = 0)
    LIMIT -1
  ),
  placed AS (
    SELECT
      c.*,
      (c.hard_limit + c.freerun) / 2 AS setpoint,
      c.floor_factor * (c.hard_limit - c.dirty) / 8 AS least_wb_thresh
    FROM called AS c
  ),
  -- LIMIT -1 is no limit: it keeps SQLite from computing a step anew wherever
  -- the next one names a column of it.
  input AS (
    SELECT
      p.seq, p.recorded, p.base, p.wb_dirty, p.thresh, p.setpoint,
      -- (setpoint - dirty) / (limit - setpoint), times 2^10.
      CASE
        -- SQLite makes a real of a product with more than 63 bits.
        WHEN (p.hard_limit | p.dirty) >> 31 <> 0 THEN NULL
        WHEN p.dirty >= p.hard_limit THEN -(1 << 10)
        ELSE ((p.setpoint - p.dirty) << 10) / ((p.hard_limit - p.setpoint) | 1)
      END AS x,
      CASE
        WHEN p.least_wb_thresh > p.thresh OR p.least_wb_thresh > p.wb_thresh
          THEN p.least_wb_thresh
        WHEN p.wb_thresh > p.thresh THEN p.thresh
        ELSE p.wb_thresh
      END AS wb_thresh,
      (
        SELECT w.write_bw
        FROM _law_bandwidth AS w
        WHERE w.bdi = p.bdi
          AND w.cgroup_ino = p.cgroup_ino
          AND w.seq > p.state_seq
        ORDER BY w.seq
        LIMIT 1
      ) AS write_bw
    FROM placed AS p
    LIMIT -1
  ),
  line AS (
    SELECT
      i.seq, i.recorded, i.base, i.wb_dirty,
      CASE
        WHEN i.x > 1 << 10 THEN 2 << 10
        ELSE ((i.x * i.x >> 10) * i.x >> 10) + (1 << 10)
      END AS global_ratio,
      i.wb_thresh / 2 AS reserve,
      i.setpoint * ((i.wb_thresh << 16) / (i.thresh | 1)) >> 16 AS wb_setpoint,
      (i.thresh - i.wb_thresh + 8 * i.write_bw)
        * ((i.wb_thresh << 16) / (i.thresh | 1)) >> 16 AS span
    FROM input AS i
    LIMIT -1
  ),
  scaled AS (
    SELECT
      l.seq, l.recorded, l.base, l.wb_dirty, l.global_ratio, l.reserve,
      CASE
        WHEN l.wb_dirty < l.wb_setpoint + l.span - l.span / 4
          THEN l.global_ratio * (l.wb_setpoint + l.span - l.wb_dirty)
            / (l.span | 1)
        ELSE l.global_ratio / 4
      END AS pos_ratio
    FROM line AS l
  ),
  replayed AS (
    SELECT
      s.seq,
      CASE
        WHEN s.global_ratio = 0 THEN 0
        WHEN s.wb_dirty >= s.reserve THEN s.base * s.pos_ratio >> 10
        WHEN s.wb_dirty > s.reserve / 8
          THEN s.base * (s.pos_ratio * s.reserve / s.wb_dirty) >> 10
        ELSE s.base * (s.pos_ratio * 8) >> 10
      END AS predicted,
      s.recorded
    FROM scaled AS s
  )
SELECT
  r.seq, r.predicted, r.recorded,
  abs(r.predicted - r.recorded) * 100 <= r.recorded AS is_agreed
FROM replayed AS r;

-- @view     _law_kernel
-- @summary  Which law the kernel has.
-- @grain    one row
-- @column   page_kib INTEGER KiB in a page: rates are recorded in KiB/s
-- @column   floor_factor INTEGER 1: the law raises wb_thresh to an eighth of
--   what is left to the limit; 0: from 6.14 on it was raised before, and the
--   event has it so
-- @column   long_bytes INTEGER of wb_units
-- @column   unknown_why TEXT why it is not known; NULL = it is
-- @source   mm/page-writeback.c __wb_calc_thresh()
-- @materialize
CREATE VIEW _law_kernel AS
SELECT
  u.page_bytes / u.kib_bytes AS page_kib,
  CASE WHEN u.version < 6014 THEN 1 ELSE 0 END AS floor_factor,
  u.long_bytes,
  CASE
    WHEN u.version IS NULL THEN 'the kernel''s release is not known'
    WHEN u.version < 3002
      OR (
        SELECT g.goal FROM raw_balance_dirty_pages AS g ORDER BY g.seq LIMIT 1
      ) IS NOT NULL
      THEN 'kernels before 3.2 have another law'
  END AS unknown_why
FROM wb_units AS u;

-- @view     _law_bandwidth
-- @summary  The average write bandwidth of each wb up to each of its updates,
--   whose event tells it; behind the last one, which changed it, the last told.
-- @grain    update, and one row behind all; order bdi, cgroup_ino, seq
-- @index    bdi cgroup_ino seq write_bw ts
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb
-- @column   seq INTEGER of bdi_dirty_ratelimit, or after all records
-- @column   ts INTEGER ns, of bdi_dirty_ratelimit; NULL = after all records
-- @column   write_bw INTEGER pages/s
-- @source   mm/page-writeback.c __wb_update_bandwidth()
-- @materialize
CREATE VIEW _law_bandwidth AS
WITH
  updated AS (
    SELECT
      r.bdi,
      coalesce(r.cgroup_ino, 1) AS cgroup_ino,
      r.seq, r.ts,
      r.avg_write_bw / k.page_kib AS write_bw,
      row_number() OVER (
        PARTITION BY r.bdi, coalesce(r.cgroup_ino, 1) ORDER BY r.seq DESC
      ) AS from_last
    FROM raw_bdi_dirty_ratelimit AS r
    CROSS JOIN _law_kernel AS k
  )
SELECT u.bdi, u.cgroup_ino, u.seq, u.ts, u.write_bw
FROM updated AS u
UNION ALL
SELECT u.bdi, u.cgroup_ino, 9000000000000000000, NULL, u.write_bw
FROM updated AS u
WHERE u.from_last = 1;

-- @view     _cause_bandwidth
-- @summary  What each bdi_dirty_ratelimit event told of its wb's bandwidth, for
--   looking up the last one before an event.
-- @grain    event; order update_id
-- @key      update_id
-- @column   update_id INTEGER grows with the time
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root or not told
-- @column   top_write_bw_bytes_per_s INTEGER highest of the wb's last 16
-- @index    bdi cgroup_ino ts
-- @materialize
CREATE VIEW _cause_bandwidth AS
SELECT
  row_number() OVER (ORDER BY w.ts, w.bdi, w.cgroup_ino) AS update_id,
  w.ts, w.bdi,
  coalesce(w.cgroup_ino, 1) AS cgroup_ino,
  w.avg_write_bw_bytes_per_s,
  max(w.avg_write_bw_bytes_per_s) OVER (
    PARTITION BY w.bdi, w.cgroup_ino ORDER BY w.ts
    ROWS BETWEEN 15 PRECEDING AND CURRENT ROW
  ) AS top_write_bw_bytes_per_s
FROM wb_bandwidth AS w;
