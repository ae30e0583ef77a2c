-- SPDX-License-Identifier: Apache-2.0
-- Counters that were sampled.

-- @query    pressure
-- @title    Time lost waiting for a resource
-- @summary  The kernel's own measure of waits, PSI, for CPU, I/O and memory.
-- @read     Sleeps of balance_dirty_pages are waits for I/O to the kernel;
--   direct reclaim, and waits for pages that it took too early, are waits for
--   memory. some is the time in which a task waited, full that in which no
--   other could run either. Both are of one CPU, the mean of all CPUs weighted
--   by the time that each was not idle: of 2 busy CPUs with a waiting task on
--   one, some is 50 %. Between samples, a second apart as a rule.
-- @filters  window, range
-- @grain    window, resource; order window_start_ns, resource
-- @column   window_start_ns INTEGER trace clock; also before the first event
-- @column   resource TEXT cpu, io or memory
-- @column   some_ns INTEGER time in which a task of a CPU waited, mean of CPUs
--   by their time not idle; of one CPU: at least one task waited
-- @column   full_ns INTEGER the same of the time in which a task waited and no
--   other could run
-- @column   some_ratio REAL share of the time; at most 1, for the counter and
--   the clock are read one after the other
-- @column   full_ratio REAL share of the time; at most 1
-- @source   Documentation/accounting/psi.rst; kernel/sched/psi.c
WITH
  placed AS (
    SELECT s.*
    FROM sampled!('psi') AS s
  )
SELECT
  s.window_start_ns,
  s.object AS resource,
  sum(s.some_ns) AS some_ns,
  sum(s.full_ns) AS full_ns,
  min(1.0, 1.0 * sum(s.some_ns) / sum(s.dur_ns)) AS some_ratio,
  min(1.0, 1.0 * sum(s.full_ns) / sum(s.dur_ns)) AS full_ratio
FROM placed AS s
GROUP BY s.window_start_ns, s.object
ORDER BY s.window_start_ns, s.object;
