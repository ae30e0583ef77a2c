-- SPDX-License-Identifier: Apache-2.0
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
    FROM wb_dirty_drawn AS d
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
