-- SPDX-License-Identifier: Apache-2.0
-- Swap: the disks that it lies on, and whether pages went there.

-- @view     wb_swap_disk
-- @shared
-- @summary  The disks that swap lies on, and all that lies on them (wb_stack).
-- @grain    bdi; order bdi
-- @column   bdi TEXT of a disk, or of what lies on it
-- @materialize
CREATE VIEW wb_swap_disk AS
WITH
  disk AS (
    SELECT w.bdi FROM wb_swap_device AS w WHERE w.bdi IS NOT NULL
    UNION
    SELECT k.disk
    FROM wb_swap_device AS w
    JOIN wb_stack AS k ON k.bdi = w.bdi
  )
SELECT d.bdi
FROM disk AS d
UNION
SELECT k.bdi
FROM wb_stack AS k
WHERE k.disk IN (SELECT d.bdi FROM disk AS d);

-- @view     wb_swap_state
-- @shared
-- @summary  Whether pages went to a swap device, and whether files are written
--   to it, too.
-- @grain    one row
-- @optional vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage
-- @column   is_swapping INTEGER 1: pages went to a swap device
-- @column   is_shared INTEGER 1: and it is a disk that dirty pages are written
--   to as well, or the only disk
-- @materialize
CREATE VIEW wb_swap_state AS
WITH
  swapped AS (
    SELECT
      coalesce(
        d.device_count,
        (
          SELECT count(*)
          FROM raw_mm_vmscan_write_folio AS w
          WHERE w.reclaim_flags & 3 = 1
        )
      ) >= v.few_pages_count AS is_swapping
    FROM reclaim_destination AS d
    CROSS JOIN wb_rule AS v
  ),
  disk AS (
    SELECT count(DISTINCT b.device) AS disks_count
    FROM wb_busy AS b
    WHERE b.resource = 'device'
      AND b.device NOT IN (SELECT k.bdi FROM wb_stack AS k)
  )
SELECT
  s.is_swapping,
  CASE
    WHEN s.is_swapping = 1
      AND (
        EXISTS (
          SELECT 1
          FROM wb_swap_disk AS w
          WHERE w.bdi IN (
            SELECT t.bdi FROM raw_balance_dirty_pages AS t WHERE is_step!(t)
          )
        )
        OR (k.disks_count = 1 AND NOT EXISTS (SELECT 1 FROM wb_swap_device))
      )
      THEN 1
    ELSE 0
  END AS is_shared
FROM swapped AS s
CROSS JOIN disk AS k;

-- @view     wb_swap_only
-- @shared
-- @summary  Disks that nothing but swap is written to: no file's pages are
--   dirty for them. Where nothing tells where swap lies, those that wrote no
--   more than went there.
-- @grain    bdi; order bdi
-- @optional writeback:writeback_start, writeback:writeback_written,
--   writeback:balance_dirty_pages, block:block_rq_issue,
--   block:block_rq_complete
-- @column   bdi TEXT major:minor
-- @materialize
CREATE VIEW wb_swap_only AS
WITH
  filed AS (
    SELECT f.bdi
    FROM wb_flushed AS f
    CROSS JOIN wb_rule AS v
    WHERE f.pages_count >= v.few_pages_count
    UNION
    SELECT t.bdi FROM raw_balance_dirty_pages AS t WHERE is_step!(t)
  ),
  written AS (
    SELECT d.device AS bdi, sum(d.bytes) AS bytes
    FROM reclaim_destination AS r
    CROSS JOIN wb_rule AS v
    CROSS JOIN wb_block_done AS d
    WHERE r.device_count >= v.few_pages_count AND d.op = 'write'
    GROUP BY d.device
  )
SELECT w.bdi
FROM written AS w
CROSS JOIN reclaim_destination AS r
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u
WHERE CASE
    WHEN EXISTS (SELECT 1 FROM wb_swap_device)
      THEN w.bdi IN (SELECT k.bdi FROM wb_swap_disk AS k)
    -- Without the flushers' events nobody knows.
    WHEN EXISTS (SELECT 1 FROM wb_flushed)
      THEN w.bytes >= v.few_pages_count * u.page_bytes
        AND w.bytes <= r.device_count * u.page_bytes
    ELSE 0
  END
  AND w.bdi NOT IN (SELECT f.bdi FROM filed AS f)
  AND w.bdi NOT IN (
    SELECT k.disk
    FROM wb_stack AS k
    WHERE k.bdi IN (SELECT f.bdi FROM filed AS f)
  );
