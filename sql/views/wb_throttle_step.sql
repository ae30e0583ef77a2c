-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle_step
-- @summary  The balance_dirty_pages events that did something: charged dirtied
--   pages, made the task sleep or went round the loop. Most events of a busy
--   run do nothing. In the kernel's units.
-- @grain    event; order seq
-- @key      seq
-- @needs    raw_balance_dirty_pages, wb_throttle_done
-- @events   writeback:balance_dirty_pages
-- @optional writeback:balance_dirty_pages_done
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER ns, trace clock
-- @column   tid INTEGER thread
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb
-- @column   cgroup_path TEXT its path, in kernels that tell that instead
-- @column   pause INTEGER ms, intended sleep
-- @column   paused INTEGER ms, time in this call so far
-- @column   period INTEGER ms, what the dirtied pages are worth
-- @column   dirtied INTEGER pages
-- @column   task_ratelimit INTEGER KiB/s
-- @column   is_charged INTEGER 1: dirtied was charged to the task
-- @column   next_seq INTEGER the task's next event, where this one has a pause
-- @column   next_ts INTEGER ns, of that event
-- @column   next_paused INTEGER ms, of that event
-- @column   goes_on INTEGER 1: this event is in the call of the one before
-- @column   will_go_on INTEGER 1: the next event is in this call
-- @column   done_ts INTEGER ns, when this call returned; NULL = not recorded
-- @column   is_done_async INTEGER 1: the call returned without this pause; NULL
--   without its return
-- @column   wait_ns INTEGER of wb_throttle_done
-- @column   wait_ts INTEGER ns, of wb_throttle_done
-- @column   call_ns INTEGER from the call's entry to its return
-- @source   mm/page-writeback.c balance_dirty_pages()
-- @materialize
CREATE VIEW wb_throttle_step AS
SELECT
  c.seq,
  c.ts,
  c.tid,
  c.bdi,
  c.cgroup_ino,
  c.cgroup_path,
  c.pause,
  c.paused,
  c.period,
  c.dirtied,
  c.task_ratelimit,
  -- Pause of no sleep and no cost: the kernel does not reset its count of
  -- dirtied pages, and the next event has them again.
  CASE WHEN c.pause <= 0 AND c.period = 0 AND c.pause >= -1000
    THEN 0 ELSE 1
  END AS is_charged,
  n.seq AS next_seq,
  n.ts AS next_ts,
  n.paused AS next_paused,
  -- The call's return proves it. Without: a call goes round again only at
  -- task_ratelimit 0 and after a sleep, which is part of paused, and keeps its
  -- dirtied count. One that left at task_ratelimit 0, as its wb had hardly a
  -- dirty page, is told from the next one by paused alone.
  CASE
    WHEN d.done_seq IS NOT NULL THEN 1 - d.is_first
    WHEN d.follows_done = 1 THEN 0
    WHEN c.paused >= p.paused + p.pause
      AND p.task_ratelimit = 0
      AND p.pause > 0
      AND p.bdi = c.bdi
      AND p.dirtied = c.dirtied
      THEN 1
    ELSE 0
  END AS goes_on,
  CASE
    WHEN d.done_seq IS NOT NULL THEN 1 - d.is_last
    WHEN d.precedes_done = 1 THEN 0
    WHEN n.paused >= c.paused + c.pause
      AND c.task_ratelimit = 0
      AND n.bdi = c.bdi
      AND n.dirtied = c.dirtied
      THEN 1
    ELSE 0
  END AS will_go_on,
  d.done_ts,
  d.is_async AS is_done_async,
  d.wait_ns,
  d.wait_ts,
  d.call_ns
FROM raw_balance_dirty_pages AS c
LEFT JOIN raw_balance_dirty_pages AS n
  ON c.pause > 0 AND n.prev_seq = c.seq
LEFT JOIN raw_balance_dirty_pages AS p
  ON c.paused > 0 AND p.seq = c.prev_seq
LEFT JOIN wb_throttle_done AS d ON d.seq = c.seq
WHERE c.pause > 0
  OR c.paused > 0
  OR c.pause < -1000
  OR c.period <> 0
  OR c.period IS NULL
  OR c.pause IS NULL;
