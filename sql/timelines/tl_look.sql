-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_look
-- @title    What to look at
-- @order    10
-- @group    What to look at: Begin here. The three longest waits of each kind,
--   and places where numbers are too small because events are lost.
-- @track    What to look at: the longest waits of each kind, gaps of lost
--   events, damage
-- @summary  The longest waits of each kind, the largest gaps of lost events,
--   and whether the trace is damaged.
-- @grain    stall or gap; order ts
-- @needs    wb_stall, raw_lost_events, raw_meta, wb_bounds
-- @column   arg_tid INTEGER thread
-- @column   arg_comm TEXT its name then
-- @column   arg_kind TEXT of the wait, as in stalls
-- @column   arg_cause TEXT as in stalls
-- @column   arg_own_ns INTEGER its time without waits within it
-- @column   arg_bdi TEXT backing device; NULL = not known
-- @column   arg_cpu INTEGER of a gap; NULL = not told
-- @column   arg_count INTEGER events lost in it; NULL = not told
-- @column   arg_damage TEXT what is wrong with the trace
CREATE VIEW tl_look AS
WITH
  ranked AS (
    SELECT
      s.wait_id,
      row_number() OVER (PARTITION BY s.kind ORDER BY s.dur DESC, s.wait_id)
        AS place
    FROM wb_stall AS s
    WHERE s.dur IS NOT NULL
  ),
  gap AS (
    SELECT
      l.ts,
      l.cpu,
      l.count,
      row_number() OVER (ORDER BY l.count IS NULL, l.count DESC, l.ts, l.cpu)
        AS place
    FROM raw_lost_events AS l
  ),
  item AS (
    SELECT
      s.ts,
      s.span_ns AS dur,
      coalesce(s.comm, 'tid') || ' ' || s.tid
        || CASE r.place
          WHEN 1 THEN ', longest '
          WHEN 2 THEN ', second longest '
          ELSE ', third longest '
        END
        || s.kind
        || CASE WHEN s.cause = 'unknown' THEN '' ELSE ': ' || s.cause END
        AS name,
      r.wait_id,
      NULL AS cpu,
      NULL AS count,
      NULL AS damage
    FROM ranked AS r
    JOIN wb_stall AS s ON s.wait_id = r.wait_id
    WHERE r.place <= 3
    UNION ALL
    SELECT
      g.ts,
      NULL,
      coalesce(g.count || ' ', '')
        || 'events lost'
        || coalesce(' on cpu ' || g.cpu, ''),
      NULL,
      g.cpu,
      g.count,
      NULL
    FROM gap AS g
    WHERE g.place <= 100
    UNION ALL
    SELECT
      b.last_ts,
      NULL,
      'the trace is damaged and was read only in part',
      NULL,
      NULL,
      NULL,
      m.value
    FROM raw_meta AS d
    CROSS JOIN wb_bounds AS b
    LEFT JOIN raw_meta AS m ON m.key = 'damage'
    WHERE d.key = 'damaged' AND d.value = 1
  )
SELECT
  i.ts,
  i.dur,
  'Writeback/What to look at' AS track,
  i.name,
  NULL AS value,
  NULL AS unit,
  s.tid AS arg_tid,
  s.comm AS arg_comm,
  s.kind AS arg_kind,
  s.cause AS arg_cause,
  s.dur AS arg_own_ns,
  s.bdi AS arg_bdi,
  i.cpu AS arg_cpu,
  i.count AS arg_count,
  i.damage AS arg_damage
FROM item AS i
LEFT JOIN wb_stall AS s ON s.wait_id = i.wait_id;
