-- SPDX-License-Identifier: Apache-2.0
-- @query    mmtests_vmstat
-- @title    The vmstat table of mmtests
-- @order    54
-- @summary  What /proc/vmstat gained in the run, under the names of mmtests.
-- @read     The names are those that mmtests prints, so that tables of mails
--   can be compared; note says where a name is wrong, or mmtests' number is.
--   events is the same from the trace, where events tell it; differences mean
--   lost events, or vmstat files that were not taken right before and after the
--   trace. Page writes file is what the events say where they are all there:
--   mmtests takes all that did not reach the swap device for file pages, also
--   zero-filled ones and those that zswap took, which nobody wrote.
-- @grain    counter; order as mmtests prints
-- @keys     name
-- @needs    wb_vmstat, reclaim_vmstat, reclaim_total, reclaim_destination,
--   raw_event_format, raw_mm_vmscan_direct_reclaim_begin, wb_bounds, wb_kernel,
--   wb_units
-- @optional vmscan:mm_vmscan_lru_shrink_inactive, vmscan:mm_vmscan_lru_isolate,
--   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage,
--   vmscan:mm_vmscan_direct_reclaim_begin
-- @column   name TEXT as mmtests prints it
-- @column   value REAL from /proc/vmstat; NULL = no such counter
-- @column   events REAL from the trace; NULL = events do not tell it
-- @column   unit TEXT of both
-- @column   better TEXT lower, higher or - (depends)
-- @column   counter TEXT what it is made of
-- @column   note TEXT where the name, or the formula, misleads
-- @metric   value neutral: column better says for each row which way is good
-- @source   mmtests, MonitorMmtestsvmstat.pm; mm/vmstat.c; fs/inode.c
WITH
  gained AS (
    SELECT
      sum(CASE v.name WHEN 'pgfault' THEN v.gained_count END) AS pgfault,
      sum(CASE v.name WHEN 'pgmajfault' THEN v.gained_count END) AS pgmajfault,
      sum(CASE v.name WHEN 'pgpgin' THEN v.gained_count END) AS pgpgin,
      sum(CASE v.name WHEN 'pgpgout' THEN v.gained_count END) AS pgpgout,
      sum(CASE v.name WHEN 'pswpin' THEN v.gained_count END) AS pswpin,
      sum(CASE v.name WHEN 'pswpout' THEN v.gained_count END) AS pswpout,
      sum(CASE v.name WHEN 'zswpout' THEN v.gained_count END) AS zswpout,
      sum(CASE v.name WHEN 'swpout_zero' THEN v.gained_count END)
        AS swpout_zero,
      sum(CASE v.name WHEN 'nr_vmscan_write' THEN v.gained_count END)
        AS vmscan_write,
      sum(CASE v.name WHEN 'nr_vmscan_immediate_reclaim' THEN v.gained_count
        END) AS immediate,
      sum(CASE v.name WHEN 'pgrescued' THEN v.gained_count END) AS pgrescued,
      sum(CASE v.name WHEN 'slabs_scanned' THEN v.gained_count END)
        AS slabs_scanned,
      sum(CASE v.name WHEN 'pginodesteal' THEN v.gained_count END)
        AS pginodesteal,
      sum(CASE v.name WHEN 'kswapd_inodesteal' THEN v.gained_count END)
        AS kswapd_inodesteal,
      sum(CASE WHEN v.name GLOB 'allocstall*' THEN v.gained_count END)
        AS allocstall,
      (
        SELECT max(r.scanned_count) FROM reclaim_vmstat AS r
        WHERE r.reclaimer = 'kswapd'
      ) AS kswapd_scan,
      (
        SELECT max(r.reclaimed_count) FROM reclaim_vmstat AS r
        WHERE r.reclaimer = 'kswapd'
      ) AS kswapd_steal,
      (
        SELECT max(r.scanned_count) FROM reclaim_vmstat AS r
        WHERE r.reclaimer = 'direct'
      ) AS direct_scan,
      (
        SELECT max(r.reclaimed_count) FROM reclaim_vmstat AS r
        WHERE r.reclaimer = 'direct'
      ) AS direct_steal
    FROM wb_vmstat AS v
  ),
  traced AS (
    SELECT
      max(CASE t.reclaimer WHEN 'kswapd' THEN t.scanned_count END)
        AS kswapd_scan,
      max(CASE t.reclaimer WHEN 'kswapd' THEN t.reclaimed_count END)
        AS kswapd_steal,
      max(CASE t.reclaimer WHEN 'direct' THEN t.scanned_count END)
        AS direct_scan,
      max(CASE t.reclaimer WHEN 'direct' THEN t.reclaimed_count END)
        AS direct_steal,
      sum(t.anon_writes_count) AS anon_writes,
      sum(t.file_writes_count) AS file_writes,
      CASE
        WHEN EXISTS (
          SELECT 1 FROM raw_event_format AS f
          WHERE f.event = 'vmscan:mm_vmscan_direct_reclaim_begin'
        ) THEN (SELECT count(*) FROM raw_mm_vmscan_direct_reclaim_begin)
      END AS stalls
    FROM reclaim_total AS t
  ),
  -- By the events, else what no counter of swap explains.
  file_write AS (
    SELECT
      CASE
        WHEN d.file_count IS NOT NULL THEN d.file_count
        ELSE d.rest_count
      END AS file_writes,
      CASE
        WHEN k.version >= 6016 AND d.file_count = 0
          THEN 'none: from 6.16 on reclaim writes no files'
        WHEN d.file_count IS NOT NULL THEN 'nr_vmscan_write, by the events'
        ELSE 'nr_vmscan_write - pswpout + zswpwb - zswpout - swpout_zero'
      END AS counter
    FROM reclaim_destination AS d
    CROSS JOIN wb_kernel AS k
  ),
  span AS (
    SELECT 1.0 * nullif(b.last_ts - b.first_ts, 0) / u.second_ns AS seconds
    FROM wb_bounds AS b
    CROSS JOIN wb_units AS u
  ),
  line AS (
    SELECT
      1 AS place, 'Minor Faults' AS name,
      1.0 * (g.pgfault - g.pgmajfault) AS value, NULL AS events,
      'faults' AS unit, 'lower' AS better, 'pgfault - pgmajfault' AS counter,
      NULL AS note
    FROM gained AS g
    UNION ALL
    SELECT
      2, 'Major Faults', g.pgmajfault, NULL, 'faults', 'lower', 'pgmajfault',
      'faults that had to read; of all tasks, see task_faults'
    FROM gained AS g
    UNION ALL
    SELECT
      3, 'Page Ins', g.pgpgin, NULL, 'KiB', '-', 'pgpgin',
      'neither pages nor sectors (newer mmtests: Sector Reads), but KiB'
    FROM gained AS g
    UNION ALL
    SELECT
      4, 'Page Outs', g.pgpgout, NULL, 'KiB', '-', 'pgpgout',
      'neither pages nor sectors (newer mmtests: Sector Writes), but KiB'
    FROM gained AS g
    UNION ALL
    SELECT
      5, 'Swap Ins', g.pswpin, NULL, 'pages', 'lower', 'pswpin',
      'from zswap not counted: nothing is read from the swap device'
    FROM gained AS g
    UNION ALL
    SELECT
      6, 'Swap Outs', g.pswpout, NULL, 'pages', 'lower', 'pswpout',
      'to zswap not counted: nothing is written to the swap device'
    FROM gained AS g
    UNION ALL
    SELECT
      7, 'Swap total', g.pswpin + g.pswpout, NULL, 'pages', 'lower',
      'pswpin + pswpout', 'swaptotal of memcachetest'
    FROM gained AS g
    UNION ALL
    SELECT
      7, 'Swap Outs zero-filled', g.swpout_zero, NULL, 'pages', '-',
      'swpout_zero', 'not of mmtests: pages of zeros, which nobody writes'
    FROM gained AS g
    WHERE g.swpout_zero > 0
    UNION ALL
    SELECT
      7, 'Swap Outs to zswap', g.zswpout, NULL, 'pages', '-', 'zswpout',
      'not of mmtests: compressed in memory'
    FROM gained AS g
    WHERE g.zswpout > 0
    UNION ALL
    SELECT
      8, 'Allocation stalls', g.allocstall, t.stalls, 'calls', 'lower',
      'allocstall*', 'times that a task had to reclaim for itself'
    FROM gained AS g
    CROSS JOIN traced AS t
    UNION ALL
    SELECT
      9, 'Direct pages scanned', g.direct_scan, t.direct_scan, 'pages', 'lower',
      'pgscan_direct*', NULL
    FROM gained AS g
    CROSS JOIN traced AS t
    UNION ALL
    SELECT
      10, 'Kswapd pages scanned', g.kswapd_scan, t.kswapd_scan, 'pages',
      'lower', 'pgscan_kswapd*', NULL
    FROM gained AS g
    CROSS JOIN traced AS t
    UNION ALL
    SELECT
      11, 'Kswapd pages reclaimed', g.kswapd_steal, t.kswapd_steal, 'pages',
      '-', 'pgsteal_kswapd*', NULL
    FROM gained AS g
    CROSS JOIN traced AS t
    UNION ALL
    SELECT
      12, 'Direct pages reclaimed', g.direct_steal, t.direct_steal, 'pages',
      '-', 'pgsteal_direct*', NULL
    FROM gained AS g
    CROSS JOIN traced AS t
    UNION ALL
    SELECT
      13, 'Kswapd efficiency',
      100.0 * g.kswapd_steal / nullif(g.kswapd_scan, 0),
      100.0 * t.kswapd_steal / nullif(t.kswapd_scan, 0), '%', 'higher',
      'pgsteal / pgscan', 'mmtests prints 100 when nothing was scanned'
    FROM gained AS g
    CROSS JOIN traced AS t
    UNION ALL
    SELECT
      14, 'Kswapd velocity', g.kswapd_scan / s.seconds,
      t.kswapd_scan / s.seconds, 'pages/s', 'lower', 'pgscan / seconds',
      'over the run, not over the time that kswapd ran'
    FROM gained AS g
    CROSS JOIN traced AS t
    CROSS JOIN span AS s
    UNION ALL
    SELECT
      15, 'Direct efficiency',
      100.0 * g.direct_steal / nullif(g.direct_scan, 0),
      100.0 * t.direct_steal / nullif(t.direct_scan, 0), '%', 'higher',
      'pgsteal / pgscan', 'mmtests prints 100 when nothing was scanned'
    FROM gained AS g
    CROSS JOIN traced AS t
    UNION ALL
    SELECT
      16, 'Direct velocity', g.direct_scan / s.seconds,
      t.direct_scan / s.seconds, 'pages/s', 'lower', 'pgscan / seconds', NULL
    FROM gained AS g
    CROSS JOIN traced AS t
    CROSS JOIN span AS s
    UNION ALL
    SELECT
      17, 'Percentage direct scans',
      100.0 * g.direct_scan / nullif(g.direct_scan + g.kswapd_scan, 0),
      100.0 * t.direct_scan / nullif(t.direct_scan + t.kswapd_scan, 0), '%',
      'lower', 'direct / (kswapd + direct)',
      'mmtests prints 0 when nothing was scanned'
    FROM gained AS g
    CROSS JOIN traced AS t
    UNION ALL
    SELECT
      18, 'Page writes by reclaim', g.vmscan_write,
      t.anon_writes + t.file_writes, 'pages', 'lower', 'nr_vmscan_write',
      'attempts: also those that no I/O follows, see reclaim_destinations'
    FROM gained AS g
    CROSS JOIN traced AS t
    UNION ALL
    SELECT
      19, 'Page writes file', f.file_writes, t.file_writes, 'pages', 'lower',
      f.counter,
      CASE
        WHEN f.file_writes = g.vmscan_write - g.pswpout THEN NULL
        WHEN g.vmscan_write < g.pswpout
          THEN 'mmtests prints ' || (g.vmscan_write - g.pswpout)
            || ': something else wrote to swap, too'
        ELSE 'mmtests prints ' || (g.vmscan_write - g.pswpout)
          || ': all that did not reach the swap device'
      END
    FROM gained AS g
    CROSS JOIN traced AS t
    CROSS JOIN file_write AS f
    UNION ALL
    SELECT
      20, 'Page writes anon', g.vmscan_write - f.file_writes, t.anon_writes,
      'pages', 'lower', 'nr_vmscan_write - file',
      CASE
        WHEN g.vmscan_write - f.file_writes = g.pswpout THEN NULL
        ELSE 'mmtests prints ' || g.pswpout
          || ': all that the swap device wrote, also for others than reclaim'
      END
    FROM gained AS g
    CROSS JOIN traced AS t
    CROSS JOIN file_write AS f
    UNION ALL
    SELECT
      21, 'Page reclaim immediate', g.immediate, NULL, 'pages', 'lower',
      'nr_vmscan_immediate_reclaim',
      'dirty file pages that reclaim met and left to the flusher'
    FROM gained AS g
    UNION ALL
    SELECT
      22, 'Page rescued immediate', g.pgrescued, NULL, 'pages', '-',
      'pgrescued', 'no kernel of today has it'
    FROM gained AS g
    UNION ALL
    SELECT
      23, 'Slabs scanned', g.slabs_scanned, NULL, 'objects', 'lower',
      'slabs_scanned', 'objects of slab caches, not slabs'
    FROM gained AS g
    UNION ALL
    SELECT
      24, 'Direct inode steals', g.pginodesteal, NULL, 'pages', 'lower',
      'pginodesteal', 'page cache pages dropped with inodes, not inodes'
    FROM gained AS g
    UNION ALL
    SELECT
      25, 'Kswapd inode steals', g.kswapd_inodesteal, NULL, 'pages', 'lower',
      'kswapd_inodesteal', 'page cache pages dropped with inodes, not inodes'
    FROM gained AS g
  )
SELECT
  l.name,
  1.0 * l.value AS value,
  1.0 * l.events AS events,
  l.unit,
  l.better,
  l.counter,
  l.note
FROM line AS l
WHERE l.value IS NOT NULL OR l.events IS NOT NULL
ORDER BY l.place, l.name;
