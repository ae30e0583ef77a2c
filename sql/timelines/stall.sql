-- SPDX-License-Identifier: Apache-2.0
-- Waits of tasks, drawn.

-- @timeline tl_stall
-- @title    Waits on the threads
-- @order    22
-- @track    Writeback stalls: system calls of this thread that write or sync,
--   calls of balance_dirty_pages() in them, and its waits from begin to end,
--   one in the other; a mark at the end of a wait leads to what ended it
-- @summary  Every wait on the track of its thread, with its cause and with what
--   the kernel knew when it decided, in the calls that held the thread.
-- @grain    stall, call or end of a stall; order ts
-- @sorted
-- @events   as stalls
-- @optional sched:sched_switch, writeback:writeback_start,
--   writeback:writeback_written, writeback:bdi_dirty_ratelimit
-- @column   arg_why TEXT in a sentence
-- @column   arg_kind TEXT as in stalls; else call or system call
-- @column   arg_cause TEXT as in stalls
-- @column   arg_what TEXT event, system call or journal step
-- @column   arg_bdi TEXT backing device; NULL = not known
-- @column   arg_cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   arg_comm TEXT its name then
-- @column   arg_own_ns INTEGER its time without waits within it
-- @column   arg_basis TEXT how it was measured, as in stalls
-- @column   arg_cut TEXT start or end: under way when the trace began or ended;
--   NULL = neither
-- @column   arg_slept_ns INTEGER of a call: all its pauses
-- @column   arg_pauses_count INTEGER of a call: how many
-- @column   arg_written_bytes INTEGER of a write system call: its result
-- @column   arg_fd INTEGER of a write system call: its descriptor
-- @column   arg_pos_ratio REAL as in stalls
-- @column   arg_global_pos_ratio REAL as in stalls
-- @column   arg_wb_pos_ratio REAL as in stalls
-- @column   arg_global_share_ratio REAL as in stalls
-- @column   arg_journal_ratio REAL as in stalls
-- @column   arg_device_ratio REAL as in stalls
-- @column   arg_server_ratio REAL as in stalls
-- @column   arg_kswapd_ratio REAL as in stalls
-- @column   arg_finding TEXT rule of sql/findings that tells of it
-- @column   arg_holder_bdi TEXT of a throttle: the wb, other than its own,
--   whose dirty pages filled most of the pool
-- @column   arg_holder_cgroup_ino INTEGER cgroup of that wb
-- @column   arg_holder_share_ratio REAL what that wb held of the pool
-- @column   arg_domain TEXT of a throttle: as in wb_throttle
-- @column   arg_pause_ns INTEGER of a throttle: as in wb_throttle
-- @column   arg_paused_ns INTEGER of a throttle: as in wb_throttle
-- @column   arg_period_ns INTEGER of a throttle: as in wb_throttle
-- @column   arg_think_ns INTEGER of a throttle: as in wb_throttle
-- @column   arg_dirtied_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_dirty_ratelimit_bytes_per_s INTEGER of a throttle: as in
--   wb_throttle
-- @column   arg_task_ratelimit_bytes_per_s INTEGER of a throttle: as in
--   wb_throttle
-- @column   arg_dirty_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_setpoint_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_limit_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_wb_dirty_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_wb_setpoint_bytes INTEGER of a throttle: as in wb_throttle
-- @cost     420
CREATE VIEW tl_stall AS
WITH
  -- What the UI shows of a duration in a name.
  held AS (
    SELECT
      c.*,
      CASE
        WHEN c.call_ns >= 1e9 THEN printf('%.2f s', c.call_ns / 1e9)
        ELSE printf('%d ms', round(c.call_ns / 1e6))
      END AS length
    FROM _throttle_call AS c
  ),
  called AS (
    SELECT
      c.ts, c.end_ts, c.tid,
      CASE c.is_sync WHEN 1 THEN c.call || '()'
        ELSE 'write(' || coalesce(c.fd || ', ', '') || c.written_bytes || ')'
      END AS name,
      c.fd, c.written_bytes
    FROM wb_call AS c
    WHERE c.written_bytes > 0
      OR (c.is_sync = 1 AND (c.cut IS NULL OR c.errno IS NULL))
  ),
  -- depth: of slices that are as long, the outer one is first.
  slice AS (
    -- Of system calls those that held the thread, and that are no wait.
    SELECT
      0 AS depth,
      c.ts,
      c.end_ts - c.ts AS dur,
      c.tid, c.name,
      NULL AS flow,
      NULL AS why,
      'system call' AS kind,
      NULL AS cause,
      c.name AS what,
      NULL AS bdi,
      NULL AS slept_ns,
      NULL AS pauses_count,
      c.written_bytes, c.fd,
      NULL AS wait_id
    FROM called AS c
    CROSS JOIN wb_rule AS r
    WHERE c.end_ts - c.ts >= r.call_least_ns
      AND NOT EXISTS (
        SELECT 1
        FROM wb_stall AS s
        WHERE s.tid = c.tid
          AND s.ts = c.ts
          AND s.kind IN ('write', 'fsync', 'sync')
      )
    UNION ALL
    SELECT
      1, c.ts,
      c.end_ts - c.ts,
      c.tid,
      'balance_dirty_pages ' || c.length || ': ' || c.cause,
      NULL,
      'held for ' || c.length || ' by ' || c.pauses_count
        || CASE c.pauses_count WHEN 1 THEN ' pause, ' ELSE ' pauses, ' END
        || 'mostly: ' || c.cause,
      'call',
      c.cause,
      'balance_dirty_pages',
      c.bdi, c.slept_ns, c.pauses_count, NULL, NULL, NULL
    FROM held AS c
    UNION ALL
    SELECT
      2, s.ts, s.span_ns, s.tid,
      s.kind || CASE WHEN s.cause = 'unknown' THEN '' ELSE ': ' || s.cause END,
      NULL, y.why, s.kind, s.cause, s.what, s.bdi, NULL, NULL, NULL, NULL,
      s.wait_id
    FROM wb_stall AS s
    JOIN _stall_why AS y ON y.wait_id = s.wait_id
    UNION ALL
    SELECT
      3, r.wait_end_ts, 0, s.tid,
      'ended by ' || r.source,
      r.flow,
      'ended by ' || CASE r.source
        WHEN 'commit' THEN 'a commit of the journal'
        WHEN 'work' THEN 'work of the flusher'
        ELSE 'a request of the device'
      END,
      'end',
      NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM wb_release AS r
    CROSS JOIN wb_rule AS v
    JOIN wb_stall AS s
      ON s.wait_id = r.wait_id AND s.span_ns >= v.call_least_ns
  )
SELECT
  c.ts, c.dur,
  'Writeback stalls' AS track,
  c.name,
  NULL AS value,
  NULL AS unit,
  NULL AS rank,
  c.tid AS tid,
  CAST(c.flow AS TEXT) AS flows,
  c.why AS arg_why,
  c.kind AS arg_kind,
  c.cause AS arg_cause,
  c.what AS arg_what,
  c.bdi AS arg_bdi,
  s.cgroup_ino AS arg_cgroup_ino,
  s.comm AS arg_comm,
  s.dur AS arg_own_ns,
  s.basis AS arg_basis,
  s.cut AS arg_cut,
  c.slept_ns AS arg_slept_ns,
  c.pauses_count AS arg_pauses_count,
  c.written_bytes AS arg_written_bytes,
  c.fd AS arg_fd,
  round(s.pos_ratio, 6) AS arg_pos_ratio,
  round(s.global_pos_ratio, 6) AS arg_global_pos_ratio,
  round(s.wb_pos_ratio, 6) AS arg_wb_pos_ratio,
  round(s.global_share_ratio, 6) AS arg_global_share_ratio,
  round(s.journal_ratio, 6) AS arg_journal_ratio,
  round(s.device_ratio, 6) AS arg_device_ratio,
  round(s.server_ratio, 6) AS arg_server_ratio,
  round(s.kswapd_ratio, 6) AS arg_kswapd_ratio,
  l.finding AS arg_finding,
  l.holder_bdi AS arg_holder_bdi,
  l.holder_cgroup_ino AS arg_holder_cgroup_ino,
  round(l.holder_share_ratio, 6) AS arg_holder_share_ratio,
  y.domain AS arg_domain,
  y.pause_ns AS arg_pause_ns,
  y.paused_ns AS arg_paused_ns,
  y.period_ns AS arg_period_ns,
  y.think_ns AS arg_think_ns,
  y.dirtied_bytes AS arg_dirtied_bytes,
  y.dirty_ratelimit_bytes_per_s AS arg_dirty_ratelimit_bytes_per_s,
  y.task_ratelimit_bytes_per_s AS arg_task_ratelimit_bytes_per_s,
  y.dirty_bytes AS arg_dirty_bytes,
  y.setpoint_bytes AS arg_setpoint_bytes,
  y.limit_bytes AS arg_limit_bytes,
  y.wb_dirty_bytes AS arg_wb_dirty_bytes,
  y.wb_setpoint_bytes AS arg_wb_setpoint_bytes
FROM slice AS c
LEFT JOIN wb_stall AS s ON s.wait_id = c.wait_id
LEFT JOIN _stall_why AS y ON y.wait_id = c.wait_id
LEFT JOIN wb_loss AS l ON l.wait_id = c.wait_id
ORDER BY c.ts, c.dur DESC, c.depth;

-- @timeline tl_stall_task
-- @title    Waits of each task
-- @order    21
-- @group    Stalls
-- @track    *: what this task waited for at each moment: the innermost wait,
--   and its cause. The whole waits, with all values, are on its thread
-- @summary  What each task waited for at each moment, the task that waited
--   longest first.
-- @grain    piece of a wait; order ts
-- @events   as stalls
-- @optional sched:sched_switch
-- @column   arg_why TEXT in a sentence; of several waits the first
-- @column   arg_waits_count INTEGER waits that are too short to be seen apart
-- @column   arg_waited_ns INTEGER their time, without gaps
-- @column   arg_kind TEXT as in stalls
-- @column   arg_cause TEXT as in stalls
-- @column   arg_what TEXT event, system call or journal step
-- @column   arg_bdi TEXT backing device; NULL = not known
-- @column   arg_cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   arg_comm TEXT its name then
-- @column   arg_own_ns INTEGER its time without waits within it
-- @column   arg_basis TEXT how it was measured, as in stalls
-- @column   arg_cut TEXT start or end: under way when the trace began or ended;
--   NULL = neither
-- @column   arg_pos_ratio REAL as in stalls
-- @column   arg_global_pos_ratio REAL as in stalls
-- @column   arg_wb_pos_ratio REAL as in stalls
-- @column   arg_global_share_ratio REAL as in stalls
-- @column   arg_journal_ratio REAL as in stalls
-- @column   arg_device_ratio REAL as in stalls
-- @column   arg_server_ratio REAL as in stalls
-- @column   arg_kswapd_ratio REAL as in stalls
-- @column   arg_finding TEXT rule of sql/findings that tells of it
-- @column   arg_holder_bdi TEXT of a throttle: the wb, other than its own,
--   whose dirty pages filled most of the pool
-- @column   arg_holder_cgroup_ino INTEGER cgroup of that wb
-- @column   arg_holder_share_ratio REAL what that wb held of the pool
-- @column   arg_domain TEXT of a throttle: as in wb_throttle
-- @column   arg_pause_ns INTEGER of a throttle: as in wb_throttle
-- @column   arg_paused_ns INTEGER of a throttle: as in wb_throttle
-- @column   arg_period_ns INTEGER of a throttle: as in wb_throttle
-- @column   arg_think_ns INTEGER of a throttle: as in wb_throttle
-- @column   arg_dirtied_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_dirty_ratelimit_bytes_per_s INTEGER of a throttle: as in
--   wb_throttle
-- @column   arg_task_ratelimit_bytes_per_s INTEGER of a throttle: as in
--   wb_throttle
-- @column   arg_dirty_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_setpoint_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_limit_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_wb_dirty_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_wb_setpoint_bytes INTEGER of a throttle: as in wb_throttle
-- @cost     250
CREATE VIEW tl_stall_task AS
WITH
  pixel AS (
    SELECT (b.last_ts - b.first_ts) / v.drawn_steps_count AS ns
    FROM wb_bounds AS b
    CROSS JOIN wb_rule AS v
  ),
  part AS (
    SELECT
      p.wait_id, p.tid, p.from_ts, p.to_ts,
      lag(p.to_ts) OVER same AS before_ts,
      lag(p.to_ts - p.from_ts) OVER same AS before_ns,
      lag(p.wait_id) OVER same AS before_wait_id
    FROM wb_wait_piece AS p
    WINDOW same AS (PARTITION BY p.tid ORDER BY p.from_ts, p.to_ts)
  ),
  -- Pieces of a wait that touch are one, and so are waits alike that nobody
  -- could see apart; the thread's own track has each.
  piece AS (
    SELECT
      p.wait_id, p.tid, p.from_ts, p.to_ts,
      CASE
        WHEN p.before_ts = p.from_ts AND p.before_wait_id = p.wait_id THEN 0
        WHEN p.from_ts - p.before_ts <= x.ns
          AND p.to_ts - p.from_ts < x.ns
          AND p.before_ns < x.ns
          AND s.kind = o.kind
          AND s.cause = o.cause
          AND s.bdi IS o.bdi
          THEN 0
        ELSE 1
      END AS is_new
    FROM part AS p
    CROSS JOIN pixel AS x
    CROSS JOIN wb_stall AS s ON s.wait_id = p.wait_id
    LEFT JOIN wb_stall AS o ON o.wait_id = p.before_wait_id
  ),
  numbered AS (
    SELECT
      p.*,
      sum(p.is_new) OVER (
        PARTITION BY p.tid ORDER BY p.from_ts, p.to_ts ROWS UNBOUNDED PRECEDING
      ) AS stretch
    FROM piece AS p
  ),
  whole AS (
    SELECT
      min(n.wait_id) AS wait_id,
      min(n.from_ts) AS from_ts,
      max(n.to_ts) AS to_ts,
      sum(n.to_ts - n.from_ts) AS waited_ns,
      count(DISTINCT n.wait_id) AS waits_count
    FROM numbered AS n
    GROUP BY n.tid, n.stretch
  ),
  summed AS (
    SELECT
      w.wait_id, w.from_ts, w.to_ts, w.waited_ns, w.waits_count, s.tid,
      s.task_id,
      sum(w.waited_ns) OVER (PARTITION BY s.tid, s.task_id) AS total_ns
    FROM whole AS w
    CROSS JOIN wb_stall AS s ON s.wait_id = w.wait_id
  ),
  ranked AS (
    SELECT
      m.*,
      dense_rank() OVER (ORDER BY m.total_ns DESC, m.tid, m.task_id) AS place
    FROM summed AS m
  )
SELECT
  p.from_ts AS ts,
  p.to_ts - p.from_ts AS dur,
  'Writeback/Stalls/stalls of ' || coalesce(k.path, 'tid ' || p.tid) AS track,
  s.kind || CASE WHEN s.cause = 'unknown' THEN '' ELSE ': ' || s.cause END
    || CASE WHEN p.waits_count > 1 THEN ' x ' || p.waits_count ELSE '' END
    AS name,
  NULL AS value,
  NULL AS unit,
  p.place AS rank,
  y.why AS arg_why,
  p.waits_count AS arg_waits_count,
  p.waited_ns AS arg_waited_ns,
  s.kind AS arg_kind,
  s.cause AS arg_cause,
  s.what AS arg_what,
  s.bdi AS arg_bdi,
  s.cgroup_ino AS arg_cgroup_ino,
  s.comm AS arg_comm,
  s.dur AS arg_own_ns,
  s.basis AS arg_basis,
  s.cut AS arg_cut,
  round(s.pos_ratio, 6) AS arg_pos_ratio,
  round(s.global_pos_ratio, 6) AS arg_global_pos_ratio,
  round(s.wb_pos_ratio, 6) AS arg_wb_pos_ratio,
  round(s.global_share_ratio, 6) AS arg_global_share_ratio,
  round(s.journal_ratio, 6) AS arg_journal_ratio,
  round(s.device_ratio, 6) AS arg_device_ratio,
  round(s.server_ratio, 6) AS arg_server_ratio,
  round(s.kswapd_ratio, 6) AS arg_kswapd_ratio,
  l.finding AS arg_finding,
  l.holder_bdi AS arg_holder_bdi,
  l.holder_cgroup_ino AS arg_holder_cgroup_ino,
  round(l.holder_share_ratio, 6) AS arg_holder_share_ratio,
  y.domain AS arg_domain,
  y.pause_ns AS arg_pause_ns,
  y.paused_ns AS arg_paused_ns,
  y.period_ns AS arg_period_ns,
  y.think_ns AS arg_think_ns,
  y.dirtied_bytes AS arg_dirtied_bytes,
  y.dirty_ratelimit_bytes_per_s AS arg_dirty_ratelimit_bytes_per_s,
  y.task_ratelimit_bytes_per_s AS arg_task_ratelimit_bytes_per_s,
  y.dirty_bytes AS arg_dirty_bytes,
  y.setpoint_bytes AS arg_setpoint_bytes,
  y.limit_bytes AS arg_limit_bytes,
  y.wb_dirty_bytes AS arg_wb_dirty_bytes,
  y.wb_setpoint_bytes AS arg_wb_setpoint_bytes
FROM ranked AS p
CROSS JOIN wb_stall AS s ON s.wait_id = p.wait_id
CROSS JOIN _stall_why AS y ON y.wait_id = s.wait_id
LEFT JOIN wb_loss AS l ON l.wait_id = s.wait_id
LEFT JOIN wb_task AS k ON k.task_id = p.task_id;

-- @timeline tl_stall_count
-- @title    Waiting tasks
-- @order    20
-- @group    Stalls: Which tasks wait, for what, and why. Each moment of a task
--   counts once, for the innermost wait; docs/stalls.md has the causes.
-- @track    tasks in * [tasks]: tasks that wait in this way at this moment
-- @summary  How many tasks wait at a time, by kind of wait.
-- @grain    change of one curve; order ts
-- @sorted
-- @events   as stalls
-- @optional sched:sched_switch
-- @cost     190
CREATE VIEW tl_stall_count AS
WITH
  border AS (
    SELECT p.from_ts AS ts, w.kind, 1 AS step
    FROM wb_wait_piece AS p
    JOIN wb_wait AS w ON w.wait_id = p.wait_id
    UNION ALL
    SELECT p.to_ts, w.kind, -1
    FROM wb_wait_piece AS p
    JOIN wb_wait AS w ON w.wait_id = p.wait_id
  ),
  change AS (
    SELECT b.ts, b.kind, sum(b.step) AS step
    FROM border AS b
    GROUP BY b.kind, b.ts
  )
SELECT
  c.ts,
  NULL AS dur,
  'Writeback/Stalls/tasks in ' || c.kind AS track,
  NULL AS name,
  sum(c.step) OVER (
    PARTITION BY c.kind ORDER BY c.ts ROWS UNBOUNDED PRECEDING
  ) AS value,
  'tasks' AS unit
FROM change AS c;

-- @timeline tl_held
-- @title    Blocked tasks
-- @order    19
-- @group    Stalls: How many tasks wait at this moment, in whatever way. Below:
--   for what, which, and why. Each moment of a task counts once, for the
--   innermost wait; docs/stalls.md has the causes.
-- @parent
-- @sorted
-- @summary  How many tasks wait at a time.
-- @grain    change; order ts
-- @events   as stalls
-- @optional sched:sched_switch
-- @cost     110
CREATE VIEW tl_held AS
WITH
  border AS (
    SELECT p.from_ts AS ts, 1 AS step
    FROM wb_wait_piece AS p
    JOIN wb_stall AS s ON s.wait_id = p.wait_id
    WHERE s.kind <> 'block queue'
    UNION ALL
    SELECT p.to_ts, -1
    FROM wb_wait_piece AS p
    JOIN wb_stall AS s ON s.wait_id = p.wait_id
    WHERE s.kind <> 'block queue'
  ),
  change AS (
    SELECT b.ts, sum(b.step) AS step
    FROM border AS b
    GROUP BY b.ts
  )
SELECT
  c.ts,
  NULL AS dur,
  'Writeback/Stalls' AS track,
  NULL AS name,
  sum(c.step) OVER (ORDER BY c.ts ROWS UNBOUNDED PRECEDING) AS value,
  'tasks' AS unit
FROM change AS c;

-- @view     _stall_why
-- @summary  Each wait in a sentence: what the kernel saw when it decided, or
--   what the task waited for.
-- @grain    wait; order wait_id
-- @key      wait_id
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
CREATE VIEW _stall_why AS
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

-- @view     _throttle_call
-- @summary  Calls of balance_dirty_pages() that slept: how long each held its
--   task up, all its pauses together.
-- @grain    call; order tid, ts
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
-- @cost     160
CREATE VIEW _throttle_call AS
WITH
  -- Most calls have one event.
  single AS (
    SELECT
      c.seq,
      min(c.ts, c.sleep_ts) AS first_ts,
      c.paused_ns,
      c.sleep_ts + c.slept_ns AS end_ts,
      c.tid, c.task_id, c.bdi, c.call_ns, c.slept_ns,
      1 AS pauses_count,
      c.seq AS worst_seq
    FROM wb_throttle AS c
    WHERE c.is_step = 1
      AND c.is_first = 1
      AND c.is_last = 1
      AND c.slept_ns > 0
  ),
  numbered AS (
    SELECT
      c.seq, c.ts, c.tid, c.task_id, c.bdi, c.is_first, c.paused_ns, c.sleep_ts,
      c.slept_ns, c.call_ns,
      sum(c.is_first) OVER (
        PARTITION BY c.tid ORDER BY c.seq ROWS UNBOUNDED PRECEDING
      ) AS call
    FROM wb_throttle AS c
    WHERE c.is_step = 1 AND (c.is_first = 0 OR c.is_last = 0)
  ),
  ranked AS (
    SELECT
      n.*,
      row_number() OVER (
        PARTITION BY n.tid, n.call ORDER BY n.slept_ns DESC, n.seq
      ) AS place
    FROM numbered AS n
  ),
  several AS (
    SELECT
      max(r.seq) AS seq,
      min(min(r.ts, r.sleep_ts)) AS first_ts,
      max(CASE WHEN r.is_first = 1 THEN r.paused_ns END) AS paused_ns,
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
  call AS (
    SELECT s.* FROM single AS s
    UNION ALL
    SELECT s.* FROM several AS s
  ),
  placed AS (
    SELECT
      c.*,
      -- What it took before its first event is in whole jiffies, begun ones
      -- too: it is at least one less.
      c.first_ts - max(
        coalesce(
          c.paused_ns - u.second_ns / nullif(CAST(h.value AS INTEGER), 0), 0
        ),
        0
      ) AS begin_ts,
      lag(c.end_ts) OVER (PARTITION BY c.tid ORDER BY c.seq) AS before_ts
    FROM call AS c
    CROSS JOIN wb_units AS u
    CROSS JOIN run_summary AS h ON h.key = 'hz'
  )
SELECT
  p.seq,
  -- Not call_ns before its end, which is in jiffies, too: that may be before
  -- the system call that it is in.
  max(p.begin_ts, coalesce(p.before_ts, p.begin_ts)) AS ts,
  p.end_ts, p.tid, p.task_id, p.bdi,
  coalesce(k.cause, 'unknown') AS cause,
  p.worst_seq,
  coalesce(p.call_ns, p.end_ts - p.first_ts) AS call_ns,
  p.slept_ns, p.pauses_count
FROM placed AS p
LEFT JOIN wb_throttle_cause AS k ON k.seq = p.worst_seq;
