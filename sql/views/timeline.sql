-- SPDX-License-Identifier: Apache-2.0
-- What timelines add to the other views: what comes first, sentences, calls.

-- @view     wb_timeline_order
-- @summary  Groups of the timeline that come first in this run: those about
--   what its tasks waited for longest.
-- @grain    group; order place
-- @needs    wb_stall
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
      m.group_name,
      m.step,
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
-- @summary  Each wait in a sentence: what the kernel saw when it decided, or
--   what the task waited for.
-- @grain    wait; order wait_id
-- @key      wait_id
-- @needs    wb_stall, wb_throttle, wb_device, wb_units
-- @optional writeback:balance_dirty_pages
-- @column   wait_id INTEGER of wb_stall
-- @column   why TEXT 54.6 MB dirty > limit 52.5 MB, so rate 0
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
CREATE VIEW wb_stall_why AS
WITH
  told AS (
    SELECT
      s.wait_id,
      s.kind,
      s.cause,
      s.dur,
      coalesce(d.device, s.bdi) AS device,
      s.journal_ratio,
      s.device_ratio,
      s.server_ratio,
      printf('%.1f MB', t.dirty_bytes / 1e6) AS dirty,
      printf('%.1f MB', t.limit_bytes / 1e6) AS limit_text,
      printf('%.1f MB', t.setpoint_bytes / 1e6) AS setpoint,
      printf('%.1f MB', t.wb_dirty_bytes / 1e6) AS wb_dirty,
      printf('%.2f MB/s', t.task_ratelimit_bytes_per_s / 1e6) AS rate,
      printf('%d ms', t.pause_ns / u.ms_ns) AS pause,
      printf('%.1f MB', t.dirtied_bytes / 1e6) AS dirtied,
      t.domain,
      t.pause_ns,
      t.paused_ns,
      t.period_ns,
      t.think_ns,
      t.dirtied_bytes,
      t.dirty_ratelimit_bytes_per_s,
      t.task_ratelimit_bytes_per_s,
      t.dirty_bytes,
      t.setpoint_bytes,
      t.limit_bytes,
      t.wb_dirty_bytes,
      t.wb_setpoint_bytes
    FROM wb_stall AS s
    CROSS JOIN wb_units AS u
    LEFT JOIN wb_throttle AS t ON s.kind = 'throttle' AND t.seq = s.ref_seq
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
  t.device,
  t.domain,
  t.pause_ns,
  t.paused_ns,
  t.period_ns,
  t.think_ns,
  t.dirtied_bytes,
  t.dirty_ratelimit_bytes_per_s,
  t.task_ratelimit_bytes_per_s,
  t.dirty_bytes,
  t.setpoint_bytes,
  t.limit_bytes,
  t.wb_dirty_bytes,
  t.wb_setpoint_bytes
FROM told AS t;

-- @view     wb_throttle_call
-- @summary  Calls of balance_dirty_pages() that slept: how long each held its
--   task up, all its pauses together.
-- @grain    call; order tid, ts
-- @needs    wb_throttle_cost, wb_throttle_cause
-- @events   writeback:balance_dirty_pages
-- @column   seq INTEGER of its last event
-- @column   ts INTEGER ns, start
-- @column   end_ts INTEGER ns, end
-- @column   tid INTEGER thread
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   bdi TEXT backing device
-- @column   cause TEXT of its longest sleep, as in wb_throttle_cause
-- @column   worst_seq INTEGER of the event before its longest sleep
-- @column   call_ns INTEGER as in wb_throttle
-- @column   slept_ns INTEGER all sleeps
-- @column   pauses_count INTEGER sleeps
-- @source   mm/page-writeback.c balance_dirty_pages()
-- @materialize
CREATE VIEW wb_throttle_call AS
WITH
  numbered AS (
    SELECT
      c.*,
      sum(c.is_first) OVER (
        PARTITION BY c.tid ORDER BY c.seq ROWS UNBOUNDED PRECEDING
      ) AS call
    FROM wb_throttle_cost AS c
  ),
  ranked AS (
    SELECT
      n.*,
      row_number() OVER (
        PARTITION BY n.tid, n.call ORDER BY n.slept_ns DESC, n.seq
      ) AS place
    FROM numbered AS n
  ),
  call AS (
    SELECT
      max(r.seq) AS seq,
      min(min(r.ts, r.sleep_ts)) AS first_ts,
      max(CASE WHEN r.slept_ns > 0 THEN r.sleep_ts + r.slept_ns END) AS end_ts,
      r.tid,
      max(r.task_id) AS task_id,
      max(r.bdi) AS bdi,
      max(r.call_ns) AS call_ns,
      sum(r.slept_ns) AS slept_ns,
      sum(CASE WHEN r.slept_ns > 0 THEN 1 ELSE 0 END) AS pauses_count,
      max(CASE WHEN r.place = 1 THEN r.seq END) AS worst_seq
    FROM ranked AS r
    GROUP BY r.tid, r.call
    HAVING sum(r.slept_ns) > 0
  ),
  placed AS (
    SELECT
      c.*,
      lag(c.end_ts) OVER (PARTITION BY c.tid ORDER BY c.seq) AS before_ts
    FROM call AS c
  )
SELECT
  p.seq,
  -- Without its return the time before its last event is in whole jiffies.
  max(
    min(p.first_ts, p.end_ts - coalesce(p.call_ns, 0)),
    coalesce(p.before_ts, min(p.first_ts, p.end_ts - coalesce(p.call_ns, 0)))
  ) AS ts,
  p.end_ts,
  p.tid,
  p.task_id,
  p.bdi,
  coalesce(k.cause, 'unknown') AS cause,
  p.worst_seq,
  coalesce(p.call_ns, p.end_ts - p.first_ts) AS call_ns,
  p.slept_ns,
  p.pauses_count
FROM placed AS p
LEFT JOIN wb_throttle_cause AS k ON k.seq = p.worst_seq;
