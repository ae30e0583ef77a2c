-- SPDX-License-Identifier: Apache-2.0
-- @finding   page_a_pause
-- @title     A writer gets a page or two for each pause
-- @summary   Most pauses of a task were of 30 ms and more, each for two pages
--   or fewer: it writes some 100 KiB/s however fast its device is. The finding
--   that tells of its waits has the cause; this one has no cost.
-- @severity  note
-- @confidence measured
-- @sentence  {task} slept {pauses_count:time} for {bdi}, {slept_ns} in all, and
--   dirtied {dirtied_bytes}: most pauses were for a page or two[; {more:raw}
--   as well].
-- @evidence  throttle_by_task: pauses_count = sum(pauses_count, tid={tid},
--   comm={comm}, bdi={bdi}); slept_ns = sum(slept_total_ns, tid={tid},
--   comm={comm}, bdi={bdi}); dirtied_bytes = sum(dirtied_bytes, tid={tid},
--   comm={comm}, bdi={bdi})
-- @events    writeback:balance_dirty_pages
-- @column    cost_task_ns INTEGER 0
-- @column    task TEXT the task
-- @column   comm TEXT its name
-- @column    bdi TEXT the device
-- @column    pauses_count INTEGER its pauses for that device
-- @column    slept_ns INTEGER how long it slept in them
-- @column    dirtied_bytes INTEGER what its events charged
-- @column    more TEXT how many others of which the same can be said; NULL =
--   none
-- @source    mm/page-writeback.c wb_min_pause()
WITH
  paused AS (
    SELECT
      p.task_id, p.bdi,
      count(*) AS pauses_count,
      sum(p.slept_ns) AS slept_ns,
      sum(
        p.slept_ns >= v.page_pause_ns
        AND p.accounted_bytes BETWEEN 1 AND 2 * u.page_bytes
      ) AS small_count
    FROM wb_throttle_pause AS p
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_rule AS v
    CROSS JOIN wb_units AS u
    WHERE in_time!(p.ts, b)
    GROUP BY p.task_id, p.bdi
  ),
  chosen AS (
    SELECT
      p.*,
      nullif(count(*) OVER (PARTITION BY p.bdi) - 1, 0) || ' more' AS more,
      row_number() OVER (
        PARTITION BY p.bdi ORDER BY p.small_count DESC, p.task_id
      ) AS place
    FROM paused AS p
    CROSS JOIN wb_rule AS v
    WHERE p.small_count >= v.few_calls_count
      AND p.small_count >= v.most_ratio * p.pauses_count
  )
SELECT
  0 AS cost_task_ns,
  task_name!(k) AS task,
  k.comm, k.tid, c.bdi, c.pauses_count, c.slept_ns,
  (
    SELECT sum(t.charged_bytes)
    FROM wb_task_dirtied AS t
    WHERE t.task_id = c.task_id AND t.bdi = c.bdi
  ) AS dirtied_bytes,
  c.more
FROM chosen AS c
JOIN wb_task AS k ON k.task_id = c.task_id
WHERE c.place = 1
ORDER BY c.small_count DESC, c.bdi;
