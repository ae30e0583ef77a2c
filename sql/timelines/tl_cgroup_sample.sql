-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_cgroup_sample
-- @title    Cgroups that write
-- @order    131
-- @group    Cgroups: Files of the cgroups that write, sampled by wbscope
--   record. A curve of a rate or a share shows the time up to its next point.
-- @level    One cgroup; its path where the run folder has it
-- @track    dirty [bytes]: dirty pages, not under writeback (memory.stat)
-- @track    writeback [bytes]: pages under writeback
-- @track    memory [bytes]: all its memory (memory.current)
-- @track    memory.max [bytes]: the most that it may have
-- @track    written [rate]: what its tasks wrote to disks (io.stat)
-- @track    io full [share]: time in which all its tasks that could run waited
--   for I/O
-- @track    memory full [share]: time in which all waited for memory
-- @summary  Dirty pages, memory, writes and pressure of cgroups that write.
-- @grain    sample of one curve; order ts
CREATE VIEW tl_cgroup_sample AS
WITH
  curve(place, name, unit) AS (
    SELECT 0, 'dirty', 'bytes'
    UNION ALL SELECT 1, 'writeback', 'bytes'
    UNION ALL SELECT 2, 'memory', 'bytes'
    UNION ALL SELECT 3, 'memory.max', 'bytes'
    UNION ALL SELECT 4, 'written', 'bytes/s'
    UNION ALL SELECT 5, 'io full', 'ratio'
    UNION ALL SELECT 6, 'memory full', 'ratio'
  ),
  told AS (
    SELECT
      s.ts - CASE WHEN c.place > 3 THEN s.dur_ns ELSE 0 END AS ts,
      'Writeback/Cgroups/cgroup ' || s.cgroup_ino
        || coalesce(
          ' ' || replace(replace(s.path, '\', '\\'), '/', '\/'),
          ''
        ) || '/' || c.name AS track,
      CASE c.place
        WHEN 0 THEN s.dirty_bytes
        WHEN 1 THEN s.writeback_bytes
        WHEN 2 THEN s.memory_bytes
        WHEN 3 THEN s.memory_max_bytes
        WHEN 4 THEN 1.0 * s.written_bytes * u.second_ns / nullif(s.dur_ns, 0)
        WHEN 5 THEN min(1.0, 1.0 * s.io_full_ns / nullif(s.dur_ns, 0))
        WHEN 6 THEN min(1.0, 1.0 * s.memory_full_ns / nullif(s.dur_ns, 0))
      END AS value,
      c.unit
    FROM wb_cgroup_sample AS s
    CROSS JOIN curve AS c
    CROSS JOIN wb_units AS u
  ),
  last_told AS (
    SELECT max(s.ts) AS ts FROM wb_cgroup_sample AS s
  )
SELECT
  t.ts,
  NULL AS dur,
  t.track,
  NULL AS name,
  t.value, t.unit
FROM told AS t
WHERE t.value IS NOT NULL AND t.ts IS NOT NULL
UNION ALL
-- Behind the last sample nothing is known.
SELECT l.ts, NULL, t.track, NULL, 0, min(t.unit)
FROM told AS t
CROSS JOIN last_told AS l
WHERE t.unit <> 'bytes'
GROUP BY t.track, l.ts;
