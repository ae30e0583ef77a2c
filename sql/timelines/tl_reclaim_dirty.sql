-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_reclaim_dirty
-- @title    Dirty pages that reclaim met
-- @order    123
-- @group    Reclaim
-- @track    nr_dirty node * total: file pages that reclaim met at the end of
--   this node's lists and that were dirty or being written, summed up
-- @track    nr_immediate node * total: pages that kswapd met again while their
--   writeback, which it waits for, went on, summed up
-- @track    immediate reclaim * total: dirty pages that reclaim did not write
--   but marked to be freed as soon as they are written, by zone, summed up
--   (the counter nr_vmscan_immediate_reclaim; of a patched kernel)
-- @summary  Dirty pages that reclaim met, by node, and those to be reclaimed
--   immediately, by zone where the kernel tells it.
-- @grain    sample of one curve; order ts
-- @sorted
-- @events   vmscan:mm_vmscan_lru_shrink_inactive
--   |vmscan:mm_vmscan_reclaim_writeback
CREATE VIEW tl_reclaim_dirty AS
WITH
  met AS (
    SELECT
      s.seq, s.ts,
      'nr_dirty node ' || s.nid AS curve,
      s.nr_dirty AS pages
    FROM raw_mm_vmscan_lru_shrink_inactive AS s
    WHERE s.nr_dirty > 0
    UNION ALL
    SELECT s.seq, s.ts, 'nr_immediate node ' || s.nid, s.nr_immediate
    FROM raw_mm_vmscan_lru_shrink_inactive AS s
    WHERE s.nr_immediate > 0
    UNION ALL
    SELECT
      y.seq, y.ts,
      'immediate reclaim node ' || y.node || ' ' || y.zone,
      y.pages_count
    FROM reclaim_writeback AS y
    WHERE y.outcome = 'declined'
  )
SELECT
  m.ts,
  NULL AS dur,
  'Writeback/Reclaim/' || m.curve || ' total' AS track,
  NULL AS name,
  sum(m.pages) OVER (
    PARTITION BY m.curve ORDER BY m.seq ROWS UNBOUNDED PRECEDING
  ) AS value,
  'pages' AS unit
FROM met AS m;
