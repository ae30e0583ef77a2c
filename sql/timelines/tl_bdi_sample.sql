-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_bdi_sample
-- @title    Dirty pages and throughput of each bdi
-- @order    42
-- @group    Backing devices: Statistics of each bdi, sampled by wbscope record,
--   also while no task is throttled. A curve of a rate shows the time up to its
--   next point.
-- @level    One backing device (bdi), or what one cgroup writes to it
-- @track    dirty [bytes]: dirty pages, not under writeback
-- @track    writeback [bytes]: pages under writeback
-- @track    wb_thresh [bytes]: its share of the dirty threshold
-- @track    dirtied [rate]: pages that were dirtied
-- @track    written [rate]: pages that were written
-- @track    write_bw [rate]: the kernel's smoothed estimate of written
-- @summary  Dirty and writeback pages of each bdi against its threshold, and
--   what was written against the estimate.
-- @grain    sample of one curve; order ts
CREATE VIEW tl_bdi_sample AS
WITH
  curve(place, name, unit) AS (
    SELECT 0, 'dirty', 'bytes'
    UNION ALL SELECT 1, 'writeback', 'bytes'
    UNION ALL SELECT 2, 'wb_thresh', 'bytes'
    UNION ALL SELECT 3, 'dirtied', 'bytes/s'
    UNION ALL SELECT 4, 'written', 'bytes/s'
    UNION ALL SELECT 5, 'write_bw', 'bytes/s'
  ),
  told AS (
    SELECT
      s.ts, s.dur_ns, s.bdi, s.cgroup_ino, s.dirty_bytes, s.writeback_bytes,
      s.wb_thresh_bytes, s.dirtied_bytes_per_s, s.written_bytes_per_s,
      s.write_bw_bytes_per_s
    FROM wb_bdi_sample AS s
    UNION ALL
    -- Behind the last sample nothing is known.
    SELECT max(s.ts) + 1, 0, s.bdi, s.cgroup_ino, 0, 0, 0, 0, 0, 0
    FROM wb_bdi_sample AS s
    GROUP BY s.bdi, s.cgroup_ino
  )
SELECT
  s.ts - CASE WHEN c.place IN (3, 4) THEN s.dur_ns ELSE 0 END AS ts,
  NULL AS dur,
  'Writeback/Backing devices/'
    || replace(
      replace(coalesce(d.device || ' ', '') || s.bdi, '\', '\\'),
      '/',
      '\/'
    )
    || CASE
      WHEN s.cgroup_ino = 1 THEN ' root cgroup'
      WHEN s.cgroup_ino > 1 THEN ' cgroup ' || s.cgroup_ino
      ELSE ''
    END
    || '/' || c.name AS track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN s.dirty_bytes
    WHEN 1 THEN s.writeback_bytes
    WHEN 2 THEN s.wb_thresh_bytes
    WHEN 3 THEN s.dirtied_bytes_per_s
    WHEN 4 THEN s.written_bytes_per_s
    WHEN 5 THEN s.write_bw_bytes_per_s
  END AS value,
  c.unit
FROM told AS s
CROSS JOIN curve AS c
LEFT JOIN wb_device AS d ON d.bdi = s.bdi
WHERE c.place NOT IN (3, 4) OR s.dur_ns IS NOT NULL;
