-- SPDX-License-Identifier: Apache-2.0
-- @query    overview
-- @title    What is in the dataset
-- @summary  Runs, machines and kernels, how many runs have something wrong, and
--   how many say less than they should.
-- @grain    one row
-- @column   runs_count INTEGER runs
-- @column   hosts_count INTEGER machines by name; unknown is one
-- @column   kernels_count INTEGER releases
-- @column   first_date TEXT day of the first run; NULL = none is known
-- @column   last_date TEXT day of the last
-- @column   severe_count INTEGER runs with a severe finding
-- @column   warning_count INTEGER runs with a warning and no severe finding
-- @column   clear_count INTEGER runs with an all-clear (nothing_wrong, ok)
-- @column   damaged_count INTEGER runs of which only a part was read
-- @column   lossy_count INTEGER runs that lost events, however many
-- @column   faulty_count INTEGER runs that disagree with what is beside them
-- @column   unnamed_count INTEGER runs whose machine is not known
-- @column   versions_count INTEGER versions of wbscope that asked them
-- @column   events_count INTEGER events of all traces
-- @column   duration_ns INTEGER time of all traces together
WITH
  told AS (
    SELECT
      f.run,
      max(CASE WHEN f.severity = 'severe' THEN 1 ELSE 0 END) AS is_severe,
      max(CASE WHEN f.severity = 'warning' THEN 1 ELSE 0 END) AS is_warning,
      max(
        CASE WHEN f.id = 'nothing_wrong' AND f.severity = 'ok' THEN 1 ELSE 0 END
      ) AS is_clear
    FROM findings AS f
    GROUP BY f.run
  ),
  -- Of some gaps nobody knows how many events they cost: no number says so.
  lossy AS (
    SELECT DISTINCT w.run
    FROM run_warnings AS w
    WHERE w.slug IN ('lost-events', 'records-overwritten')
  )
SELECT
  count(*) AS runs_count,
  count(DISTINCT r.host) AS hosts_count,
  count(DISTINCT r.kernel) AS kernels_count,
  min(CASE WHEN r.date <> 'unknown' THEN r.date END) AS first_date,
  max(CASE WHEN r.date <> 'unknown' THEN r.date END) AS last_date,
  count(CASE WHEN t.is_severe = 1 THEN 1 END) AS severe_count,
  count(CASE WHEN t.is_severe = 0 AND t.is_warning = 1 THEN 1 END)
    AS warning_count,
  count(CASE WHEN t.is_clear = 1 THEN 1 END) AS clear_count,
  count(CASE WHEN r.damaged = 1 THEN 1 END) AS damaged_count,
  count(l.run) AS lossy_count,
  count(CASE WHEN r.faults_count > 0 THEN 1 END) AS faulty_count,
  count(CASE WHEN r.host = 'unknown' THEN 1 END) AS unnamed_count,
  count(DISTINCT r.wbscope_version) AS versions_count,
  CAST(coalesce(sum(r.events_count), 0) AS BIGINT) AS events_count,
  CAST(coalesce(sum(r.duration_ns), 0) AS BIGINT) AS duration_ns
FROM runs AS r
LEFT JOIN told AS t ON t.run = r.run
LEFT JOIN lossy AS l ON l.run = r.run;
