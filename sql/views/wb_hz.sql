-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_hz
-- @summary  The kernel's HZ: what the recorder read, else inferred from the
--   times of balance_dirty_pages, which are whole jiffies in ms. NULL when
--   nothing was read and fewer than three different times were seen, or they
--   fit more than one HZ.
-- @grain    one row
-- @needs    wb_throttle_step, wb_units, raw_meta
-- @column   hz INTEGER jiffies in a second, or NULL
-- @column   jiffy_ns INTEGER ns in a jiffy, or NULL
-- @source   mm/page-writeback.c: pause * 1000 / HZ, truncated
-- @materialize
CREATE VIEW wb_hz AS
WITH
  time_ms AS (
    SELECT b.pause AS ms FROM wb_throttle_step AS b WHERE b.pause > 0
    UNION
    SELECT b.paused FROM wb_throttle_step AS b WHERE b.paused > 0
    UNION
    SELECT b.period FROM wb_throttle_step AS b WHERE b.period > 0
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
        i.hz
      ) AS hz
    FROM inferred AS i
  )
SELECT k.hz, u.second_ns / k.hz AS jiffy_ns
FROM known AS k
CROSS JOIN wb_units AS u;
