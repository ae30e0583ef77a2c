-- SPDX-License-Identifier: Apache-2.0
-- @finding   not_recorded
-- @title     Throttling was not recorded
-- @summary   The trace was made without balance_dirty_pages, so it cannot show
--   throttling. A text does not say which events were on: where it has no line
--   of this one, it was off, or no task was throttled.
-- @severity  warning
-- @confidence measured
-- @sentence  Whether tasks were throttled is unknown: {why}.
-- @evidence  event_counts
-- @advice    Record with a profile: record --profile writeback.
-- @column    cost_task_ns INTEGER 0
-- @column    confidence TEXT inferred of a text
-- @column    why TEXT what is missing
-- @source    docs/record.md
WITH
  source AS (
    SELECT
      EXISTS (
        SELECT 1 FROM raw_meta AS m
        WHERE m.key = 'format' AND m.value GLOB '* text'
      ) AS is_text
  )
SELECT
  0 AS cost_task_ns,
  CASE s.is_text WHEN 1 THEN 'inferred' ELSE 'measured' END AS confidence,
  CASE s.is_text
    WHEN 1 THEN 'the text has no balance_dirty_pages: it was not recorded, or'
      || ' no task was throttled'
    ELSE 'the trace was recorded without balance_dirty_pages'
  END AS why
FROM source AS s
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
