-- SPDX-License-Identifier: Apache-2.0
-- @finding   device_hung
-- @title     A device stopped
-- @summary   A device completed nothing for two seconds or more while it had a
--   request, and for four times as long as it otherwise takes for as much. It
--   is severe from 10 s on.
-- @severity  severe
-- @confidence measured
-- @sentence  {bdi} completed nothing for {silent_ns} while it had requests[,
--   until {end:raw}].
-- @evidence  block_latency: silent_ns = max(silent_max_ns, device={bdi})
-- @advice    No setting of writeback helps: look at the device, at limits that
--   a hypervisor sets it (burst credit), and at the log of the kernel (dmesg).
-- @events    block:block_rq_issue, block:block_rq_complete
-- @column    cost_task_ns INTEGER 0: waits for it have findings of their own
-- @column    severity TEXT severe or warning
-- @column    bdi TEXT the device, major:minor
-- @column   silent_ns INTEGER how long
-- @column    end TEXT the trace ended; NULL = it went on
-- @column    first_ts INTEGER ns, start
-- @column    last_ts INTEGER ns, end
-- @source    include/trace/events/block.h
SELECT
  0 AS cost_task_ns,
  CASE WHEN h.silent_ns >= 2 * v.worth_most_ns THEN 'severe' ELSE 'warning' END
    AS severity,
  h.device AS bdi,
  h.silent_ns,
  CASE WHEN h.silent_is_open THEN 'the trace ended' END AS end,
  h.silent_from_ts AS first_ts,
  h.silent_to_ts AS last_ts
FROM wb_busy AS h
CROSS JOIN wb_rule AS v
CROSS JOIN wb_bounds AS b
LEFT JOIN wb_disk_rate AS r ON r.bdi = h.device
WHERE is_hung!(h, v, r)
  AND h.device IN (SELECT q.device FROM wb_block_request AS q)
  AND h.silent_to_ts > b.start_ts AND h.silent_from_ts < b.end_ts
ORDER BY h.silent_ns DESC, h.device;
