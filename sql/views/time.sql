-- SPDX-License-Identifier: Apache-2.0
-- The time of interest and the windows that it is cut into.

-- @view     wb_bounds
-- @summary  Where the trace begins and ends, and the part that is asked for.
-- @grain    one row
-- @column   start_ts INTEGER first time of interest
-- @column   end_ts INTEGER end of the time of interest
-- @column   asked_ns INTEGER how long that is: of all the trace what was
--   recorded (run_ns of wb_units), of a part what lies in the trace
-- @materialize
CREATE VIEW wb_bounds AS
WITH
  known AS (
    SELECT
      t.first_ts, t.last_ts, t.run_ns,
      -- A log without time stamps: every ts is 0.
      (
        SELECT 0
        FROM raw_meta AS m
        WHERE m.key = 'clock_unit' AND m.value = 'none'
      ) AS only_ts
    FROM wb_units AS t
  )
SELECT
  m.first_ts, m.last_ts,
  coalesce(p.t0_ns, m.first_ts, m.only_ts) AS start_ts,
  coalesce(p.t1_ns, m.last_ts + 1, m.only_ts + 1) AS end_ts,
  CASE
    WHEN coalesce(p.t0_ns <= m.first_ts, 1) AND coalesce(p.t1_ns > m.last_ts, 1)
      THEN m.run_ns
    ELSE min(coalesce(p.t1_ns, m.last_ts), m.last_ts)
      - coalesce(p.t0_ns, m.first_ts)
  END AS asked_ns
FROM known AS m
CROSS JOIN wb_params AS p;

-- @view     wb_window
-- @summary  Windows of equal length that tile the time of interest, and which
--   records each has; records are numbered in the order of time. Windows are
--   counted from its start, so the last one may be cut short. There are
--   100,000 at most: whoever sets the length makes it long enough.
-- @grain    window; order window_index
-- @key      window_index
-- @optional writeback:balance_dirty_pages, writeback:global_dirty_state
-- @column   window_index INTEGER of wb_window; 0, 1, 2 ...
-- @column   window_start_ns INTEGER trace clock
-- @column   window_end_ns INTEGER trace clock
-- @column   lost_gaps_count INTEGER gaps of all CPUs, where the ring buffer
--   overran and events are lost: a gap lies before the first event that was
--   kept again, and is counted in that event's window
-- @column   throttle_first_seq INTEGER the first balance_dirty_pages event at
--   or after its start; NULL = there are none at all
-- @column   throttle_after_seq INTEGER the first behind it; the window has some
--   when this is larger
-- @column   state_first_seq INTEGER the first global_dirty_state sample at or
--   after its start; NULL = there are none at all
-- @column   state_after_seq INTEGER the first behind it
-- @column   state_before_seq INTEGER the sample that is in force at its start;
--   NULL = none before
-- @column   state_last_seq INTEGER the last sample before its end; NULL = none
-- @materialize
-- @cost     30
CREATE VIEW wb_window AS
WITH RECURSIVE
  tiles(window_index, window_start_ns, window_ns, end_ts) AS (
    SELECT 0, b.start_ts, p.window_ns, b.end_ts
    FROM wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE b.start_ts IS NOT NULL
    UNION ALL
    SELECT
      t.window_index + 1,
      t.window_start_ns + t.window_ns,
      t.window_ns, t.end_ts
    FROM tiles AS t
    WHERE t.window_start_ns + t.window_ns < t.end_ts
      AND t.window_index + 1 < (SELECT v.windows_most_count FROM wb_rule AS v)
  ),
  -- Starts of windows, and the end of the last one.
  border AS (
    SELECT t.window_index, t.window_start_ns AS ts FROM tiles AS t
    UNION ALL
    SELECT max(t.window_index) + 1, t.end_ts FROM tiles AS t GROUP BY t.end_ts
  ),
  lost AS (
    SELECT
      (l.ts - b.start_ts) / p.window_ns AS window_index,
      count(*) AS gaps_count
    FROM raw_lost_events AS l
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE in_time!(l.ts, b)
    GROUP BY 1
  ),
  -- A record shortly before; the search goes on from there.
  near AS (
    SELECT
      b.window_index, b.ts,
      seq_before!(b) AS seq
    FROM border AS b
  ),
  found AS (
    SELECT
      n.window_index, n.ts,
      coalesce(
        first_at!(raw_balance_dirty_pages, n),
        (SELECT max(r.seq) FROM raw_balance_dirty_pages AS r) + 1
      ) AS throttle_seq,
      coalesce(
        first_at!(raw_global_dirty_state, n),
        (SELECT max(g.seq) FROM raw_global_dirty_state AS g) + 1
      ) AS state_seq
    FROM near AS n
  ),
  ranged AS (
    SELECT
      f.window_index,
      f.ts AS window_start_ns,
      f.throttle_seq AS throttle_first_seq,
      lead(f.throttle_seq) OVER windows AS throttle_after_seq,
      f.state_seq AS state_first_seq,
      lead(f.state_seq) OVER windows AS state_after_seq,
      lead(f.ts) OVER windows IS NULL AS is_last
    FROM found AS f
    WINDOW windows AS (ORDER BY f.window_index)
  )
SELECT
  r.window_index, r.window_start_ns,
  r.window_start_ns + p.window_ns AS window_end_ns,
  coalesce(l.gaps_count, 0) AS lost_gaps_count,
  r.throttle_first_seq, r.throttle_after_seq, r.state_first_seq,
  r.state_after_seq,
  (
    SELECT max(g.seq)
    FROM raw_global_dirty_state AS g
    WHERE g.seq < r.state_first_seq
  ) AS state_before_seq,
  (
    SELECT max(g.seq)
    FROM raw_global_dirty_state AS g
    WHERE g.seq < r.state_after_seq
  ) AS state_last_seq
FROM ranged AS r
CROSS JOIN wb_params AS p
LEFT JOIN lost AS l ON l.window_index = r.window_index
WHERE r.is_last = 0;
