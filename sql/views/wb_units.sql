-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_units
-- @summary  What the kernel's units are worth; every conversion reads it.
-- @grain    one row
-- @needs    raw_meta
-- @column   page_bytes INTEGER size of a page of the traced machine; 4096 where
--   the trace does not tell (text), which wb_warning says
-- @column   long_bytes INTEGER size of a long of the traced kernel
-- @column   kib_bytes INTEGER bytes in a KiB; the kernel's "KB/s" are KiB/s
-- @column   sector_bytes INTEGER bytes in a sector of the block layer
-- @column   ms_ns INTEGER ns in a ms
-- @column   us_ns INTEGER ns in a us
-- @column   second_ns INTEGER ns in a second
-- @source   mm/page-writeback.c, include/linux/blk_types.h
-- @materialize
CREATE VIEW wb_units AS
SELECT
  coalesce(
    (SELECT m.value FROM raw_meta AS m WHERE m.key = 'page_bytes'), 4096
  ) AS page_bytes,
  (SELECT m.value FROM raw_meta AS m WHERE m.key = 'long_bytes') AS long_bytes,
  1024 AS kib_bytes,
  512 AS sector_bytes,
  1000000 AS ms_ns,
  1000 AS us_ns,
  1000000000 AS second_ns;
