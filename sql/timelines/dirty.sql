-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages of the machine against their limits, drawn.

-- @timeline tl_dirty_state
-- @title    Where the dirty pages are
-- @order    30
-- @group    Dirty pages
-- @track    state: free run (nobody is throttled), below setpoint, above
--   setpoint, AT THE LIMIT (writers stand still)
-- @summary  In which part of the control range the machine's dirty pages are.
-- @grain    stretch of one state; order ts
-- @events   writeback:global_dirty_state
-- @column   arg_why TEXT the numbers at its begin
-- @column   arg_dirty_bytes INTEGER at its begin
-- @column   arg_limit_bytes INTEGER at its begin
-- @column   arg_setpoint_bytes INTEGER at its begin
-- @column   arg_freerun_bytes INTEGER at its begin
-- @cost     32
CREATE VIEW tl_dirty_state AS
WITH
  placed AS (
    SELECT
      d.seq, d.ts, d.until_ts, d.dirty_bytes, d.limit_bytes, d.setpoint_bytes,
      d.freerun_bytes,
      CASE
        WHEN d.dirty_bytes >= d.limit_bytes THEN 'AT THE LIMIT'
        WHEN d.dirty_bytes > d.setpoint_bytes THEN 'above setpoint'
        WHEN d.dirty_bytes > d.freerun_bytes THEN 'below setpoint'
        ELSE 'free run'
      END AS state
    FROM _dirty_drawn AS d
    -- Thresholds of a real-time task are higher than those of all others.
    WHERE d.is_boosted = 0 AND d.limit_bytes IS NOT NULL
  ),
  changed AS (
    SELECT
      p.*,
      CASE
        WHEN lag(p.state) OVER (ORDER BY p.seq) = p.state THEN 0
        ELSE 1
      END AS is_new
    FROM placed AS p
  ),
  begun AS (
    SELECT
      c.*,
      lead(c.ts) OVER (ORDER BY c.seq) AS next_ts,
      (SELECT max(p.until_ts) FROM placed AS p) AS last_ts
    FROM changed AS c
    WHERE c.is_new = 1
  )
SELECT
  b.ts,
  coalesce(b.next_ts, b.last_ts) - b.ts AS dur,
  'Writeback/Dirty pages/state' AS track,
  b.state AS name,
  NULL AS value,
  NULL AS unit,
  mib!(b.dirty_bytes) || ' dirty; free run ends at ' || mib!(b.freerun_bytes)
    || ', setpoint ' || mib!(b.setpoint_bytes)
    || ', limit ' || mib!(b.limit_bytes) AS arg_why,
  b.dirty_bytes AS arg_dirty_bytes,
  b.limit_bytes AS arg_limit_bytes,
  b.setpoint_bytes AS arg_setpoint_bytes,
  b.freerun_bytes AS arg_freerun_bytes
FROM begun AS b;

-- @timeline tl_dirty_pages
-- @title    Dirty pages
-- @order    31
-- @group    Dirty pages
-- @track    position: 0 where free run ends, 100 at the limit; below 0 nobody
--   is throttled, and the kernel steers towards the setpoint, 50
-- @track    setpoint of limit [percent]: in % of the limit, on one scale with
--   the next two
-- @track    freerun of limit [percent]: likewise; below, nobody is throttled
-- @track    bg_thresh of limit [percent]: likewise; the flusher works above
-- @track    dirty + writeback [bytes]: what the kernel compares with its
--   thresholds, NFS unstable pages included
-- @track    dirty [bytes]: pages of files that are to be written
-- @track    writeback [bytes]: pages that are being written, swap included
-- @track    limit [bytes]: max(thresh, dirty_limit): here the rate of a task
--   becomes 0
-- @track    setpoint [bytes]: (limit + freerun) / 2, where dirty pages settle
-- @track    freerun [bytes]: (thresh + bg_thresh) / 2: below, no task is
--   throttled
-- @track    thresh [bytes]: vm.dirty_ratio or dirty_bytes as a number of bytes
-- @track    thresh - thresh/4 [bytes]: lower end of the control range of the
--   2011 patches, which goes up to thresh
-- @track    bg_thresh [bytes]: vm.dirty_background_ratio: the flusher works
--   above
-- @summary  Dirty and writeback pages of the machine against their thresholds.
-- @grain    sample of one curve; order ts
-- @sorted
-- @events   writeback:global_dirty_state
-- @cost     110
CREATE VIEW tl_dirty_pages AS
WITH
  curve(place, track, unit) AS (
    SELECT 0, 'Writeback/Dirty pages/dirty + writeback', 'bytes'
    UNION ALL SELECT 1, 'Writeback/Dirty pages/dirty', 'bytes'
    UNION ALL SELECT 2, 'Writeback/Dirty pages/writeback', 'bytes'
    UNION ALL SELECT 3, 'Writeback/Dirty pages/limit', 'bytes'
    UNION ALL SELECT 4, 'Writeback/Dirty pages/setpoint', 'bytes'
    UNION ALL SELECT 5, 'Writeback/Dirty pages/freerun', 'bytes'
    UNION ALL SELECT 6, 'Writeback/Dirty pages/thresh', 'bytes'
    UNION ALL SELECT 7, 'Writeback/Dirty pages/thresh - thresh\/4', 'bytes'
    UNION ALL SELECT 8, 'Writeback/Dirty pages/bg_thresh', 'bytes'
    UNION ALL SELECT 9, 'Writeback/Dirty pages/position', 'ratio'
    UNION ALL SELECT 10, 'Writeback/Dirty pages/setpoint of limit', 'ratio'
    UNION ALL SELECT 11, 'Writeback/Dirty pages/freerun of limit', 'ratio'
    UNION ALL SELECT 12, 'Writeback/Dirty pages/bg_thresh of limit', 'ratio'
  )
SELECT
  d.ts,
  NULL AS dur,
  c.track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN d.dirty_bytes
    WHEN 1 THEN d.nr_dirty_bytes
    WHEN 2 THEN d.nr_writeback_bytes
    WHEN 3 THEN d.limit_bytes
    WHEN 4 THEN d.setpoint_bytes
    WHEN 5 THEN d.freerun_bytes
    WHEN 6 THEN d.thresh_bytes
    WHEN 7 THEN d.thresh_bytes - d.thresh_bytes / 4
    WHEN 8 THEN d.bg_thresh_bytes
    WHEN 9 THEN 1.0 * (d.dirty_bytes - d.freerun_bytes)
      / nullif(d.limit_bytes - d.freerun_bytes, 0)
    WHEN 10 THEN 1.0 * d.setpoint_bytes / nullif(d.limit_bytes, 0)
    WHEN 11 THEN 1.0 * d.freerun_bytes / nullif(d.limit_bytes, 0)
    WHEN 12 THEN 1.0 * d.bg_thresh_bytes / nullif(d.limit_bytes, 0)
  END AS value,
  c.unit
FROM _dirty_drawn AS d
CROSS JOIN curve AS c
-- Thresholds of a real-time task are higher than those of all others.
WHERE c.place <= 2 OR d.is_boosted = 0;

-- @timeline tl_dirty_ratio
-- @title    Dirty pages against the limit
-- @order    29
-- @group    Dirty pages: Dirty and writeback pages of the machine, in % of the
--   limit, at which tasks stand still. Below: where that is between free run
--   and the limit, and the curves that it is made of.
-- @parent
-- @sorted
-- @summary  Dirty and writeback pages of the machine in % of the limit.
-- @grain    sample; order ts
-- @events   writeback:global_dirty_state
CREATE VIEW tl_dirty_ratio AS
SELECT
  d.ts,
  NULL AS dur,
  'Writeback/Dirty pages' AS track,
  NULL AS name,
  1.0 * d.dirty_bytes / nullif(d.limit_bytes, 0) AS value,
  'ratio' AS unit
FROM _dirty_drawn AS d
-- Thresholds of a real-time task are higher than those of all others.
WHERE d.is_boosted = 0;

-- @timeline tl_dirtied_written
-- @title    Pages dirtied and written
-- @order    70
-- @group    Dirtied and written: What the whole machine dirtied and wrote since
--   the trace began, from the kernel's counters.
-- @track    dirtied since start [bytes]: pages dirtied; can go back, because a
--   page that a file system dirties again is taken off
-- @track    written since start [bytes]: pages whose writeback ended, swap
--   included
-- @track    dirtied - written [gap]: the gap between the two
-- @track    unexplained gap [gap]: the gap without what is still dirty or
--   being written: grows when dirty data is deleted, or was dirtied again
-- @summary  Pages dirtied and written since the start, and the gap between.
-- @grain    sample of one curve; order ts
-- @sorted
-- @events   writeback:global_dirty_state
-- @cost     35
CREATE VIEW tl_dirtied_written AS
WITH
  curve(place, track) AS (
    SELECT 0, 'Writeback/Dirtied and written/dirtied since start'
    UNION ALL SELECT 1, 'Writeback/Dirtied and written/written since start'
    UNION ALL SELECT 2, 'Writeback/Dirtied and written/dirtied - written'
    UNION ALL SELECT 3, 'Writeback/Dirtied and written/unexplained gap'
  ),
  origin AS (
    SELECT
      d.dirtied_total_bytes, d.written_total_bytes,
      d.nr_dirty_bytes + d.nr_writeback_bytes AS cached_bytes
    FROM _dirty_drawn AS d
    ORDER BY d.seq
    LIMIT 1
  ),
  since AS (
    SELECT
      d.ts,
      d.dirtied_total_bytes - o.dirtied_total_bytes AS dirtied,
      d.written_total_bytes - o.written_total_bytes AS written,
      d.nr_dirty_bytes + d.nr_writeback_bytes - o.cached_bytes AS growth
    FROM _dirty_drawn AS d
    CROSS JOIN origin AS o
  )
SELECT
  s.ts,
  NULL AS dur,
  c.track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN s.dirtied
    WHEN 1 THEN s.written
    WHEN 2 THEN s.dirtied - s.written
    WHEN 3 THEN s.dirtied - s.written - s.growth
  END AS value,
  'bytes' AS unit
FROM since AS s
CROSS JOIN curve AS c;

-- @timeline tl_pool
-- @title    Whose dirty pages fill the pool
-- @order    33
-- @group    Dirty pages
-- @track    held by * [held]: what this wb held of the machine's dirty pages,
--   mean of the window; those of a window add up to all of them
-- @summary  The machine's dirty pages, split by the wb that holds them.
-- @grain    window, bdi, cgroup; order ts
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
CREATE VIEW tl_pool AS
WITH
  held AS MATERIALIZED (
    SELECT
      -- Typed as that of windows, so that SQLite can make an index.
      CAST(p.window_start_ns AS INTEGER) AS window_start_ns,
      p.bdi, p.cgroup_ino, p.held_bytes
    FROM pool AS p
  ),
  holder AS (
    SELECT DISTINCT p.bdi, p.cgroup_ino FROM held AS p
  ),
  first_told AS (
    SELECT min(p.window_start_ns) AS window_start_ns FROM held AS p
  )
SELECT
  w.window_start_ns AS ts,
  NULL AS dur,
  'Writeback/Dirty pages/held by '
    || CASE
      WHEN h.bdi IS NULL THEN 'nobody known'
      ELSE device_part!(d.device, h.bdi)
        || CASE
          WHEN h.cgroup_ino > 1 THEN ' cgroup ' || h.cgroup_ino
          ELSE ''
        END
    END AS track,
  NULL AS name,
  -- A counter keeps its value, so one that holds nothing has to say so.
  coalesce(p.held_bytes, 0) AS value,
  'bytes' AS unit
FROM first_told AS t
JOIN wb_window AS w ON w.window_start_ns >= t.window_start_ns
CROSS JOIN holder AS h
LEFT JOIN wb_device AS d ON d.bdi = h.bdi
LEFT JOIN held AS p
  ON p.window_start_ns = w.window_start_ns
  AND p.bdi IS h.bdi
  AND p.cgroup_ino IS h.cgroup_ino;

-- @timeline tl_pool_share
-- @title    Who fills the pool
-- @order    29
-- @group    Dirty pages
-- @track    held by: shares of the dirty pages by the wb that holds them, the
--   largest three, mean of the window
-- @summary  Who holds the machine's dirty pages, in words.
-- @grain    window; order ts
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
-- @column   arg_why TEXT the same, in a sentence
-- @column   arg_held_bytes INTEGER dirty pages of all
CREATE VIEW tl_pool_share AS
WITH
  ranked AS (
    SELECT
      p.window_start_ns,
      CASE
        WHEN p.bdi IS NULL THEN 'unknown'
        ELSE coalesce(d.device, p.bdi)
          || CASE
            WHEN p.cgroup_ino > 1 THEN ' cgroup ' || p.cgroup_ino
            ELSE ''
          END
      END AS holder,
      p.held_bytes,
      sum(p.held_bytes) OVER (PARTITION BY p.window_start_ns) AS all_bytes,
      row_number() OVER (
        PARTITION BY p.window_start_ns ORDER BY p.held_bytes DESC, p.bdi,
          p.cgroup_ino
      ) AS place
    FROM pool AS p
    LEFT JOIN wb_device AS d ON d.bdi = p.bdi
  ),
  told AS (
    SELECT
      r.window_start_ns, r.all_bytes,
      group_concat(
        r.holder || ' '
          || CAST(round(100.0 * r.held_bytes / r.all_bytes) AS INTEGER)
          || ' %',
        ', '
      ) OVER (
        PARTITION BY r.window_start_ns ORDER BY r.place ROWS UNBOUNDED PRECEDING
      ) AS shares,
      row_number() OVER (
        PARTITION BY r.window_start_ns ORDER BY r.place DESC
      ) AS last_place
    FROM ranked AS r
    WHERE r.place <= 3 AND r.held_bytes > 0 AND r.all_bytes > 0
  )
SELECT
  t.window_start_ns AS ts,
  min(t.window_start_ns + q.window_ns, b.end_ts) - t.window_start_ns AS dur,
  'Writeback/Dirty pages/held by' AS track,
  t.shares AS name,
  NULL AS value,
  NULL AS unit,
  mib!(t.all_bytes) || ' dirty, held by ' || t.shares AS arg_why,
  CAST(t.all_bytes AS INTEGER) AS arg_held_bytes
FROM told AS t
CROSS JOIN wb_params AS q
CROSS JOIN wb_bounds AS b
WHERE t.last_place = 1;

-- @view     _dirty_drawn
-- @summary  Of wb_dirty_state what a curve of the whole run can show: all of
--   some ten thousand rows, else of each step the first, the last, and those
--   with the most and the least dirty pages and pages under writeback.
-- @grain    event; order seq
-- @key      seq
-- @materialize
-- @cost     250
CREATE VIEW _dirty_drawn AS
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
    FROM _dirty_step AS s
    CROSS JOIN raw_global_dirty_state AS g
      ON g.seq >= s.state_first_seq AND g.seq < s.state_after_seq
    -- Others say what one before them in the step said.
    WHERE coalesce(g.repeats_count, 0) = 0 OR g.seq = s.state_first_seq
    GROUP BY s.step_index
  ),
  chosen AS (
    SELECT g.seq
    FROM raw_global_dirty_state AS g
    WHERE NOT EXISTS (SELECT 1 FROM _dirty_step)
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
    JOIN _dirty_step AS s ON s.step_index = e.step_index
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

-- @view     _dirty_step
-- @summary  As many steps of the run as a wide screen has pixels, and the
--   records of each. More than four points of a curve in one are not seen.
--   Empty for a run with so few samples that all of them are drawn.
-- @grain    step; order step_index
-- @key      step_index
-- @column   step_index INTEGER 0 to 2047
-- @column   state_first_seq INTEGER its first global_dirty_state, or the first
--   behind it
-- @column   state_after_seq INTEGER the first of the next step
-- @materialize
-- @cost     70
CREATE VIEW _dirty_step AS
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
      seq_before!(b) AS seq
    FROM border AS b
  ),
  found AS (
    SELECT
      n.step_index,
      first_at!(raw_global_dirty_state, n) AS seq
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
