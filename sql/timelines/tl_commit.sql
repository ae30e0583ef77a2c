-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_commit
-- @title    Commits of journals
-- @order    101
-- @group    Flusher work
-- @track    journal of *: commits of this device's journal
-- @summary  Commits of journals; arrows lead to the waits that they ended.
-- @grain    commit; order ts
-- @events   jbd2:jbd2_start_commit, jbd2:jbd2_end_commit
-- @column   arg_why TEXT how long it took, and who waited
-- @column   arg_bdi TEXT device of the journal
-- @column   arg_waits_count INTEGER waits that ended with it
CREATE VIEW tl_commit AS
WITH
  listed AS (
    SELECT
      r.source_id AS from_ts,
      group_concat(r.flow, ' ') OVER (
        PARTITION BY r.source_id ORDER BY r.flow ROWS UNBOUNDED PRECEDING
      ) AS flows,
      row_number() OVER (PARTITION BY r.source_id ORDER BY r.flow DESC)
        AS place,
      count(*) OVER (PARTITION BY r.source_id) AS waits_count
    FROM wb_release AS r
    WHERE r.source = 'commit'
  ),
  arrow AS (
    SELECT l.from_ts, l.flows, l.waits_count
    FROM listed AS l
    WHERE l.place = 1
  )
SELECT
  b.from_ts AS ts,
  b.to_ts - b.from_ts AS dur,
  'Writeback/Flusher work/journal of '
    || replace(
      replace(coalesce(d.device || ' ', '') || b.device, '\', '\\'),
      '/',
      '\/'
    ) AS track,
  'commit' AS name,
  NULL AS value,
  NULL AS unit,
  NULL AS rank,
  NULL AS tid,
  a.flows AS flows,
  printf('the journal committed for %.1f ms', (b.to_ts - b.from_ts) / 1e6)
    || coalesce(
      '; ' || a.waits_count || CASE a.waits_count
        WHEN 1 THEN ' wait ended with it'
        ELSE ' waits ended with it'
      END,
      ''
    ) AS arg_why,
  b.device AS arg_bdi,
  a.waits_count AS arg_waits_count
FROM wb_busy AS b
LEFT JOIN wb_device AS d ON d.bdi = b.device
LEFT JOIN arrow AS a ON a.from_ts = b.from_ts
WHERE b.resource = 'journal'
  -- Else the stretches are told from requests.
  AND EXISTS (SELECT 1 FROM raw_jbd2_start_commit);
