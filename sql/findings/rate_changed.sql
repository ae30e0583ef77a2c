-- SPDX-License-Identifier: Apache-2.0
-- @finding   rate_changed
-- @title     A device became slow or fast
-- @summary   The rate at which a device writes while it is busy changed for
--   good, at one moment of the run and at least threefold: its cache was full,
--   it grew hot, a slow part of a volume began, or another user began to use
--   it. Where it fell, other findings use the slow rate. Not judged where
--   requests became smaller, or fewer at a time, nor from samples.
-- @severity  note
-- @confidence measured
-- @sentence  {bdi} wrote {before_bytes_per_s} while it was busy until
--   {changed_after_ns} from the start, and {after_bytes_per_s} from then on.
-- @evidence  disk_rates: before_bytes_per_s = max(before_bytes_per_s,
--   bdi={bdi}); after_bytes_per_s = max(after_bytes_per_s, bdi={bdi});
--   changed_after_ns = max(changed_after_ns, bdi={bdi})
-- @events    block:block_rq_issue, block:block_rq_complete
-- @column    cost_task_ns INTEGER 0: what it cost others tell
-- @column   before_bytes_per_s REAL what it wrote while it was busy until then
-- @column   after_bytes_per_s REAL and from then on
-- @column    changed_after_ns INTEGER when, from the trace's start
-- @source    docs/findings.md
SELECT
  0 AS cost_task_ns,
  d.bdi, d.before_bytes_per_s, d.after_bytes_per_s,
  d.changed_ts - b.first_ts AS changed_after_ns
FROM wb_disk_rate AS d
CROSS JOIN wb_bounds AS b
WHERE in_time!(d.changed_ts, b)
  -- Once, of the one that is written to.
  AND d.bdi NOT IN (
    SELECT k.disk
    FROM wb_stack AS k
    JOIN wb_disk_rate AS o ON o.bdi = k.bdi
    WHERE o.changed_ts IS NOT NULL
  )
ORDER BY d.bdi;
