-- SPDX-License-Identifier: Apache-2.0
-- What balance_dirty_pages events say, drawn.

-- @timeline tl_throttle
-- @title    Throttled tasks
-- @order    50
-- @group    Throttled tasks: What balance_dirty_pages() asked of each task,
--   call by call, until the end of its last pause. The sleeps themselves are
--   slices on the threads.
-- @level    One task and the bdi, or cgroup on it, that it writes to
-- @track    pause: sleep that was asked for; 0 = none was due, negative
--   = the task lost more time elsewhere, as in a journal, than its pages cost
-- @track    paused: time that the call had taken until then; above 0 the
--   kernel went round its loop at the limit
-- @track    dirtied: pages that the task brought to this call
-- @summary  pause, paused and dirtied of every balance_dirty_pages event.
-- @grain    sample of one curve; order ts
-- @events   writeback:balance_dirty_pages
-- @cost     180
CREATE VIEW tl_throttle AS
WITH
  curve(place, name, unit) AS (
    SELECT 0, 'pause', 'ns'
    UNION ALL SELECT 1, 'paused', 'ns'
    UNION ALL SELECT 2, 'dirtied', 'bytes'
  ),
  told AS (
    SELECT
      t.ts, t.bdi, t.cgroup_ino, t.task_id, t.path, t.pause_ns, t.paused_ns,
      t.dirtied_bytes
    FROM _throttle_drawn AS t
    UNION ALL
    -- After the last pause on this wb nothing is asked any more.
    SELECT t.end_ts + 1, t.bdi, t.cgroup_ino, t.task_id, t.path, 0, 0, 0
    FROM (
      SELECT max(l.seq) AS seq
      FROM _throttle_drawn AS l
      GROUP BY l.task_id, l.bdi, l.cgroup_ino
    ) AS e
    CROSS JOIN _throttle_drawn AS t ON t.seq = e.seq
  )
SELECT
  t.ts,
  NULL AS dur,
  'Writeback/Throttled tasks/' || t.path || ' on '
    || device_part!(d.device, t.bdi)
    || CASE WHEN t.cgroup_ino > 1 THEN ' cgroup ' || t.cgroup_ino ELSE '' END
    || '/' || c.name AS track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN t.pause_ns
    WHEN 1 THEN t.paused_ns
    WHEN 2 THEN t.dirtied_bytes
  END AS value,
  c.unit AS unit,
  t.task_id AS rank
FROM told AS t
CROSS JOIN curve AS c
LEFT JOIN wb_device AS d ON d.bdi = t.bdi;

-- @timeline tl_task_ratelimit
-- @title    Rate limit of each task
-- @order    41
-- @group    Bandwidth
-- @track    task_ratelimit of *: rate that this task was allowed to dirty pages
--   at; 0 = it stood at the limit, or has ended
-- @track    pos_ratio of * [pos_ratio]: that rate in % of the base rate of its
--   bdi; below 100 there are more dirty pages than the kernel wants
-- @summary  What each task was allowed, and that in % of its bdi's base rate.
-- @grain    sample of one curve; order ts
-- @events   writeback:balance_dirty_pages
-- @cost     130
CREATE VIEW tl_task_ratelimit AS
WITH
  curve(place, name, unit) AS (
    SELECT 0, 'task_ratelimit of ', 'bytes/s'
    UNION ALL SELECT 1, 'pos_ratio of ', 'ratio'
  ),
  told AS (
    SELECT
      t.ts, t.bdi, t.cgroup_ino, t.task_id, t.path,
      t.task_ratelimit_bytes_per_s AS rate,
      1.0 * t.task_ratelimit_bytes_per_s
        / nullif(t.dirty_ratelimit_bytes_per_s, 0) AS pos_ratio
    FROM _throttle_drawn AS t
    UNION ALL
    -- After the last pause on this wb nothing is asked any more.
    SELECT t.end_ts + 1, t.bdi, t.cgroup_ino, t.task_id, t.path, 0, 0
    FROM (
      SELECT max(l.seq) AS seq
      FROM _throttle_drawn AS l
      GROUP BY l.task_id, l.bdi, l.cgroup_ino
    ) AS e
    CROSS JOIN _throttle_drawn AS t ON t.seq = e.seq
  )
SELECT
  t.ts,
  NULL AS dur,
  'Writeback/Bandwidth/'
    || device_part!(d.device, t.bdi)
    || CASE WHEN t.cgroup_ino > 1 THEN ' cgroup ' || t.cgroup_ino ELSE '' END
    || '/' || c.name || t.path AS track,
  NULL AS name,
  CASE c.place WHEN 0 THEN t.rate ELSE t.pos_ratio END AS value,
  c.unit,
  t.task_id AS rank
FROM told AS t
CROSS JOIN curve AS c
LEFT JOIN wb_device AS d ON d.bdi = t.bdi;

-- @timeline tl_memcg
-- @title    Memory cgroups
-- @order    130
-- @group    Memory cgroups: Limits of memory cgroups that throttled their
--   tasks, while they did so.
-- @level    One memory cgroup; its path where the run folder has it
-- @track    dirty [bytes]: dirty and writeback pages of the cgroup
-- @track    limit [bytes]: its own limit; kernels up to 6.14.1 do not tell it
-- @track    setpoint [bytes]: where its dirty pages should settle
-- @track    wb_dirty * [bytes]: those of one bdi
-- @track    wb_setpoint * [bytes]: the bdi's share of the setpoint
-- @summary  Dirty pages of memory cgroups against their own limits.
-- @grain    sample of one curve; order ts
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
CREATE VIEW tl_memcg AS
WITH
  named AS (
    SELECT
      t.ts, t.bdi,
      'Writeback/Memory cgroups/cgroup ' || t.cgroup_ino
        || coalesce(
          ' ' || replace(replace(g.path, '\', '\\'), '/', '\/'),
          ''
        ) || '/' AS parent,
      t.dirty_bytes, t.limit_bytes, t.setpoint_bytes, t.wb_dirty_bytes,
      t.wb_setpoint_bytes
    FROM _throttle_drawn AS t
    LEFT JOIN (
      SELECT c.cgroup_ino, min(c.path) AS path
      FROM raw_cgroup AS c
      GROUP BY c.cgroup_ino
    ) AS g ON g.cgroup_ino = t.cgroup_ino
    WHERE t.cgroup_ino <> 1 AND t.domain = 'memcg'
  ),
  curve(place, name) AS (
    SELECT 0, 'dirty'
    UNION ALL SELECT 1, 'limit'
    UNION ALL SELECT 2, 'setpoint'
    UNION ALL SELECT 3, 'wb_dirty '
    UNION ALL SELECT 4, 'wb_setpoint '
  )
SELECT
  n.ts,
  NULL AS dur,
  n.parent || c.name
    || CASE
      WHEN c.place > 2 THEN device_part!(d.device, n.bdi)
      ELSE ''
    END AS track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN n.dirty_bytes
    WHEN 1 THEN n.limit_bytes
    WHEN 2 THEN n.setpoint_bytes
    WHEN 3 THEN n.wb_dirty_bytes
    WHEN 4 THEN n.wb_setpoint_bytes
  END AS value,
  'bytes' AS unit
FROM named AS n
CROSS JOIN curve AS c
LEFT JOIN wb_device AS d ON d.bdi = n.bdi;

-- @timeline tl_wb_dirty
-- @title    Dirty pages of each bdi
-- @order    32
-- @group    Dirty pages
-- @track    wb_dirty * [bytes]: dirty and writeback pages of this bdi, or of
--   one cgroup on it, when a task was throttled
-- @track    wb_setpoint * [bytes]: its share of the setpoint
-- @summary  Dirty pages of each wb against its share of the setpoint.
-- @grain    sample of one curve; order ts
-- @sorted
-- @events   writeback:balance_dirty_pages
-- @cost     99
CREATE VIEW tl_wb_dirty AS
WITH
  curve(place, name) AS (
    SELECT 0, 'wb_dirty '
    UNION ALL SELECT 1, 'wb_setpoint '
  )
SELECT
  t.ts,
  NULL AS dur,
  'Writeback/Dirty pages/' || c.name
    || device_part!(d.device, t.bdi)
    || CASE WHEN t.cgroup_ino > 1 THEN ' cgroup ' || t.cgroup_ino ELSE '' END
    AS track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN t.wb_dirty_bytes
    WHEN 1 THEN t.wb_setpoint_bytes
  END AS value,
  'bytes' AS unit
FROM _throttle_drawn AS t
CROSS JOIN curve AS c
LEFT JOIN wb_device AS d ON d.bdi = t.bdi;

-- @view     _throttle_drawn
-- @summary  Of wb_throttle what the curves of tasks can show: all of some ten
--   thousand events, else of those that tell something, of each task, wb and
--   step of time, the first, the last, and those with the longest pause, most
--   pages and the highest and lowest rate; with the task's name as tracks have
--   it.
-- @grain    event; order seq
-- @key      seq
-- @column   end_ts INTEGER ns, end of the sleep that followed; ts without one
-- @materialize
-- @cost     370
CREATE VIEW _throttle_drawn AS
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
    FROM raw_balance_dirty_pages AS t
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_rule AS v
    WHERE is_told!(t)
      AND (SELECT z.events FROM size AS z) > v.drawn_most_count
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
LEFT JOIN wb_task AS k
  ON task_of!(k, t);
