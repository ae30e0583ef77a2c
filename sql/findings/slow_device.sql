-- SPDX-License-Identifier: Apache-2.0
-- @finding   slow_device
-- @title     A device is slower than its writers
-- @summary   Tasks were throttled at the machine's limits while their own
--   device had requests all the time and its own wb held its share: they dirty
--   more than the device can write. A warning if one write was blocked for half
--   a second or more, as happens when writers run into the limit, or if small
--   requests held a task up for a fifth of its life; else throttling did its
--   work.
-- @when      slow_device
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} for {bdi}[, which writes
--   {disk_bytes_per_s}][ in requests of {request_bytes}][; it is slow itself:
--   the disks below it were busy for {below_ratio} of its time][; its pages are
--   compressed, or not all are written: {reached_ratio} of their bytes reached
--   the disk][; one write was blocked for {call_part_ns} of that][; {mate:raw}
--   wrote to {mate_bdi}, which lies on the same disk][; {light_task} waited
--   {light_ns} of it and dirtied {light_bytes}].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=slow_device,
--   bdi={bdi}); call_part_ns = max(call_part_max_ns, finding=slow_device,
--   bdi={bdi}); light_ns = sum(total_ns, finding=slow_device, bdi={bdi},
--   tid={light_tid})
-- @evidence  throttle_by_task --bdi {bdi}: light_bytes =
--   sum(dirtied_estimate_bytes, tid={light_tid}, bdi={bdi})
-- @evidence  disk_rates: disk_bytes_per_s = max(disk_bytes_per_s, bdi={bdi});
--   request_bytes = max(request_bytes, bdi={bdi}); below_ratio =
--   max(below_ratio, bdi={bdi}); reached_ratio = max(reached_ratio, bdi={bdi})
-- @advice    [No setting makes {disk_bdi} faster.][{loop_bdi} is at most as
--   fast as the disk of its file (loop_device).][Write more at a time: its
--   requests are of {request_bytes}, and a lower limit lets fewer of them
--   merge.][ Limit its writers to {wanted_bytes_per_s} in all.][ Let them start
--   writeback as they go ({how:raw}), so that dirty pages do not pile up to the
--   limit.]
-- @costs     The program takes as long as the disk does, which it does anyway.
-- @expect    throttle_summary.call_max_ns lower
-- @events    writeback:balance_dirty_pages
-- @column    severity TEXT warning or note
-- @column    title TEXT what it is where requests are small
-- @column    confidence TEXT inferred where the device's requests were not
--   recorded
-- @column    disk_bdi TEXT the device, where it is no loop device
-- @column    loop_bdi TEXT the device, where it is one (7:*)
-- @column    wanted_bytes_per_s REAL what it writes, where its throttled tasks
--   dirtied half of that or more
-- @column    how TEXT by which call; NULL = they dirty mappings, less than a
--   page in each write, or in small requests
-- @column    disk_bytes_per_s REAL what it writes; NULL = not known, or others
--   lie on its disk and wrote more
-- @column   call_part_ns INTEGER longest that one call of balance_dirty_pages()
--   was held up for this reason
-- @column   mate TEXT who wrote most to another device on the same disk; NULL =
--   none did
-- @column   mate_bdi TEXT that device
-- @column   light_task TEXT of those who waited, the one that waited longest
--   of all who dirtied next to nothing (wb_rule) beside another; NULL = none
-- @column   light_tid INTEGER its thread
-- @column   light_ns INTEGER what it waited
-- @column   light_bytes INTEGER what it dirtied
-- @source    mm/page-writeback.c balance_dirty_pages()
SELECT
  t.cost_task_ns,
  CASE
    WHEN t.call_max_ns >= v.long_call_ns THEN 'warning'
    -- It could write more in larger ones.
    WHEN p.request_bytes > 0
      AND t.life_ratio >= v.held_least_ratio
      AND t.cost_task_ns >= v.long_call_ns
      THEN 'warning'
    ELSE 'note'
  END AS severity,
  CASE WHEN p.request_bytes > 0
    THEN 'A device is busy with small requests'
  END AS title,
  CASE WHEN t.device_ratio IS NULL THEN 'inferred' ELSE 'measured' END
    AS confidence,
  t.tasks, t.bdi,
  CASE WHEN t.bdi GLOB '7:*' OR p.request_bytes > 0 THEN NULL ELSE t.bdi END
    AS disk_bdi,
  CASE WHEN t.bdi GLOB '7:*' THEN t.bdi END AS loop_bdi,
  p.request_bytes,
  CASE
    WHEN (
      SELECT
        1.0 * sum(h.accounted_bytes) * u.second_ns
          / nullif(max(h.ts) - min(h.ts), 0)
      FROM wb_throttle AS h
      WHERE h.is_step = 1 AND h.bdi = t.bdi
    ) >= v.most_ratio * d.disk_bytes_per_s
      THEN d.disk_bytes_per_s
  END AS wanted_bytes_per_s,
  CASE
    WHEN p.request_bytes > 0 THEN NULL
    WHEN o.has_calls = 0 THEN 'sync_file_range'
    WHEN c.write_bytes >= v.large_write_bytes
      THEN 'sync_file_range, or O_DIRECT'
    WHEN c.write_bytes >= u.page_bytes THEN 'sync_file_range'
  END AS how,
  -- Of a volume the disk's rate is not its own.
  CASE WHEN m.mate IS NULL THEN d.disk_bytes_per_s END AS disk_bytes_per_s,
  d.reached_ratio, d.below_ratio, t.call_part_ns,
  m.mate, m.mate_bdi,
  n.task AS light_task,
  n.tid AS light_tid,
  n.dur AS light_ns,
  n.bytes AS light_bytes,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN (
  SELECT
    EXISTS (SELECT 1 FROM wb_call AS k WHERE k.is_write >= 0)
    OR recorded!('syscalls:sys_enter_write') AS has_calls
) AS o
CROSS JOIN wb_units AS u
LEFT JOIN wb_disk_rate AS d ON d.bdi = t.bdi
LEFT JOIN wb_disk_backlog AS p ON p.bdi = t.bdi
LEFT JOIN same_disk!(z) AS m ON m.bdi = t.bdi AND m.place = 1
LEFT JOIN (
  SELECT l.bdi, avg(k.written_bytes) AS write_bytes
  FROM (
    SELECT DISTINCT s.bdi, s.tid FROM wb_loss AS s
    WHERE s.finding = 'slow_device'
  ) AS l
  CROSS JOIN wb_call AS k ON k.tid = l.tid
  WHERE k.written_bytes > 0
  GROUP BY l.bdi
) AS c ON c.bdi = t.bdi
LEFT JOIN (
  SELECT
    w.bdi, w.tid, w.bytes,
    task_name!(l) AS task,
    sum(l.dur) AS dur,
    row_number() OVER (
      PARTITION BY w.bdi ORDER BY sum(l.dur) DESC, w.tid
    ) AS place
  FROM (
    SELECT
      d.task_id, d.tid, d.bdi,
      d.estimate_bytes AS bytes,
      max(d.estimate_bytes) OVER (PARTITION BY d.bdi) AS most_bytes
    FROM wb_task_dirtied AS d
  ) AS w
  CROSS JOIN wb_rule AS v
  CROSS JOIN wb_bounds AS b
  CROSS JOIN wb_loss AS l ON l.task_id = w.task_id AND l.bdi = w.bdi
  WHERE w.bytes < v.light_most_ratio * w.most_bytes
    AND l.finding = 'slow_device'
    AND in_time!(l.ts, b)
  GROUP BY w.bdi, w.tid, l.comm, w.bytes, v.pause_max_ns
  HAVING sum(l.dur) >= v.pause_max_ns
) AS n ON n.bdi = t.bdi AND n.place = 1
WHERE t.finding = 'slow_device' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
