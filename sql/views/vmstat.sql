-- SPDX-License-Identifier: Apache-2.0
-- The counters of /proc/vmstat before and after the run, and what reclaim's
-- events add up to beside them.

-- @view     wb_vmstat
-- @shared
-- @summary  What the counters of /proc/vmstat gained during the run.
-- @grain    counter; order name
-- @column   name TEXT counter
-- @column   before_value INTEGER as in the file, most of them pages
-- @column   after_value INTEGER as in the file
-- @column   gained_count INTEGER after minus before, also of a counter of 32
--   bits that wrapped; NULL when one is missing, or it can only grow and did
--   not
-- @column   dur_ns INTEGER in this time: from its first sample in a Perfetto
--   trace to its last, which lie within the trace; NULL = from right before the
--   trace to right after it, as the files do
-- @source   mm/vmstat.c vmstat_start(): pgpgin and pgpgout are an unsigned long
--   of sectors, over 2
CREATE VIEW wb_vmstat AS
WITH
  told AS (
    SELECT
      v.name,
      v.name IN ('pgpgin', 'pgpgout') AS is_halved,
      v.name GLOB 'nr_*' AND v.name NOT IN ('nr_written', 'nr_vmscan_write')
        OR v.name = 'workingset_nodes' AS can_fall,
      max(CASE WHEN v.sample = 'before' THEN v.value END) AS before_value,
      max(CASE WHEN v.sample = 'after' THEN v.value END) AS after_value,
      max(CASE WHEN v.sample = 'after' THEN v.ts END)
        - max(CASE WHEN v.sample = 'before' THEN v.ts END) AS dur_ns
    FROM raw_vmstat AS v
    GROUP BY v.name
  ),
  gained AS (
    SELECT
      t.*,
      (
        (t.after_value - t.before_value + (u.long_half >> t.is_halved))
        & (u.long_mask >> t.is_halved)
      ) - (u.long_half >> t.is_halved) AS gained
    FROM told AS t
    CROSS JOIN wb_units AS u
  )
SELECT
  g.name, g.before_value, g.after_value,
  CASE WHEN g.gained >= 0 OR g.can_fall THEN g.gained END AS gained_count,
  -- Times that somebody wrote into files may be any.
  CASE WHEN g.dur_ns > 0 THEN g.dur_ns END AS dur_ns
FROM gained AS g;

-- @view     wb_refault
-- @shared
-- @summary  How much of what was read from disks had been in memory before.
-- @grain    one row; none where the run has no such counters
-- @column   refault_bytes INTEGER pages of files that were read again after
--   reclaim had dropped them (workingset_refault_file; up to 5.8
--   workingset_refault, with those of swap)
-- @column   read_bytes INTEGER that block devices read, swap among it (pgpgin)
-- @source   mm/workingset.c workingset_refault(); mm/vmstat.c
CREATE VIEW wb_refault AS
SELECT
  coalesce(
    max(CASE v.name WHEN 'workingset_refault_file' THEN v.gained_count END),
    max(CASE v.name WHEN 'workingset_refault' THEN v.gained_count END)
  ) * u.page_bytes AS refault_bytes,
  max(CASE v.name WHEN 'pgpgin' THEN v.gained_count END) * u.kib_bytes
    AS read_bytes
FROM wb_vmstat AS v
CROSS JOIN wb_units AS u
WHERE v.name IN ('workingset_refault_file', 'workingset_refault', 'pgpgin')
GROUP BY u.page_bytes, u.kib_bytes
HAVING count(v.gained_count) > 1;

-- @view     reclaim_vmstat
-- @summary  What reclaim scanned and freed, from /proc/vmstat before and after.
--   Up to 4.7 the counters are one for each zone and are added up; up to 3.3
--   kswapd_steal counts kswapd and pgsteal_<zone> all reclaimers. Up to 6.18
--   the counters leave memory cgroups out, from 6.19 on direct has them, too.
-- @grain    reclaimer; order reclaimer
-- @column   reclaimer TEXT kswapd, direct or other (khugepaged, proactive)
-- @column   scanned_count INTEGER pages; NULL = no such counter
-- @column   reclaimed_count INTEGER pages; NULL = no such counter
-- @column   scanned_per_ns REAL pages, over the time between the samples of
--   each counter; NULL = the counters are those of files
-- @source   mm/vmscan.c shrink_inactive_list(); include/linux/vm_event_item.h
CREATE VIEW reclaim_vmstat AS
WITH
  counter AS (
    SELECT
      CASE
        WHEN v.name IN (
          'pgscan_direct_throttle', 'pgscan_anon', 'pgscan_file',
          'pgsteal_anon', 'pgsteal_file'
        ) THEN NULL
        WHEN v.name GLOB 'pgscan_kswapd*' THEN 'kswapd'
        WHEN v.name GLOB 'pgsteal_kswapd*' THEN 'kswapd'
        WHEN v.name = 'kswapd_steal' THEN 'kswapd'
        WHEN v.name GLOB 'pgscan_direct*' THEN 'direct'
        WHEN v.name GLOB 'pgsteal_direct*' THEN 'direct'
        WHEN v.name IN (
          'pgsteal_dma', 'pgsteal_dma32', 'pgsteal_normal', 'pgsteal_high',
          'pgsteal_movable'
        ) THEN 'direct'
        WHEN v.name IN ('pgscan_khugepaged', 'pgscan_proactive') THEN 'other'
        WHEN v.name IN ('pgsteal_khugepaged', 'pgsteal_proactive') THEN 'other'
      END AS reclaimer,
      CASE WHEN v.name GLOB 'pgscan*' THEN v.gained_count END AS scanned,
      CASE WHEN v.name GLOB 'pgscan*' THEN 1.0 * v.gained_count / v.dur_ns END
        AS scanned_per_ns,
      CASE WHEN v.name NOT GLOB 'pgscan*' THEN v.gained_count END AS reclaimed
    FROM wb_vmstat AS v
  ),
  counted AS (
    SELECT c.reclaimer, c.scanned, c.reclaimed, c.scanned_per_ns
    FROM counter AS c
    WHERE c.reclaimer IS NOT NULL
    UNION ALL
    -- pgsteal_<zone> of those kernels has kswapd's pages too.
    SELECT 'direct', NULL, -v.gained_count, NULL
    FROM wb_vmstat AS v
    WHERE v.name = 'kswapd_steal'
  )
SELECT
  c.reclaimer,
  sum(c.scanned) AS scanned_count,
  sum(c.reclaimed) AS reclaimed_count,
  sum(c.scanned_per_ns) AS scanned_per_ns
FROM counted AS c
GROUP BY c.reclaimer;

-- @view     reclaim_total
-- @summary  What each kind of reclaimer scanned, freed and wrote, from events.
-- @grain    reclaimer; order reclaimer
-- @optional vmscan:mm_vmscan_lru_shrink_inactive,
--   vmscan:mm_vmscan_reclaim_writeback
-- @column   reclaimer TEXT kswapd, direct, memcg or other; node and proactive
--   where mm_vmscan_reclaim_writeback told that they wrote
-- @column   vmstat_reclaimer TEXT whose counters of /proc/vmstat have its
--   scans, as in reclaim_vmstat: of memcg direct from 6.19 on; NULL = none
-- @column   scanned_count INTEGER pages; NULL = the event was not recorded, or
--   node reclaim, whose scans are those of other
-- @column   reclaimed_count INTEGER pages; NULL as scanned_count
-- @column   anon_writes_count INTEGER pages, scaled as in reclaim_writes; NULL
--   = the event was not recorded
-- @column   file_writes_count INTEGER pages, scaled as in reclaim_writes
-- @source   mm/vmscan.c shrink_inactive_list()
-- @materialize
-- @cost     36
CREATE VIEW reclaim_total AS
WITH
  recorded AS (
    SELECT
      EXISTS (
        SELECT 1 FROM raw_event_format AS f
        WHERE f.event = 'vmscan:mm_vmscan_lru_shrink_inactive'
      ) AS has_scans,
      EXISTS (
        SELECT 1 FROM raw_event_format AS f
        WHERE f.event IN (
          'vmscan:mm_vmscan_write_folio',
          'vmscan:mm_vmscan_writepage',
          'vmscan:mm_vmscan_reclaim_writeback'
        )
      ) AS has_writes
  ),
  summed AS (
    SELECT
      w.reclaimer,
      sum(w.scanned_count) AS scanned,
      sum(w.reclaimed_count) AS reclaimed,
      sum(
        CASE
          WHEN w.work = 'write' AND w.reclaim_flags & 3 = 1
            THEN coalesce(w.pages_count, 1)
          ELSE 0
        END
      ) AS anon_writes,
      sum(
        CASE
          WHEN w.work = 'write' AND w.reclaim_flags & 3 = 2
            THEN coalesce(w.pages_count, 1)
          ELSE 0
        END
      ) AS file_writes
    FROM reclaim_work AS w
    CROSS JOIN wb_bounds AS b
    WHERE in_time!(w.ts, b)
    GROUP BY w.reclaimer
  ),
  kinds AS (
    SELECT 'kswapd' AS reclaimer
    UNION
    SELECT 'direct'
    UNION
    SELECT 'memcg'
    UNION
    SELECT 'other'
    UNION
    SELECT s.reclaimer
    FROM summed AS s
    WHERE s.anon_writes > 0 OR s.file_writes > 0
  )
SELECT
  k.reclaimer,
  CASE
    WHEN k.reclaimer <> 'memcg' THEN k.reclaimer
    WHEN n.version >= 6019 THEN 'direct'
  END AS vmstat_reclaimer,
  CASE WHEN r.has_scans AND k.reclaimer <> 'node'
    THEN coalesce(s.scanned, 0)
  END AS scanned_count,
  CASE WHEN r.has_scans AND k.reclaimer <> 'node'
    THEN coalesce(s.reclaimed, 0)
  END AS reclaimed_count,
  CASE
    WHEN r.has_writes
      THEN coalesce(s.anon_writes, 0) * c.pages_per_events_num
        / c.pages_per_events_den
  END AS anon_writes_count,
  CASE
    WHEN r.has_writes
      THEN coalesce(s.file_writes, 0) * c.pages_per_events_num
        / c.pages_per_events_den
  END AS file_writes_count
FROM kinds AS k
CROSS JOIN recorded AS r
CROSS JOIN reclaim_write_scale AS c
CROSS JOIN wb_trace AS n
LEFT JOIN summed AS s ON s.reclaimer = k.reclaimer;

-- @view     reclaim_write_scale
-- @shared
-- @summary  Pages for each mm_vmscan_write_folio event: the event does not say
--   how large its folio is, the counter nr_vmscan_write counts pages. A patched
--   kernel's mm_vmscan_reclaim_writeback does say: nothing is scaled then.
-- @grain    one row
-- @column   is_complete INTEGER 1: no event is lost, the trace is not damaged
--   and was read whole; else nothing is scaled
-- @column   basis TEXT reclaim_writeback or pfn: which event counts
-- @column   events_count INTEGER events in the whole trace
-- @column   pages_count INTEGER pages that they tell; NULL = they do not
-- @column   vmstat_count INTEGER pages that nr_vmscan_write gained, or NULL
-- @column   pages_per_events_num INTEGER pages = events * num / den
-- @column   pages_per_events_den INTEGER see above; 1 at least
-- @column   file_pages_count INTEGER pages of files among them, in the whole
--   trace; NULL = not known: events are missing, or of no kind
-- @source   mm/vmscan.c pageout(): node_stat_add_folio(folio, NR_VMSCAN_WRITE)
CREATE VIEW reclaim_write_scale AS
WITH
  totals AS (
    SELECT
      NOT EXISTS (SELECT 1 FROM raw_lost_events)
      AND NOT EXISTS (
        SELECT 1
        FROM raw_meta AS m
        WHERE m.key IN ('damaged', 'partial') AND m.value = 1
      ) AS is_complete,
      (
        SELECT count(*)
        FROM raw_mm_vmscan_reclaim_writeback AS y
        WHERE y.outcome = 0
      ) AS told_count,
      (
        SELECT coalesce(sum(y.nr_pages), 0)
        FROM raw_mm_vmscan_reclaim_writeback AS y
        WHERE y.outcome = 0
      ) AS told_pages_count,
      EXISTS (SELECT 1 FROM raw_mm_vmscan_reclaim_writeback) AS is_told,
      (
        SELECT coalesce(sum(y.nr_pages), 0)
        FROM raw_mm_vmscan_reclaim_writeback AS y
        WHERE y.outcome = 0 AND y.reclaim_flags & 3 = 2
      ) AS told_file_count,
      (
        SELECT count(*)
        FROM raw_mm_vmscan_write_folio AS w
        WHERE w.reclaim_flags & 3 = 2
      ) AS file_count,
      EXISTS (
        SELECT 1
        FROM raw_event_format AS f
        WHERE f.event IN (
          'vmscan:mm_vmscan_write_folio',
          'vmscan:mm_vmscan_writepage',
          'vmscan:mm_vmscan_reclaim_writeback'
        )
      ) AND NOT EXISTS (
        SELECT 1
        FROM raw_event_counts AS c
        WHERE c.event IN (
          'vmscan:mm_vmscan_write_folio',
          'vmscan:mm_vmscan_writepage',
          'vmscan:mm_vmscan_reclaim_writeback'
        ) AND c.loaded_count < c.count
      ) AS has_kinds,
      (
        SELECT coalesce(sum(c.count), 0)
        FROM raw_event_counts AS c
        WHERE c.event IN (
          'vmscan:mm_vmscan_write_folio', 'vmscan:mm_vmscan_writepage'
        )
      ) AS events_count,
      (
        SELECT v.gained_count
        FROM wb_vmstat AS v
        WHERE v.name = 'nr_vmscan_write'
      ) AS vmstat_count
  ),
  scaled AS (
    SELECT
      t.*,
      CASE
        WHEN t.is_complete
          AND NOT t.is_told
          AND t.events_count > 0
          AND t.vmstat_count > t.events_count
          THEN t.vmstat_count
        ELSE 1
      END AS pages_per_events_num,
      CASE
        WHEN t.is_complete
          AND NOT t.is_told
          AND t.events_count > 0
          AND t.vmstat_count > t.events_count
          THEN t.events_count
        ELSE 1
      END AS pages_per_events_den
    FROM totals AS t
  )
SELECT
  t.is_complete,
  CASE WHEN t.is_told THEN 'reclaim_writeback' ELSE 'pfn' END AS basis,
  CASE WHEN t.is_told THEN t.told_count ELSE t.events_count END AS events_count,
  CASE WHEN t.is_told THEN t.told_pages_count END AS pages_count,
  t.vmstat_count, t.pages_per_events_num, t.pages_per_events_den,
  CASE
    WHEN NOT t.is_complete OR NOT t.has_kinds THEN NULL
    WHEN t.is_told THEN t.told_file_count
    ELSE t.file_count * t.pages_per_events_num / t.pages_per_events_den
  END AS file_pages_count
FROM scaled AS t;

-- @view     reclaim_destination
-- @shared
-- @summary  Where the pages went that reclaim gave away to be written:
--   nr_vmscan_write counts all of them, other counters of /proc/vmstat those
--   that went to swap, and how. Of the whole run.
-- @grain    one row
-- @optional vmscan:mm_vmscan_write_folio, vmscan:mm_vmscan_writepage,
--   vmscan:mm_vmscan_reclaim_writeback
-- @column   all_count INTEGER pages that nr_vmscan_write gained; NULL = not
--   known
-- @column   device_count INTEGER of them to the swap device: pswpout, without
--   what zswap wrote out later (zswpwb); NULL = no such counter
-- @column   zswap_count INTEGER compressed in memory (zswpout); NULL = no such
--   counter, and the others leave a rest
-- @column   zero_count INTEGER zero-filled: a bit is set, nothing is written
--   (swpout_zero); 0 before 6.12, which does not look; NULL as zswap_count
-- @column   file_count INTEGER given to file systems, by the events; 0 from
--   6.16 on, where reclaim writes no files; NULL = not known
-- @column   rest_count INTEGER what none of these explains; NULL = they explain
--   more than there is: others write to swap, too, or the files do not enclose
--   the trace
-- @column   anon_count INTEGER all but file_count; NULL = not known
-- @column   unwritten_count INTEGER pages that surely reached no device; NULL
--   as rest_count
-- @source   mm/page_io.c swap_writepage(); mm/zswap.c zswap_store(),
--   zswap_writeback_entry(); mm/vmscan.c pageout()
-- @materialize
CREATE VIEW reclaim_destination AS
WITH
  gained AS (
    SELECT
      max(CASE v.name WHEN 'pswpout' THEN v.gained_count END) AS pswpout,
      max(CASE v.name WHEN 'zswpout' THEN v.gained_count END) AS zswpout,
      max(CASE v.name WHEN 'zswpwb' THEN v.gained_count END) AS zswpwb,
      max(CASE v.name WHEN 'swpout_zero' THEN v.gained_count END)
        AS swpout_zero
    FROM wb_vmstat AS v
  ),
  counted AS (
    SELECT
      s.vmstat_count AS all_count,
      max(g.pswpout - coalesce(g.zswpwb, 0), 0) AS device_count,
      g.zswpout AS zswap_count,
      CASE WHEN k.version < 6012 THEN coalesce(g.swpout_zero, 0)
        ELSE g.swpout_zero
      END AS zero_count,
      CASE
        WHEN s.file_pages_count <= s.vmstat_count THEN s.file_pages_count
        WHEN k.version >= 6016 THEN 0
      END AS file_count
    FROM reclaim_write_scale AS s
    CROSS JOIN gained AS g
    CROSS JOIN wb_trace AS k
  ),
  closed AS (
    SELECT
      c.*,
      c.all_count - c.device_count - coalesce(c.zswap_count, 0)
        - coalesce(c.zero_count, 0) - coalesce(c.file_count, 0) AS rest_count
    FROM counted AS c
  )
SELECT
  c.all_count, c.device_count,
  -- Where the others add up to all, those without a counter are none.
  CASE WHEN c.rest_count = 0 THEN coalesce(c.zswap_count, 0)
    ELSE c.zswap_count
  END AS zswap_count,
  CASE WHEN c.rest_count = 0 THEN coalesce(c.zero_count, 0)
    ELSE c.zero_count
  END AS zero_count,
  CASE WHEN c.rest_count = 0 THEN coalesce(c.file_count, 0)
    ELSE c.file_count
  END AS file_count,
  CASE WHEN c.rest_count >= 0 THEN c.rest_count END AS rest_count,
  CASE
    WHEN c.rest_count = 0 THEN c.all_count - coalesce(c.file_count, 0)
    ELSE c.all_count - c.file_count
  END AS anon_count,
  CASE
    WHEN c.rest_count >= 0
      THEN coalesce(c.zswap_count, 0) + coalesce(c.zero_count, 0)
        + CASE WHEN c.file_count IS NULL THEN 0 ELSE c.rest_count END
  END AS unwritten_count
FROM closed AS c;

-- @view     wb_dirty_reclaim
-- @shared
-- @summary  Whether the machine's reclaim met dirty pages of files in the run:
--   by vmstat, or, without it, by the scans that were recorded.
-- @grain    one row
-- @optional vmscan:mm_vmscan_lru_shrink_inactive
-- @column   is_meeting_dirty INTEGER 1: it did
-- @materialize
CREATE VIEW wb_dirty_reclaim AS
WITH
  counted AS (
    SELECT max(g.gained_count) AS pages
    FROM wb_vmstat AS g
    WHERE g.name = 'nr_vmscan_immediate_reclaim'
  ),
  -- Neither number has anonymous pages: folio_check_dirty_writeback().
  scanned AS (
    SELECT
      max(
        s.nr_immediate,
        CASE WHEN s.nr_dirty >= v.dirty_least_ratio * s.nr_scanned
          THEN s.nr_dirty
          ELSE 0
        END
      ) AS pages
    FROM (
      SELECT
        total(s.nr_immediate) AS nr_immediate,
        total(s.nr_dirty) AS nr_dirty,
        total(s.nr_scanned) AS nr_scanned
      FROM raw_mm_vmscan_lru_shrink_inactive AS s
    ) AS s
    CROSS JOIN wb_rule AS v
  )
SELECT coalesce(c.pages, s.pages) >= v.few_pages_count AS is_meeting_dirty
FROM counted AS c
CROSS JOIN scanned AS s
CROSS JOIN wb_rule AS v;
