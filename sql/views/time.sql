-- SPDX-License-Identifier: Apache-2.0
-- The time of interest and the windows that it is cut into.

-- @view     wb_trace
-- @shared
-- @summary  Where the trace begins and ends, whatever part is asked for. What
--   reads this and not wb_bounds is kept for all parts.
-- @grain    one row
-- @column   first_ts INTEGER first event of the trace, trace clock
-- @column   last_ts INTEGER last event of the trace, trace clock
-- @column   run_ns INTEGER how long was recorded, by meta.json of the recorder;
--   else, and where events are outside of that, from first_ts to last_ts
-- @materialize
CREATE VIEW wb_trace AS
SELECT
  m.first_ts, m.last_ts,
  max(
    CASE WHEN m.is_cut IS NULL AND m.record_ended_ts > m.record_started_ts
      THEN m.record_ended_ts - m.record_started_ts
      ELSE 0
    END,
    m.last_ts - m.first_ts
  ) AS run_ns
FROM (
  SELECT
    max(CASE o.key WHEN 'first_ts' THEN o.value END) AS first_ts,
    max(CASE o.key WHEN 'last_ts' THEN o.value END) AS last_ts,
    max(CASE o.key WHEN 'record_started_ts' THEN o.value END)
      AS record_started_ts,
    max(CASE o.key WHEN 'record_ended_ts' THEN o.value END) AS record_ended_ts,
    max(CASE WHEN o.key GLOB 'range_*_ts' AND o.value IS NOT NULL THEN 1 END)
      AS is_cut
  FROM raw_meta AS o
) AS m;

-- @view     wb_bounds
-- @summary  Where the trace begins and ends, and the part that is asked for.
-- @grain    one row
-- @column   start_ts INTEGER first time of interest
-- @column   end_ts INTEGER end of the time of interest
-- @column   asked_ns INTEGER how long that is: of all the trace what was
--   recorded (run_ns of wb_trace), of a part what lies in the trace
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
    FROM wb_trace AS t
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
-- @summary  Windows of equal length that tile the time of interest. Windows
--   are counted from its start, so the last one may be cut short. There are
--   100,000 at most: whoever sets the length makes it long enough.
-- @grain    window; order window_index
-- @key      window_index
-- @column   window_index INTEGER of wb_window; 0, 1, 2 ...
-- @column   window_start_ns INTEGER trace clock
-- @column   window_end_ns INTEGER trace clock
-- @materialize
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
  )
SELECT
  t.window_index, t.window_start_ns,
  t.window_start_ns + t.window_ns AS window_end_ns
FROM tiles AS t;

-- @view     wb_lost_window
-- @shared
-- @summary  Windows with a gap, where the ring buffer overran and events are
--   lost. A gap lies before the first event that was kept again, and is counted
--   in that event's window.
-- @grain    window with a gap; order window_index
-- @key      window_index
-- @column   window_index INTEGER of wb_window
-- @column   lost_gaps_count INTEGER gaps, of all CPUs
-- @materialize
CREATE VIEW wb_lost_window AS
SELECT
  (l.ts - b.start_ts) / p.window_ns AS window_index,
  count(*) AS lost_gaps_count
FROM raw_lost_events AS l
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS p
WHERE in_time!(l.ts, b)
GROUP BY 1;

-- @view     wb_window_seq
-- @shared
-- @summary  Which balance_dirty_pages events and which global_dirty_state
--   samples each window has. Records are numbered in the order of time.
-- @grain    window; order window_index
-- @key      window_index
-- @optional writeback:balance_dirty_pages, writeback:global_dirty_state
-- @column   throttle_first_seq INTEGER the first balance_dirty_pages event at
--   or after its start; NULL = there are none at all
-- @column   throttle_after_seq INTEGER the first behind it; the window has some
--   when this is larger
-- @column   state_first_seq INTEGER the first global_dirty_state sample at or
--   after its start; NULL = there are none at all
-- @column   state_after_seq INTEGER the first behind it
-- @materialize
-- @cost     30
CREATE VIEW wb_window_seq AS
WITH
  -- Starts of windows, and the end of the last one.
  border AS (
    SELECT w.window_index, w.window_start_ns AS ts
    FROM wb_window AS w
    UNION ALL
    SELECT max(w.window_index) + 1, b.end_ts
    FROM wb_window AS w
    CROSS JOIN wb_bounds AS b
    GROUP BY b.end_ts
  ),
  -- A record shortly before; the search goes on from there.
  near AS (
    SELECT
      b.window_index, b.ts,
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
      n.window_index,
      coalesce(
        (
          SELECT r.seq
          FROM raw_balance_dirty_pages AS r
          WHERE r.seq >= n.seq AND r.ts >= n.ts
          ORDER BY r.seq
          LIMIT 1
        ),
        (SELECT max(r.seq) FROM raw_balance_dirty_pages AS r) + 1
      ) AS throttle_seq,
      coalesce(
        (
          SELECT g.seq
          FROM raw_global_dirty_state AS g
          WHERE g.seq >= n.seq AND g.ts >= n.ts
          ORDER BY g.seq
          LIMIT 1
        ),
        (SELECT max(g.seq) FROM raw_global_dirty_state AS g) + 1
      ) AS state_seq
    FROM near AS n
  ),
  ranged AS (
    SELECT
      f.window_index,
      f.throttle_seq AS throttle_first_seq,
      lead(f.throttle_seq) OVER border AS throttle_after_seq,
      f.state_seq AS state_first_seq,
      lead(f.state_seq) OVER border AS state_after_seq
    FROM found AS f
    WINDOW border AS (ORDER BY f.window_index)
  )
SELECT
  w.window_index, r.throttle_first_seq, r.throttle_after_seq, r.state_first_seq,
  r.state_after_seq
FROM ranged AS r
JOIN wb_window AS w ON w.window_index = r.window_index;
