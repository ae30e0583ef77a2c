-- SPDX-License-Identifier: Apache-2.0
-- @finding   not_recorded
-- @title     Throttling was not recorded
-- @summary   The trace was made without balance_dirty_pages, so it cannot say
--   whether anybody was throttled.
-- @severity  warning
-- @confidence measured
-- @sentence  Whether anybody was throttled cannot be said: the trace was
--   recorded without balance_dirty_pages.
-- @evidence  event_counts
-- @advice    Record with a profile: record --profile writeback.
-- @needs     raw_event_format, raw_event_counts
-- @column    cost_task_ns INTEGER 0
-- @source    docs/record.md
SELECT 0 AS cost_task_ns
WHERE NOT EXISTS (
    SELECT 1
    FROM raw_event_format AS f
    WHERE f.event IN (
      'writeback:balance_dirty_pages',
      'writeback:writeback_balance_dirty_pages_waiting'
    )
  )
  AND NOT EXISTS (
    SELECT 1
    FROM raw_event_counts AS c
    WHERE c.event IN (
      'writeback:balance_dirty_pages',
      'writeback:writeback_balance_dirty_pages_waiting'
    )
  )
ORDER BY cost_task_ns;
