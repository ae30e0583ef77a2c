-- SPDX-License-Identifier: Apache-2.0
-- Reclaim.

-- @query    mmtests_vmstat
-- @title    The vmstat table of mmtests
-- @order    54
-- @summary  What /proc/vmstat gained in the run, under the names of mmtests.
-- @read     The names are those that mmtests prints, so that tables of mails
--   can be compared; note says where a name is wrong, or mmtests' number is.
--   events is the same from the trace, where events tell it; differences mean
--   lost events, or vmstat files that were not taken right before and after the
--   trace. Velocities are over the trace's length, those of a Perfetto trace's
--   counters over the time between their samples. Direct is as the kernel
--   counts it: from 6.19 on with the reclaim of memory cgroups, in both
--   columns. Page writes file is what the events say where they are all there:
--   mmtests takes all that did not reach the swap device for file pages, also
--   zero-filled ones and those that zswap took, which nobody wrote.
-- @grain    counter; order as mmtests prints
-- @keys     name
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
    FROM reclaim_run AS d
    CROSS JOIN wb_units AS k
  ),
  span AS (
    SELECT 1.0 * nullif(b.last_ts - b.first_ts, 0) / u.second_ns AS seconds
    FROM wb_bounds AS b
    CROSS JOIN wb_units AS u
  ),
  told AS (
    SELECT
      l.place, l.name,
      CASE l.name
        WHEN 'Minor Faults' THEN g.pgfault - g.pgmajfault
        WHEN 'Swap Outs to zswap' THEN nullif(c.gained_count, 0)
        WHEN 'Swap Outs zero-filled' THEN nullif(c.gained_count, 0)
        WHEN 'Swap total' THEN g.pswpin + g.pswpout
        WHEN 'Allocation stalls' THEN g.allocstall
        WHEN 'Direct pages scanned' THEN n.direct_scan
        WHEN 'Kswapd pages scanned' THEN n.kswapd_scan
        WHEN 'Kswapd pages reclaimed' THEN n.kswapd_steal
        WHEN 'Direct pages reclaimed' THEN n.direct_steal
        WHEN 'Kswapd efficiency'
          THEN 100.0 * n.kswapd_steal / nullif(n.kswapd_scan, 0)
        WHEN 'Kswapd velocity' THEN n.kswapd_velocity
        WHEN 'Direct efficiency'
          THEN 100.0 * n.direct_steal / nullif(n.direct_scan, 0)
        WHEN 'Direct velocity' THEN n.direct_velocity
        WHEN 'Percentage direct scans'
          THEN 100.0 * n.direct_scan / nullif(n.direct_scan + n.kswapd_scan, 0)
        WHEN 'Page writes file' THEN f.file_writes
        WHEN 'Page writes anon' THEN g.vmscan_write - f.file_writes
        ELSE c.gained_count
      END AS value,
      CASE l.name
        WHEN 'Allocation stalls' THEN n.stalls
        WHEN 'Direct pages scanned' THEN n.traced_direct_scan
        WHEN 'Kswapd pages scanned' THEN n.traced_kswapd_scan
        WHEN 'Kswapd pages reclaimed' THEN n.traced_kswapd_steal
        WHEN 'Direct pages reclaimed' THEN n.traced_direct_steal
        WHEN 'Kswapd efficiency'
          THEN 100.0 * n.traced_kswapd_steal / nullif(n.traced_kswapd_scan, 0)
        WHEN 'Kswapd velocity' THEN n.traced_kswapd_scan / s.seconds
        WHEN 'Direct efficiency'
          THEN 100.0 * n.traced_direct_steal / nullif(n.traced_direct_scan, 0)
        WHEN 'Direct velocity' THEN n.traced_direct_scan / s.seconds
        WHEN 'Percentage direct scans'
          THEN 100.0 * n.traced_direct_scan
            / nullif(n.traced_direct_scan + n.traced_kswapd_scan, 0)
        WHEN 'Page writes by reclaim' THEN n.anon_writes + n.file_writes
        WHEN 'Page writes file' THEN n.file_writes
        WHEN 'Page writes anon' THEN n.anon_writes
      END AS events,
      l.unit, l.better,
      CASE l.name WHEN 'Page writes file' THEN f.counter ELSE l.counter END
        AS counter,
      CASE l.name
        WHEN 'Page writes file'
          THEN CASE
            WHEN f.file_writes = g.vmscan_write - g.pswpout THEN NULL
            WHEN g.vmscan_write < g.pswpout
              THEN 'mmtests prints ' || (g.vmscan_write - g.pswpout)
                || ': something else wrote to swap, too'
            ELSE 'mmtests prints ' || (g.vmscan_write - g.pswpout)
              || ': all that did not reach the swap device'
          END
        WHEN 'Page writes anon'
          THEN CASE
            WHEN g.vmscan_write - f.file_writes = g.pswpout THEN NULL
            ELSE 'mmtests prints ' || g.pswpout || ': all that the swap device'
              || ' wrote, also for others than reclaim'
          END
        ELSE l.note
      END AS note
    FROM _mmtests_line AS l
    CROSS JOIN _mmtests_gained AS g
    CROSS JOIN _mmtests_scan AS n
    CROSS JOIN file_write AS f
    CROSS JOIN span AS s
    LEFT JOIN wb_vmstat AS c ON c.name = l.counter
  )
SELECT
  o.name,
  1.0 * o.value AS value,
  1.0 * o.events AS events,
  o.unit, o.better, o.counter, o.note
FROM told AS o
WHERE o.value IS NOT NULL OR o.events IS NOT NULL
ORDER BY o.place;

-- @view     _mmtests_line
-- @summary  The lines of mmtests, in its order.
-- @grain    line; order place
-- @column   place INTEGER order
-- @column   name TEXT as mmtests calls it
-- @column   unit TEXT of the value
-- @column   better TEXT lower, higher or -
-- @column   counter TEXT of /proc/vmstat, or what it is made of
-- @column   note TEXT what to know of it
CREATE VIEW _mmtests_line AS
-- SQLite 3.54.1 refuses a statement that has 1000 cursors when it comes to a
-- name of a CTE; each mention of a view or CTE has cursors for all behind it.
-- So the parts of this compound are words, and the numbers are joined once.
WITH
  line(place, name, unit, better, counter, note) AS (
    VALUES
      (1, 'Minor Faults', 'faults', 'lower', 'pgfault - pgmajfault', NULL),
      (2, 'Major Faults', 'faults', 'lower', 'pgmajfault',
        'faults that had to read; of all tasks, see task_faults'),
      (3, 'Page Ins', 'KiB', '-', 'pgpgin',
        'neither pages nor sectors (newer mmtests: Sector Reads), but KiB'),
      (4, 'Page Outs', 'KiB', '-', 'pgpgout',
        'neither pages nor sectors (newer mmtests: Sector Writes), but KiB'),
      (5, 'Swap Ins', 'pages', 'lower', 'pswpin',
        'from zswap not counted: nothing is read from the swap device'),
      (6, 'Swap Outs', 'pages', 'lower', 'pswpout',
        'to zswap not counted: nothing is written to the swap device'),
      (7, 'Swap Outs to zswap', 'pages', '-', 'zswpout',
        'not of mmtests: compressed in memory'),
      (8, 'Swap Outs zero-filled', 'pages', '-', 'swpout_zero',
        'not of mmtests: pages of zeros, which nobody writes'),
      (9, 'Swap total', 'pages', 'lower', 'pswpin + pswpout',
        'swaptotal of memcachetest'),
      (10, 'Allocation stalls', 'calls', 'lower', 'allocstall*',
        'times that a task had to reclaim for itself'),
      (11, 'Direct pages scanned', 'pages', 'lower', 'pgscan_direct*', NULL),
      (12, 'Kswapd pages scanned', 'pages', 'lower', 'pgscan_kswapd*', NULL),
      (13, 'Kswapd pages reclaimed', 'pages', '-', 'pgsteal_kswapd*', NULL),
      (14, 'Direct pages reclaimed', 'pages', '-', 'pgsteal_direct*', NULL),
      (15, 'Kswapd efficiency', '%', 'higher', 'pgsteal / pgscan',
        'mmtests prints 100 when nothing was scanned'),
      (16, 'Kswapd velocity', 'pages/s', 'lower', 'pgscan / seconds',
        'over the run, not over the time that kswapd ran'),
      (17, 'Direct efficiency', '%', 'higher', 'pgsteal / pgscan',
        'mmtests prints 100 when nothing was scanned'),
      (18, 'Direct velocity', 'pages/s', 'lower', 'pgscan / seconds', NULL),
      (19, 'Percentage direct scans', '%', 'lower',
        'direct / (kswapd + direct)',
        'mmtests prints 0 when nothing was scanned'),
      (20, 'Page writes by reclaim', 'pages', 'lower', 'nr_vmscan_write',
        'attempts: also those that no I/O follows, see reclaim_destinations'),
      (21, 'Page writes file', 'pages', 'lower', NULL, NULL),
      (22, 'Page writes anon', 'pages', 'lower', 'nr_vmscan_write - file',
        NULL),
      (23, 'Page reclaim immediate', 'pages', 'lower',
        'nr_vmscan_immediate_reclaim',
        'dirty file pages that reclaim met and left to the flusher'),
      (24, 'Page rescued immediate', 'pages', '-', 'pgrescued',
        'no kernel of today has it'),
      (25, 'Slabs scanned', 'objects', 'lower', 'slabs_scanned',
        'objects of slab caches, not slabs'),
      (26, 'Direct inode steals', 'pages', 'lower', 'pginodesteal',
        'page cache pages dropped with inodes, not inodes'),
      (27, 'Kswapd inode steals', 'pages', 'lower', 'kswapd_inodesteal',
        'page cache pages dropped with inodes, not inodes')
  )
SELECT l.place, l.name, l.unit, l.better, l.counter, l.note
FROM line AS l;

-- @view     _mmtests_gained
-- @summary  What the counters gained that the lines are made of.
-- @grain    one row
-- @column   pgfault INTEGER pgfault, by how much it grew
-- @column   pgmajfault INTEGER pgmajfault, by how much it grew
-- @column   pswpin INTEGER pswpin, by how much it grew
-- @column   pswpout INTEGER pswpout, by how much it grew
-- @column   vmscan_write INTEGER nr_vmscan_write, by how much it grew
-- @column   allocstall INTEGER allocstall of all zones, by how much it grew
CREATE VIEW _mmtests_gained AS
SELECT
  sum(CASE v.name WHEN 'pgfault' THEN v.gained_count END) AS pgfault,
  sum(CASE v.name WHEN 'pgmajfault' THEN v.gained_count END) AS pgmajfault,
  sum(CASE v.name WHEN 'pswpin' THEN v.gained_count END) AS pswpin,
  sum(CASE v.name WHEN 'pswpout' THEN v.gained_count END) AS pswpout,
  sum(CASE v.name WHEN 'nr_vmscan_write' THEN v.gained_count END)
    AS vmscan_write,
  sum(CASE WHEN v.name GLOB 'allocstall*' THEN v.gained_count END)
    AS allocstall
FROM wb_vmstat AS v;

-- @view     _mmtests_scan
-- @summary  What kswapd and direct reclaim scanned and reclaimed, by the
--   counters and by the events.
-- @grain    one row
-- @column   kswapd_scan INTEGER pages that kswapd scanned
-- @column   kswapd_steal INTEGER pages that kswapd reclaimed
-- @column   kswapd_velocity REAL pages that kswapd scanned in a second
-- @column   direct_scan INTEGER pages that direct reclaim scanned
-- @column   direct_steal INTEGER pages that direct reclaim reclaimed
-- @column   direct_velocity REAL pages that direct reclaim scanned in a second
-- @column   traced_kswapd_scan INTEGER pages that kswapd scanned, by events
-- @column   traced_kswapd_steal INTEGER pages that kswapd reclaimed, by events
-- @column   traced_direct_scan INTEGER pages that direct reclaim scanned, by
--   events; from 6.19 on with that of memory cgroups, as the counters have it
-- @column   traced_direct_steal INTEGER of them reclaimed
-- @column   anon_writes INTEGER anon pages that reclaim gave away to be written
-- @column   file_writes INTEGER pages of files likewise
-- @column   stalls INTEGER direct reclaims; NULL = not recorded
CREATE VIEW _mmtests_scan AS
WITH
  named AS (
    SELECT
      CASE WHEN e.reclaimer = 'memcg' AND k.version >= 6019 THEN 'direct'
        ELSE e.reclaimer
      END AS counted_as,
      e.*
    FROM reclaim_efficiency AS e
    CROSS JOIN wb_units AS k
  )
SELECT
  max(CASE r.reclaimer WHEN 'kswapd' THEN r.vmstat_scanned_count END)
    AS kswapd_scan,
  max(CASE r.reclaimer WHEN 'kswapd' THEN r.vmstat_reclaimed_count END)
    AS kswapd_steal,
  max(CASE r.reclaimer WHEN 'kswapd' THEN r.vmstat_velocity_pages_per_s END)
    AS kswapd_velocity,
  max(CASE r.reclaimer WHEN 'direct' THEN r.vmstat_scanned_count END)
    AS direct_scan,
  max(CASE r.reclaimer WHEN 'direct' THEN r.vmstat_reclaimed_count END)
    AS direct_steal,
  max(CASE r.reclaimer WHEN 'direct' THEN r.vmstat_velocity_pages_per_s END)
    AS direct_velocity,
  sum(CASE r.counted_as WHEN 'kswapd' THEN r.scanned_count END)
    AS traced_kswapd_scan,
  sum(CASE r.counted_as WHEN 'kswapd' THEN r.reclaimed_count END)
    AS traced_kswapd_steal,
  sum(CASE r.counted_as WHEN 'direct' THEN r.scanned_count END)
    AS traced_direct_scan,
  sum(CASE r.counted_as WHEN 'direct' THEN r.reclaimed_count END)
    AS traced_direct_steal,
  sum(r.anon_writes_count) AS anon_writes,
  sum(r.file_writes_count) AS file_writes,
  CASE
    WHEN recorded!('vmscan:mm_vmscan_direct_reclaim_begin')
      THEN (SELECT count(*) FROM raw_mm_vmscan_direct_reclaim_begin)
  END AS stalls
FROM named AS r;
