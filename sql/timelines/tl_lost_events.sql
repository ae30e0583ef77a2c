-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_lost_events
-- @title    Lost events
-- @order    5
-- @summary  Where the ring buffer overran, and whether the trace is damaged:
--   sums over events are too small there.
-- @grain    gap; order ts
-- @needs    raw_lost_events, raw_meta
CREATE VIEW tl_lost_events AS
SELECT
  l.ts,
  NULL AS dur,
  'Writeback/Lost events' AS track,
  CASE WHEN l.count IS NULL THEN 'events lost on cpu ' || l.cpu
    ELSE l.count || ' events lost on cpu ' || l.cpu
  END AS name,
  NULL AS value,
  NULL AS unit,
  'cpu=' || l.cpu || '|count=' || coalesce(l.count, '') AS args
FROM raw_lost_events AS l
UNION ALL
SELECT
  e.value,
  NULL,
  'Writeback/Lost events',
  'the trace is damaged and was read only in part',
  NULL,
  NULL,
  'damage=' || coalesce(m.value, '')
FROM raw_meta AS d
JOIN raw_meta AS e ON e.key = 'last_ts'
LEFT JOIN raw_meta AS m ON m.key = 'damage'
WHERE d.key = 'damaged' AND d.value = 1;
