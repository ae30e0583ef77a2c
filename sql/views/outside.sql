-- SPDX-License-Identifier: Apache-2.0
-- When tasks stood still for a reason that no event of their own tells.

-- @view     wb_journal_basis
-- @shared
-- @summary  Whether an event of a journal tells when it commits. Else requests
--   of its thread do, which is inferred.
-- @grain    one row
-- @optional jbd2:jbd2_start_commit, xfs:xfs_log_cil_wait,
--   xfs:xfs_log_grant_sleep
-- @column   confidence TEXT measured or inferred
CREATE VIEW wb_journal_basis AS
SELECT
  CASE
    WHEN EXISTS (SELECT 1 FROM raw_jbd2_start_commit)
      OR EXISTS (SELECT 1 FROM raw_xfs_log_cil_wait)
      OR EXISTS (SELECT 1 FROM raw_xfs_log_grant_sleep)
      THEN 'measured'
    ELSE 'inferred'
  END AS confidence
FROM (SELECT 1 AS one) AS o;

-- @view     wb_watched
-- @shared
-- @summary  Which waits other than throttling the recorded events can tell.
-- @grain    one row
-- @optional sched:sched_switch, syscalls:sys_enter_write,
--   syscalls:sys_exit_write
-- @column   is_watched INTEGER 1: sleeps of tasks, or their writes, were
--   recorded; 0 = whatever else held a task up is not known
-- @column   has_calls INTEGER 1: writes of tasks were recorded
-- @column   is_deep INTEGER 1: sleeps, block requests and writes were, as with
--   the profile deep
CREATE VIEW wb_watched AS
SELECT
  s.has_sleeps OR s.has_calls AS is_watched,
  s.has_calls,
  s.has_sleeps AND s.has_calls AND s.has_requests AS is_deep
FROM (
  SELECT
    EXISTS (SELECT 1 FROM raw_sched_switch) AS has_sleeps,
    EXISTS (SELECT 1 FROM wb_call AS c WHERE c.is_write >= 0)
      OR EXISTS (
        SELECT 1 FROM raw_event_counts AS c
        WHERE c.event = 'syscalls:sys_enter_write'
      )
      OR EXISTS (
        SELECT 1 FROM raw_event_format AS f
        WHERE f.event = 'syscalls:sys_enter_write'
      ) AS has_calls,
    EXISTS (
      SELECT 1 FROM raw_event_format AS f
      WHERE f.event = 'block:block_rq_issue'
    )
    OR EXISTS (
      SELECT 1 FROM raw_event_counts AS c WHERE c.event = 'block:block_rq_issue'
    ) AS has_requests
) AS s;
