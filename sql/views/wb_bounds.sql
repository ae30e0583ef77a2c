-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_bounds
-- @summary  Where the trace begins and ends, and the part that is asked for.
-- @grain    one row
-- @needs    raw_meta, wb_params
-- @column   first_ts INTEGER first event of the trace, trace clock
-- @column   last_ts INTEGER last event of the trace, trace clock
-- @column   start_ts INTEGER first time of interest
-- @column   end_ts INTEGER end of the time of interest
-- @materialize
CREATE VIEW wb_bounds AS
WITH
  meta AS (
    SELECT
      (SELECT m.value FROM raw_meta AS m WHERE m.key = 'first_ts') AS first_ts,
      (SELECT m.value FROM raw_meta AS m WHERE m.key = 'last_ts') AS last_ts,
      -- A log without time stamps: every ts is 0.
      (
        SELECT 0
        FROM raw_meta AS m
        WHERE m.key = 'clock_unit' AND m.value = 'none'
      ) AS only_ts
  )
SELECT
  m.first_ts,
  m.last_ts,
  coalesce(p.t0_ns, m.first_ts, m.only_ts) AS start_ts,
  coalesce(p.t1_ns, m.last_ts + 1, m.only_ts + 1) AS end_ts
FROM meta AS m
CROSS JOIN wb_params AS p;
