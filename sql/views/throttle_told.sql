-- SPDX-License-Identifier: Apache-2.0
-- Which balance_dirty_pages events tell something, and what all of them tell of
-- the kernel.

-- @view     wb_throttle_told
-- @shared
-- @summary  The balance_dirty_pages events that tell something, in the kernel's
--   units: those that charged dirtied pages, made the task sleep, went round
--   the loop or came after a think time of 500 ms and more. Most of a busy run
--   tell nothing.
-- @grain    event; order seq
-- @events   writeback:balance_dirty_pages
-- @column   seq INTEGER order of all records
-- @column   prev_seq INTEGER of the task's event before; NULL = none
-- @column   tid INTEGER thread
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb
-- @column   cgroup_path TEXT its path, in kernels that tell that instead
-- @column   pause INTEGER ms, intended sleep
-- @column   paused INTEGER ms, time in this call so far
-- @column   period INTEGER ms, what the dirtied pages are worth
-- @column   think INTEGER ms, since the end of the last pause
-- @column   dirtied INTEGER pages
-- @column   task_ratelimit INTEGER KiB/s
-- @column   wb_dirty INTEGER pages, dirty and under writeback, of the wb
-- @column   is_step INTEGER 1: it charged pages, slept or went round the loop
-- @source   mm/page-writeback.c balance_dirty_pages()
CREATE VIEW wb_throttle_told AS
SELECT
  r.seq, r.prev_seq, r.ts, r.tid, r.bdi, r.cgroup_ino, r.cgroup_path, r.pause,
  r.paused, r.period, r.think, r.dirtied, r.task_ratelimit, r.wb_dirty,
  CASE
    WHEN r.pause > 0
      OR r.paused > 0
      OR r.pause < -1000
      OR r.period <> 0
      OR r.period IS NULL
      OR r.pause IS NULL
      THEN 1
    ELSE 0
  END AS is_step
FROM raw_balance_dirty_pages AS r
-- As in the catalog (notable), word by word: ingest made an index of them.
WHERE r.pause > 0
  OR r.paused > 0
  OR r.pause < -1000
  OR r.period <> 0
  OR r.period IS NULL
  OR r.pause IS NULL
  OR r.think >= 500;

-- @view     wb_hz
-- @shared
-- @summary  The kernel's HZ: what the recorder read, else inferred from the
--   times of balance_dirty_pages, which are whole jiffies in ms. NULL when
--   nothing was read and fewer than three different times were seen, or they
--   fit more than one HZ.
-- @grain    one row
-- @column   hz INTEGER jiffies in a second, or NULL
-- @column   jiffy_ns INTEGER ns in a jiffy, or NULL
-- @source   mm/page-writeback.c: pause * 1000 / HZ, truncated
-- @materialize
-- @cost     33
CREATE VIEW wb_hz AS
WITH
  time_ms AS (
    SELECT t.pause AS ms FROM wb_throttle_told AS t WHERE t.pause > 0
    UNION
    SELECT t.paused FROM wb_throttle_told AS t WHERE t.paused > 0
    UNION
    SELECT t.period FROM wb_throttle_told AS t WHERE t.period > 0
  ),
  fits AS (
    SELECT
      count(*) AS times_count,
      sum(CASE WHEN ms % 10 = 0 THEN 1 ELSE 0 END) = count(*) AS fits_100,
      sum(CASE WHEN ms % 4 = 0 THEN 1 ELSE 0 END) = count(*) AS fits_250,
      sum(CASE WHEN ms % 10 IN (0, 3, 6) THEN 1 ELSE 0 END) = count(*)
        AS fits_300
    FROM time_ms
  ),
  inferred AS (
    SELECT
      CASE
        WHEN f.times_count < 3 OR (f.fits_100 AND f.fits_250) THEN NULL
        WHEN f.fits_100 THEN 100
        WHEN f.fits_250 THEN 250
        WHEN f.fits_300 THEN 300
        ELSE 1000
      END AS hz
    FROM fits AS f
  ),
  known AS (
    SELECT
      coalesce(
        (SELECT CAST(m.value AS INTEGER) FROM raw_meta AS m WHERE m.key = 'hz'),
        -- Asked only where that is not known.
        (SELECT i.hz FROM inferred AS i)
      ) AS hz
  )
SELECT k.hz, u.second_ns / k.hz AS jiffy_ns
FROM known AS k
CROSS JOIN wb_units AS u;
