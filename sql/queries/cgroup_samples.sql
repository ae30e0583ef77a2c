-- SPDX-License-Identifier: Apache-2.0
-- Counters that were sampled.

-- @query    cgroup_samples
-- @title    Cgroups that write
-- @summary  Dirty pages, memory, writes and pressure of each cgroup that
--   writes, from samples of its files.
-- @read     A cgroup whose memory stands at its maximum has few pages that may
--   be dirty: its tasks are throttled while the machine has room. io_full is
--   the share of the time in which all its tasks that could run waited for I/O,
--   throttling among it. Sampled are eight cgroups at most.
-- @filters  window, range, cgroup
-- @grain    window, cgroup; order window_start_ns, cgroup_ino
-- @keys     window_start_ns, cgroup_ino
-- @column   window_start_ns INTEGER trace clock; also before the first event
-- @column   cgroup_ino INTEGER inode of the cgroup
-- @column   path TEXT its folder; NULL = not recorded
-- @column   dirty_bytes REAL dirty, not under writeback; mean of the samples
-- @column   writeback_bytes REAL under writeback; mean of the samples
-- @column   memory_bytes REAL all its memory; mean; NULL on version 1
-- @column   memory_max_bytes INTEGER memory.max; NULL = none
-- @column   max_events_count INTEGER times that it ran into memory.max
-- @column   written_bytes_per_s REAL by io.stat; NULL = no io controller
-- @column   io_some_ratio REAL share of the time in which a task waited for I/O
-- @column   io_full_ratio REAL share of the time in which all waited for I/O
-- @column   memory_full_ratio REAL share of the time in which all waited for
--   memory
-- @source   Documentation/admin-guide/cgroup-v2.rst
WITH
  placed AS (
    SELECT s.*
    FROM sampled!('cgroup') AS s
    CROSS JOIN wb_params AS p
    WHERE (p.cgroup_ino IS NULL OR s.cgroup_ino = p.cgroup_ino)
  )
SELECT
  s.window_start_ns, s.cgroup_ino,
  max(s.object) AS path,
  avg(s.dirty_bytes) AS dirty_bytes,
  avg(s.writeback_bytes) AS writeback_bytes,
  avg(s.memory_bytes) AS memory_bytes,
  max(s.memory_max_bytes) AS memory_max_bytes,
  sum(s.max_events_count) AS max_events_count,
  1.0 * sum(s.written_bytes) * max(u.second_ns) / sum(s.dur_ns)
    AS written_bytes_per_s,
  min(1.0, 1.0 * sum(s.some_ns) / sum(s.dur_ns)) AS io_some_ratio,
  min(1.0, 1.0 * sum(s.full_ns) / sum(s.dur_ns)) AS io_full_ratio,
  min(1.0, 1.0 * sum(s.memory_full_ns) / sum(s.dur_ns)) AS memory_full_ratio
FROM placed AS s
CROSS JOIN wb_units AS u
GROUP BY s.window_start_ns, s.cgroup_ino
ORDER BY s.window_start_ns, s.cgroup_ino;
