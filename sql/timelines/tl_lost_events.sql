-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_lost_events
-- @title    Lost events
-- @order    150
-- @group    Lost events: Where the ring buffer overran. What lies before a
--   mark, back to the CPU's event before it, is missing from every number.
-- @track    cpu *: gaps in what this CPU recorded; the mark is at the first
--   event after the gap
-- @track    any cpu: gaps that are not of one CPU
-- @summary  Where the ring buffer overran: sums over events are too small
--   there.
-- @grain    gap; order ts
-- @column   arg_cpu INTEGER of the gap; NULL = not told
-- @column   arg_count INTEGER events lost in it; NULL = not told
CREATE VIEW tl_lost_events AS
SELECT
  l.ts,
  NULL AS dur,
  'Writeback/Lost events/' || coalesce('cpu ' || l.cpu, 'any cpu') AS track,
  coalesce(l.count || ' ', '') || 'events lost' AS name,
  NULL AS value,
  NULL AS unit,
  l.cpu AS rank,
  l.cpu AS arg_cpu,
  l.count AS arg_count
FROM raw_lost_events AS l;
