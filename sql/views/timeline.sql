-- SPDX-License-Identifier: Apache-2.0
-- What the timeline of a run shows first.

-- @view     wb_timeline_order
-- @summary  Groups of the timeline that come first in this run: those about
--   what its tasks lost most time to.
-- @grain    group; order place
-- @needs    wb_loss
-- @column   group_name TEXT as in @group of sql/timelines
-- @column   place INTEGER order among them
CREATE VIEW wb_timeline_order AS
WITH
  lost AS (
    SELECT
      CASE
        WHEN l.kind = 'throttle' THEN 'throttling'
        WHEN l.kind IN ('direct reclaim', 'memcg reclaim', 'reclaim throttle')
          THEN 'reclaim'
        ELSE 'disk'
      END AS subject,
      sum(l.dur) AS lost_ns
    FROM wb_loss AS l
    WHERE l.finding IS NOT 'flusher_waits_journal'
    GROUP BY 1
  ),
  member(subject, place, step, group_name) AS (
    SELECT 'throttling', 0, 0, 'Dirty pages'
    UNION ALL SELECT 'throttling', 0, 1, 'Fairness'
    UNION ALL SELECT 'throttling', 0, 2, 'Throttled tasks'
    UNION ALL SELECT 'reclaim', 1, 0, 'Reclaim'
    UNION ALL SELECT 'reclaim', 1, 1, 'Zones'
    UNION ALL SELECT 'disk', 2, 0, 'Flusher work'
    UNION ALL SELECT 'disk', 2, 1, 'Block requests'
  )
SELECT 'What to look at' AS group_name, 0 AS place
UNION ALL
SELECT 'Stalls', 1
UNION ALL
SELECT
  m.group_name,
  1 + row_number() OVER (
    ORDER BY coalesce(l.lost_ns, 0) DESC, m.place, m.step
  )
FROM member AS m
LEFT JOIN lost AS l ON l.subject = m.subject;
