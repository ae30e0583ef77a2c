-- SPDX-License-Identifier: Apache-2.0
-- What timelines add to the other views: what comes first, sentences, calls.

-- @view     wb_timeline_order
-- @shared
-- @summary  Groups of the timeline that come first in this run: those about
--   what its tasks waited for longest.
-- @grain    group; order place
-- @column   group_name TEXT as in @group of sql/timelines
-- @column   place INTEGER order among them
-- @column   is_top INTEGER 1: it stands beside the group of all, so that a UI
--   that shows that one closed shows this one
CREATE VIEW wb_timeline_order AS
WITH
  waited AS (
    SELECT
      CASE
        WHEN s.kind = 'throttle' THEN 'throttling'
        WHEN s.kind IN ('direct reclaim', 'memcg reclaim', 'reclaim throttle')
          THEN 'reclaim'
        ELSE 'disk'
      END AS subject,
      sum(s.dur) AS total_ns
    FROM wb_stall AS s
    -- Mostly of the kernel's own threads.
    WHERE s.kind <> 'block queue'
    GROUP BY 1
  ),
  -- step 0 and 1 of the first subject are on the first screen.
  member(subject, place, step, group_name) AS (
    SELECT 'throttling', 1, 0, 'Dirty pages'
    UNION ALL SELECT 'throttling', 1, 1, 'Fairness'
    UNION ALL SELECT 'throttling', 1, 2, 'Throttled tasks'
    UNION ALL SELECT 'reclaim', 2, 0, 'Reclaim'
    UNION ALL SELECT 'reclaim', 2, 2, 'Zones'
    UNION ALL SELECT 'disk', 3, 0, 'Block requests'
    UNION ALL SELECT 'disk', 3, 2, 'Flusher work'
  ),
  ranked AS (
    SELECT
      m.group_name, m.step,
      dense_rank() OVER (ORDER BY coalesce(w.total_ns, 0) DESC, m.place)
        AS subject_place
    FROM member AS m
    LEFT JOIN waited AS w ON w.subject = m.subject
  ),
  listed AS (
    SELECT 'What to look at' AS group_name, 1 AS place, 0 AS is_top
    UNION ALL
    SELECT 'Stalls', 2, 1
    UNION ALL
    SELECT
      r.group_name,
      2 + row_number() OVER (ORDER BY r.subject_place, r.step),
      CASE
        WHEN r.subject_place = 1 AND r.step < 2 THEN 1
        -- Top groups are in the order of their names: not before Reclaim.
        WHEN r.group_name = 'Fairness' AND f.group_name <> 'Reclaim' THEN 1
        ELSE 0
      END
    FROM ranked AS r
    JOIN ranked AS f ON f.subject_place = 1 AND f.step = 0
  )
SELECT l.group_name, l.place, l.is_top
FROM listed AS l;

-- @view     wb_stall_why
-- @shared
-- @summary  Each wait in a sentence: what the kernel saw when it decided, or
--   what the task waited for.
-- @grain    wait; order wait_id
-- @key      wait_id
-- @optional writeback:balance_dirty_pages
-- @column   why TEXT 52.1 MiB dirty > limit 50.1 MiB, so rate 0
-- @column   device TEXT name of its device, such as vda; else as bdi
-- @column   domain TEXT of a throttle: as in wb_throttle
-- @column   pause_ns INTEGER of a throttle: as in wb_throttle
-- @column   paused_ns INTEGER of a throttle: as in wb_throttle
-- @column   period_ns INTEGER of a throttle: as in wb_throttle
-- @column   think_ns INTEGER of a throttle: as in wb_throttle
-- @column   dirtied_bytes INTEGER of a throttle: as in wb_throttle
-- @column   dirty_ratelimit_bytes_per_s INTEGER of a throttle: as in
--   wb_throttle
-- @column   task_ratelimit_bytes_per_s INTEGER of a throttle: as in
--   wb_throttle
-- @column   dirty_bytes INTEGER of a throttle: as in wb_throttle
-- @column   setpoint_bytes INTEGER of a throttle: as in wb_throttle
-- @column   limit_bytes INTEGER of a throttle: as in wb_throttle
-- @column   wb_dirty_bytes INTEGER of a throttle: as in wb_throttle
-- @column   wb_setpoint_bytes INTEGER of a throttle: as in wb_throttle
-- @materialize
-- @cost     130
CREATE VIEW wb_stall_why AS
WITH
  -- Few of millions of events.
  state AS MATERIALIZED (
    SELECT
      t.seq, t.domain, t.pause_ns, t.paused_ns, t.period_ns, t.think_ns,
      t.dirtied_bytes, t.dirty_ratelimit_bytes_per_s,
      t.task_ratelimit_bytes_per_s, t.dirty_bytes, t.setpoint_bytes,
      t.limit_bytes, t.wb_dirty_bytes, t.wb_setpoint_bytes
    FROM wb_stall AS s
    CROSS JOIN wb_throttle AS t ON t.seq = s.ref_seq
    WHERE s.kind = 'throttle'
  ),
  told AS (
    SELECT
      s.wait_id, s.kind, s.cause, s.dur,
      coalesce(d.device, s.bdi) AS device,
      s.journal_ratio, s.device_ratio, s.server_ratio,
      mib!(t.dirty_bytes) AS dirty,
      mib!(t.limit_bytes) AS limit_text,
      mib!(t.setpoint_bytes) AS setpoint,
      mib!(t.wb_dirty_bytes) AS wb_dirty,
      mib_per_s!(t.task_ratelimit_bytes_per_s) AS rate,
      printf('%d ms', t.pause_ns / u.ms_ns) AS pause,
      size!(t.dirtied_bytes) AS dirtied,
      t.domain, t.pause_ns, t.paused_ns, t.period_ns, t.think_ns,
      t.dirtied_bytes, t.dirty_ratelimit_bytes_per_s,
      t.task_ratelimit_bytes_per_s, t.dirty_bytes, t.setpoint_bytes,
      t.limit_bytes, t.wb_dirty_bytes, t.wb_setpoint_bytes
    FROM wb_stall AS s
    CROSS JOIN wb_units AS u
    LEFT JOIN state AS t ON t.seq = s.ref_seq AND s.kind = 'throttle'
    LEFT JOIN wb_device AS d ON d.bdi = s.bdi
  )
SELECT
  t.wait_id,
  CASE
    WHEN t.kind = 'throttle' AND t.dirty_bytes >= t.limit_bytes
      THEN t.dirty || ' dirty'
        || CASE t.domain WHEN 'memcg' THEN ' in its cgroup' ELSE '' END
        || ' > limit ' || t.limit_text || ', so rate 0'
    WHEN t.kind = 'throttle' AND t.task_ratelimit_bytes_per_s = 0
      THEN 'rate 0: ' || t.wb_dirty || ' dirty of ' || t.device
        || ', its share is used up (' || t.dirty || ' dirty in all'
        || coalesce(', limit ' || t.limit_text, '') || ')'
    WHEN t.kind = 'throttle' AND t.dirty_bytes IS NOT NULL
      THEN t.dirtied || ' dirtied at ' || t.rate || ' is ' || t.pause || ': '
        || t.dirty || ' dirty'
        || CASE t.domain WHEN 'memcg' THEN ' in its cgroup' ELSE '' END
        || CASE
          WHEN t.dirty_bytes > t.setpoint_bytes THEN ' > setpoint '
          ELSE ' below setpoint '
        END || t.setpoint
        || coalesce(', limit ' || t.limit_text, '')
    WHEN t.kind = 'throttle' THEN 'throttled for dirty pages'
    WHEN t.kind = 'memcg reclaim' THEN 'frees memory of its cgroup at its limit'
    WHEN t.kind = 'direct reclaim'
      THEN 'frees memory itself' || CASE
        WHEN t.cause = 'unknown' THEN ''
        ELSE ', ' || t.cause
      END
    WHEN t.kind = 'reclaim throttle' THEN 'held in reclaim: ' || t.cause
    WHEN t.cause = 'journal commit'
      THEN 'the journal' || coalesce(' of ' || t.device, '')
        || ' committed for '
        || CAST(round(100 * t.journal_ratio) AS INTEGER) || ' % of it'
    WHEN t.cause = 'server latency'
      THEN 'the server had requests for '
        || CAST(round(100 * t.server_ratio) AS INTEGER) || ' % of it'
    WHEN t.cause = 'device latency' AND t.device_ratio IS NOT NULL
      THEN coalesce(t.device, 'the device') || ' had requests for '
        || CAST(round(100 * t.device_ratio) AS INTEGER) || ' % of it'
    WHEN t.cause = 'unknown' THEN 'the events do not tell why'
    ELSE t.cause
  END AS why,
  t.device, t.domain, t.pause_ns, t.paused_ns, t.period_ns, t.think_ns,
  t.dirtied_bytes, t.dirty_ratelimit_bytes_per_s, t.task_ratelimit_bytes_per_s,
  t.dirty_bytes, t.setpoint_bytes, t.limit_bytes, t.wb_dirty_bytes,
  t.wb_setpoint_bytes
FROM told AS t;

-- @view     wb_dirty_drawn
-- @shared
-- @summary  Of wb_dirty_state what a curve of the whole run can show: all of
--   some ten thousand rows, else of each step the first, the last, and those
--   with the most and the least dirty pages and pages under writeback.
-- @grain    event; order seq
-- @key      seq
-- @events   writeback:global_dirty_state
-- @materialize
-- @cost     250
CREATE VIEW wb_dirty_drawn AS
WITH
  -- A value and where it was, as one number: the largest of them has both.
  extreme AS (
    SELECT
      s.step_index,
      s.state_first_seq AS base,
      max(
        (g.nr_dirty + g.nr_writeback) * (1 << 32) + g.seq - s.state_first_seq
      ) AS most_dirty,
      min(
        (g.nr_dirty + g.nr_writeback) * (1 << 32) + g.seq - s.state_first_seq
      ) AS least_dirty,
      max(g.nr_writeback * (1 << 32) + g.seq - s.state_first_seq)
        AS most_writeback,
      min(g.nr_writeback * (1 << 32) + g.seq - s.state_first_seq)
        AS least_writeback
    FROM _step AS s
    CROSS JOIN raw_global_dirty_state AS g
      ON g.seq >= s.state_first_seq AND g.seq < s.state_after_seq
    -- Others say what one before them in the step said.
    WHERE coalesce(g.repeats_count, 0) = 0 OR g.seq = s.state_first_seq
    GROUP BY s.step_index
  ),
  chosen AS (
    SELECT g.seq
    FROM raw_global_dirty_state AS g
    WHERE NOT EXISTS (SELECT 1 FROM _step)
    UNION
    SELECT e.base FROM extreme AS e
    UNION
    SELECT
      (
        SELECT g.seq
        FROM raw_global_dirty_state AS g
        WHERE g.seq < s.state_after_seq
        ORDER BY g.seq DESC
        LIMIT 1
      )
    FROM extreme AS e
    JOIN _step AS s ON s.step_index = e.step_index
    UNION
    SELECT e.base + e.most_dirty % (1 << 32) FROM extreme AS e
    UNION
    SELECT e.base + e.least_dirty % (1 << 32) FROM extreme AS e
    UNION
    SELECT e.base + e.most_writeback % (1 << 32) FROM extreme AS e
    UNION
    SELECT e.base + e.least_writeback % (1 << 32) FROM extreme AS e
  )
SELECT
  d.seq, d.ts, d.until_ts, d.nr_dirty_bytes, d.nr_writeback_bytes,
  d.dirty_bytes, d.bg_thresh_bytes, d.thresh_bytes, d.limit_bytes,
  d.freerun_bytes, d.setpoint_bytes, d.dirtied_total_bytes,
  d.written_total_bytes, d.is_boosted
FROM chosen AS c
CROSS JOIN wb_dirty_state AS d ON d.seq = c.seq;

-- @view     wb_throttle_drawn
-- @shared
-- @summary  Of wb_throttle what the curves of tasks can show: all of some ten
--   thousand events, else of those that tell something (wb_throttle_told), of
--   each task, wb and step of time, the first, the last, and those with the
--   longest pause, most pages and the highest and lowest rate; with the task's
--   name as tracks have it.
-- @grain    event; order seq
-- @key      seq
-- @events   writeback:balance_dirty_pages
-- @column   end_ts INTEGER ns, end of the sleep that followed; ts without one
-- @materialize
-- @cost     370
CREATE VIEW wb_throttle_drawn AS
WITH
  size AS (SELECT count(*) AS events FROM raw_balance_dirty_pages AS r),
  -- A value and where it was, as one number: the largest of them has both.
  extreme AS (
    SELECT
      min(t.seq) AS first_seq,
      max(t.seq) AS last_seq,
      max(max(t.pause, 0) * (1 << 32) + t.seq) AS longest_pause,
      max(max(t.paused, 0) * (1 << 32) + t.seq) AS longest_call,
      max(t.dirtied * (1 << 32) + t.seq) AS most_dirtied,
      max(t.task_ratelimit * (1 << 32) + t.seq) AS highest_rate,
      min(t.task_ratelimit * (1 << 32) + t.seq) AS lowest_rate
    FROM wb_throttle_told AS t
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_rule AS v
    WHERE (SELECT z.events FROM size AS z) > v.drawn_most_count
    -- Not in the order of an index by thread, which would read events here and
    -- there.
    GROUP BY
      +t.tid, t.bdi, t.cgroup_ino, t.cgroup_path,
      (t.ts - b.first_ts) * v.drawn_steps_count
        / nullif(b.last_ts - b.first_ts, 0)
  ),
  chosen AS (
    SELECT r.seq
    FROM raw_balance_dirty_pages AS r
    WHERE (SELECT z.events FROM size AS z)
      <= (SELECT v.drawn_most_count FROM wb_rule AS v)
    UNION
    SELECT e.first_seq FROM extreme AS e
    UNION
    SELECT e.last_seq FROM extreme AS e
    UNION
    SELECT e.longest_pause % (1 << 32) FROM extreme AS e
    UNION
    SELECT e.longest_call % (1 << 32) FROM extreme AS e
    UNION
    SELECT e.most_dirtied % (1 << 32) FROM extreme AS e
    UNION
    SELECT e.highest_rate % (1 << 32) FROM extreme AS e
    UNION
    SELECT e.lowest_rate % (1 << 32) FROM extreme AS e
  )
SELECT
  t.seq, t.ts, t.tid, k.task_id, k.path, t.bdi, t.cgroup_ino, t.domain,
  max(t.sleep_ts + t.slept_ns, t.ts) AS end_ts,
  t.pause_ns, t.paused_ns, t.dirtied_bytes, t.dirty_ratelimit_bytes_per_s,
  t.task_ratelimit_bytes_per_s, t.dirty_bytes, t.limit_bytes, t.setpoint_bytes,
  t.wb_dirty_bytes, t.wb_setpoint_bytes
FROM chosen AS c
CROSS JOIN wb_throttle AS t ON t.seq = c.seq
LEFT JOIN wb_task_label AS k
  ON task_of!(k, t);

-- @view     _step
-- @summary  As many steps of the run as a wide screen has pixels, and the
--   records of each. More than four points of a curve in one are not seen.
--   Empty for a run with so few samples that all of them are drawn.
-- @grain    step; order step_index
-- @key      step_index
-- @optional writeback:global_dirty_state
-- @column   step_index INTEGER 0 to 2047
-- @column   state_first_seq INTEGER its first global_dirty_state, or the first
--   behind it
-- @column   state_after_seq INTEGER the first of the next step
-- @materialize
-- @cost     70
CREATE VIEW _step AS
WITH RECURSIVE
  border(step_index, ts) AS (
    SELECT 0, b.first_ts
    FROM wb_bounds AS b
    WHERE b.first_ts IS NOT NULL
      AND (SELECT count(*) FROM raw_global_dirty_state AS g)
        > (SELECT v.drawn_most_count FROM wb_rule AS v)
    UNION ALL
    SELECT
      s.step_index + 1,
      b.first_ts
        + (b.last_ts - b.first_ts) * (s.step_index + 1) / v.drawn_steps_count
    FROM border AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_rule AS v
    WHERE s.step_index + 1 < v.drawn_steps_count
  ),
  -- A record shortly before; the search goes on from there.
  near AS (
    SELECT
      b.step_index, b.ts,
      coalesce(
        (
          SELECT i.seq
          FROM raw_time_index AS i
          WHERE i.ts < b.ts
          ORDER BY i.ts DESC, i.seq DESC
          LIMIT 1
        ),
        0
      ) AS seq
    FROM border AS b
  ),
  found AS (
    SELECT
      n.step_index,
      (
        SELECT g.seq
        FROM raw_global_dirty_state AS g
        WHERE g.seq >= n.seq AND g.ts >= n.ts
        ORDER BY g.seq
        LIMIT 1
      ) AS seq
    FROM near AS n
  )
SELECT
  f.step_index,
  f.seq AS state_first_seq,
  coalesce(
    lead(f.seq) OVER (ORDER BY f.step_index),
    (SELECT max(g.seq) FROM raw_global_dirty_state AS g) + 1
  ) AS state_after_seq
FROM found AS f;
