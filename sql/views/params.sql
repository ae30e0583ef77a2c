-- SPDX-License-Identifier: Apache-2.0
-- What a question is restricted to, and facts about the traced machine that
-- every conversion needs.

-- @view     wb_params
-- @summary  What a question is restricted to; NULL means all. The runner
--   replaces this view; the text below is the default.
-- @grain    one row
-- @column   t0_ns INTEGER first time of interest, trace clock
-- @column   t1_ns INTEGER end of the time of interest, trace clock
-- @column   window_ns INTEGER length of a window
-- @column   by_window INTEGER 1: window_ns was asked for, so that a question
--   with an answer of all the time answers for each window; else 0
-- @column   bdi TEXT backing device, such as 8:0
-- @column   tid INTEGER thread
-- @column   comm_glob TEXT pattern of the names of threads, such as dd*
-- @column   cgroup_ino INTEGER inode of the cgroup that owns the wb
CREATE VIEW wb_params AS
SELECT
  NULL AS t0_ns,
  NULL AS t1_ns,
  2000000000 AS window_ns,
  0 AS by_window,
  NULL AS bdi,
  NULL AS tid,
  NULL AS comm_glob,
  NULL AS cgroup_ino;

-- @view     wb_units
-- @summary  What the kernel's units are worth, which every conversion reads,
--   and what else holds for all of the machine and the trace, whatever part is
--   asked for: its kernel and memory, when events begin and end, and the
--   settings of dirty limits; of a pair of bytes and ratio, the one that is in
--   force. What reads this and not wb_bounds is kept for all parts.
-- @grain    one row
-- @column   page_bytes INTEGER size of a page of the traced machine; 4096 where
--   the trace does not tell (text), which wb_warning says
-- @column   long_bytes INTEGER size of a long of the traced kernel
-- @column   long_mask INTEGER what an unsigned long can hold: a counter that
--   may have wrapped gained ((b - a + long_half) & long_mask) - long_half, and
--   went back where that is below 0. All bits where it has 8 bytes, or nothing
--   tells
-- @column   long_half INTEGER see above
-- @column   kib_bytes INTEGER bytes in a KiB; the kernel's "KB/s" are KiB/s
-- @column   sector_bytes INTEGER bytes in a sector of the block layer
-- @column   ms_ns INTEGER ns in a ms
-- @column   us_ns INTEGER ns in a us
-- @column   second_ns INTEGER ns in a second
-- @column   dirty_bytes INTEGER vm.dirty_bytes; NULL = the ratio is in force,
--   or nothing tells
-- @column   dirty_ratio INTEGER vm.dirty_ratio, per cent; NULL likewise
-- @column   dirty_background_bytes INTEGER vm.dirty_background_bytes; NULL
--   likewise
-- @column   dirty_background_ratio INTEGER vm.dirty_background_ratio; NULL
--   likewise
-- @column   watermark_scale_factor INTEGER vm.watermark_scale_factor; NULL =
--   nothing tells
-- @column   round_bytes INTEGER 1 MiB: what is proposed is a multiple of it
-- @column   least_bytes INTEGER a lower limit is not kept: four times what the
--   counters of a wb may be off, as each CPU counts some pages by itself; NULL
--   = nothing tells how many CPUs there are
-- @column   lag_bytes INTEGER a counter of /proc/vmstat may be off by this, as
--   each CPU counts up to its stat_threshold, and half of it more, by itself;
--   NULL = nothing tells how many CPUs there are
-- @column   most_bytes INTEGER a fifth of the memory, which is the limit by
--   default: no more is proposed; NULL = nothing tells
-- @column   memory_bytes INTEGER the memory; NULL likewise
-- @column   first_ts INTEGER first event of the trace, trace clock
-- @column   last_ts INTEGER last event of the trace, trace clock
-- @column   run_ns INTEGER how long was recorded, by meta.json of the recorder;
--   else, and where events are outside of that, from first_ts to last_ts
-- @column   release TEXT of the kernel, as uname -r prints it
-- @column   version INTEGER major * 1000 + minor: 6.12 is 6012; NULL = unknown
-- @column   patch INTEGER third number: 2 of 6.14.2; 0 where there is none
-- @column   dead_bits INTEGER of prev_state of sched_switch when the task has
--   ended: 64 up to 4.13, which told its raw state (TASK_DEAD), 16 and 32 later
--   (EXIT_DEAD, EXIT_ZOMBIE). Bits of a task that sleeps (1), is blocked (2),
--   stopped (4) or traced (8) never changed. Text has letters, which are read
--   as the newest kernel's
-- @column   idle_bits INTEGER a thread of the kernel has nothing to do: 128
--   and, parked, 64 from 4.14 on; before 1024 beside the 2 (TASK_NOLOAD, from
--   4.2 on) and 512 (TASK_PARKED, from 3.9 on)
-- @source   mm/page-writeback.c, include/linux/blk_types.h;
--   Documentation/admin-guide/sysctl/vm.rst; wb_stat_error(), WB_STAT_BATCH;
--   include/trace/events/sched.h __trace_sched_switch_state();
--   include/linux/sched.h: TASK_REPORT; mm/vmstat.c
--   calculate_normal_threshold()
-- @materialize
CREATE VIEW wb_units AS
WITH
  fact AS (
    SELECT
      coalesce(max(CASE o.key WHEN 'page_bytes' THEN o.value END), 4096)
        AS page_bytes,
      max(CASE o.key WHEN 'long_bytes' THEN o.value END) AS long_bytes,
      max(CASE o.key WHEN 'cpus_count' THEN o.value END) AS cpus_count,
      max(CASE o.key WHEN 'first_ts' THEN o.value END) AS first_ts,
      max(CASE o.key WHEN 'last_ts' THEN o.value END) AS last_ts,
      max(CASE o.key WHEN 'record_started_ts' THEN o.value END)
        AS record_started_ts,
      max(CASE o.key WHEN 'record_ended_ts' THEN o.value END)
        AS record_ended_ts,
      max(CASE WHEN o.key GLOB 'range_*_ts' AND o.value IS NOT NULL THEN 1 END)
        AS is_cut,
      max(CASE o.key WHEN 'kernel_release' THEN o.value END) AS release,
      max(o.key = 'format' AND o.value GLOB '* text') AS is_text,
      (
        SELECT i.value * 1024
        FROM raw_meminfo AS i
        WHERE i.name = 'MemTotal' AND i.sample = 'before' AND i.unit = 'kB'
      ) AS memory_bytes
    FROM raw_meta AS o
  ),
  kernel AS (
    SELECT
      m.*,
      CASE
        WHEN m.release GLOB '[0-9]*.[0-9]*'
          THEN CAST(m.release AS INTEGER) * 1000
            + CAST(substr(m.release, instr(m.release, '.') + 1) AS INTEGER)
      END AS version,
      CASE WHEN m.release GLOB '[0-9]*.[0-9]*.[0-9]*'
        THEN substr(m.release, instr(m.release, '.') + 1)
      END AS behind_major
    FROM fact AS m
  ),
  told AS (
    SELECT
      k.*,
      CASE WHEN k.is_text = 1 THEN NULL ELSE k.version END AS bits_version
    FROM kernel AS k
  )
SELECT
  l.page_bytes, l.long_bytes,
  CASE l.long_bytes WHEN 4 THEN (1 << 32) - 1 ELSE -1 END AS long_mask,
  CASE l.long_bytes WHEN 4 THEN 1 << 31 ELSE 0 END AS long_half,
  1024 AS kib_bytes,
  512 AS sector_bytes,
  1000000 AS ms_ns,
  1000 AS us_ns,
  1000000000 AS second_ns,
  nullif(s.dirty_bytes, 0) AS dirty_bytes,
  -- 0 is a ratio, too, where the bytes are 0.
  CASE s.dirty_bytes WHEN 0 THEN s.dirty_ratio ELSE nullif(s.dirty_ratio, 0) END
    AS dirty_ratio,
  nullif(s.background_bytes, 0) AS dirty_background_bytes,
  CASE s.background_bytes
    WHEN 0 THEN s.background_ratio
    ELSE nullif(s.background_ratio, 0)
  END AS dirty_background_ratio,
  s.watermark_scale_factor,
  1048576 AS round_bytes,
  32 * l.cpus_count * l.page_bytes * fls!(l.cpus_count) AS least_bytes,
  l.cpus_count * l.page_bytes * 3
    * min(
      125,
      coalesce(
        2 * fls!(l.cpus_count) * (1 + nullif(fls!(l.memory_bytes >> 27), 0)),
        125
      )
    ) / 2 AS lag_bytes,
  l.memory_bytes / 5 / 1048576 * 1048576 AS most_bytes,
  l.memory_bytes, l.first_ts, l.last_ts,
  max(
    CASE WHEN l.is_cut IS NULL AND l.record_ended_ts > l.record_started_ts
      THEN l.record_ended_ts - l.record_started_ts
      ELSE 0
    END,
    l.last_ts - l.first_ts
  ) AS run_ns,
  l.release, l.version,
  coalesce(
    CAST(substr(l.behind_major, instr(l.behind_major, '.') + 1) AS INTEGER), 0
  ) AS patch,
  CASE WHEN l.bits_version < 4014 THEN 64 ELSE 48 END AS dead_bits,
  CASE
    WHEN l.bits_version < 3009 THEN 0
    WHEN l.bits_version < 4002 THEN 512
    WHEN l.bits_version < 4014 THEN 1536
    ELSE 192
  END AS idle_bits
FROM told AS l
CROSS JOIN (
  SELECT
    max(CASE o.name WHEN 'vm.dirty_bytes' THEN o.number END) AS dirty_bytes,
    max(CASE o.name WHEN 'vm.dirty_ratio' THEN o.number END) AS dirty_ratio,
    max(CASE o.name WHEN 'vm.dirty_background_bytes' THEN o.number END)
      AS background_bytes,
    max(CASE o.name WHEN 'vm.dirty_background_ratio' THEN o.number END)
      AS background_ratio,
    max(CASE o.name WHEN 'vm.watermark_scale_factor' THEN o.number END)
      AS watermark_scale_factor
  FROM raw_sysctl AS o
  WHERE o.number >= 0
) AS s;

-- @view     wb_rule
-- @summary  The thresholds that this library decides by, each with its reason;
--   there are no others. What the kernel decides by stands where it is used.
-- @grain    one row
-- @column   most_ratio REAL a commit, a busy device or an awake kswapd is the
--   cause of a stall when it covers at least this share of it, and one half of
--   the position control is when it holds at least this share of the loss
-- @column   falling_ratio REAL a bdi's bandwidth falls when its estimate is
--   below this share of the highest one of its last 16 updates (3 s of
--   throttling, the time over which the kernel averages)
-- @column   at_limit_ratio REAL so near to the limit that pos_ratio rounds to
--   0: the global part of pos_ratio is below this
-- @column   freerun_margin_ratio REAL dirty pages are surely in free run when
--   they are below it by this share of limit - setpoint; the limit recorded up
--   to 6.14 can be a little too low, and the freerun made of it too high
-- @column   call_least_ns INTEGER a write system call that sched_switch did not
--   watch counts as a wait from this length on: shorter ones copy data
-- @column   silent_least_ns INTEGER a throttled task that did not call
--   balance_dirty_pages() for this long was blocked elsewhere: a writer that is
--   throttled calls it many times a second
-- @column   run_slack_ns INTEGER a sleep belongs to an event of its task when
--   the task ran for no longer than this between them
-- @column   clock_jump_ns INTEGER an event belongs to a call when it is not
--   older than this before the call's entry: the entry is told by the kernel's
--   clock, the event by the trace's, and clocks of guests jump by up to 14 ms
-- @column   came_back_ns INTEGER a task that fires its next event within this
--   time after one came back at once
-- @column   unslept_least_ns INTEGER a task that came back at once did not
--   sleep when its pause was longer by this much: more than clocks of guests
--   jump
-- @column   throttled_least_ratio REAL a task throttled for less than this
--   share of its time got all that it asked for
-- @column   idle_least_ratio REAL a task that was idle for this share of the
--   rest of its time, or more, got all that it asked for, too
-- @column   together_least_ns INTEGER writers are compared that were active
--   together for this long: five updates of their rate
-- @column   incidental_bytes INTEGER a task that never paused and was charged
--   no more than this writes on the side, such as its own messages: it is not
--   compared with those that write for their living
-- @column   incidental_divisor INTEGER a task that paused is incidental for a
--   wb, too, if at most 1 in this many of its calls are for it
-- @column   leaked_bytes INTEGER events charge a thread with at most this much
--   more than it wrote: a task that exits leaves less to others than one call
--   charges
-- @column   leaked_ratio REAL events charge the writers of a wb with at most
--   this share more than they wrote
-- @column   light_most_ratio REAL a task dirtied next to nothing beside one
--   that dirtied so much more
-- @column   leak_felt_bytes INTEGER of a task that dirtied more than this, what
--   exited tasks left behind is less than a per cent or two
-- @column   folios_least_ratio REAL folios that became dirty, over the pages
--   that did: less, and some were large, or are lost
-- @column   lag_most_times INTEGER so many times what a counter may be off has
--   to be counted before it is compared with events
-- @column   calibrated_least_ratio REAL where events charge this share or more
--   of what the machine dirtied, the rest is shared out by calls in free run;
--   below, nobody measured how far off that is
-- @column   coverage_least_ratio REAL where events charge less than this share
--   of what the machine dirtied, they do not tell who dirtied how much
-- @column   boost_percent INTEGER thresholds are a real-time task's where they
--   are above this many per cent of those of the samples beside them: the
--   kernel gives it a quarter and more besides, and others change by less from
--   one sample to the next
-- @column   limit_step_factor REAL somebody changed the limit where the dirty
--   threshold of one sample is this many times that of the next, or more: 1.28
--   is a real-time task's
-- @column   same_state_pages INTEGER two looks at dirty pages are of the same
--   domain when they differ by no more than this: what the tasks of a few CPUs
--   can dirty between the looks
-- @column   same_state_divisor INTEGER or when they differ by no more than one
--   part in this many
-- @column   reached_least_ratio REAL pages that reclaim gave away are called
--   written when at least this share of them reached a device
-- @column   counter_lag_pages INTEGER counters of pages agree when they differ
--   by no more than this: a CPU may keep this many to itself (MAX_THRESHOLD of
--   mm/vmstat.c)
-- @column   enclosed_ratio REAL files read before and after a trace may count
--   this share more than it: what happens while recording begins and ends
-- @column   same_ratio REAL two sources agree when they differ by no more than
--   this share: metadata, and what is under way at the ends
-- @column   few_calls_count INTEGER with fewer calls than this, shares and
--   indexes are not computed
-- @column   sleep_late_ns INTEGER sleeps are at most this much late, on
--   average: a jiffy at HZ=100, and as long for a CPU
-- @column   law_ratio REAL this share of events may have another rate than the
--   control law gives: numbers change within a call
-- @column   stale_ns INTEGER what a wb held says nothing of what it holds when
--   it is older than this: a disk writes tens of MB in that time
-- @column   pause_max_ns INTEGER limits that the device writes out in less time
--   than this are too small for it: one pause takes as long (MAX_PAUSE)
-- @column   new_bdi_ns INTEGER for this long after its first throttled task the
--   kernel's bandwidth of a wb is mostly its first guess: it averages over 3 s
-- @column   overrated_factor REAL the kernel's bandwidth of a wb is wrong when
--   it is this many times what the device writes
-- @column   storm_per_s INTEGER a device with this many fsyncs a second waits
--   for its journal all the time
-- @column   handed_ratio REAL the block layer holds requests back when it has
--   this share of the limit, and the device has nothing to do
-- @column   own_busy_factor REAL a device that lies on disks is slow itself
--   when it was busy for this many times as long as all of them
-- @column   shrunk_factor REAL a disk gets less than the pages that were
--   written for it when these are this many times its bytes
-- @column   copied_factor REAL several disks write copies (a mirror, parity)
--   when their bytes are this many times the pages that were written
-- @column   rate_step_factor REAL the rate of a device changed when it wrote
--   this many times as fast before or after, and the square of the size of its
--   requests changed by less
-- @column   rate_side_ns INTEGER it also has to be busy for this long on either
--   side of the change
-- @column   rate_side_count INTEGER in this many seconds with a write, or more
-- @column   busy_ratio REAL a device that is busy for this share of the time
--   writes no more with a larger limit; counters that are known for this share
--   of it are taken for all of it
-- @column   dirty_least_ratio REAL a reclaim meets dirty pages when they are
--   this share of the pages that it scanned: with fewer it has clean ones, too
-- @column   few_pages_count INTEGER fewer pages than this do not matter: 1 MiB
--   where pages have 4 KiB
-- @column   loss_least_ns INTEGER a finding is told when all tasks together
--   lost this much time
-- @column   named_least_ratio REAL tasks of another name than those that lost
--   most are named, too, when they lost this share of the time
-- @column   long_call_ns INTEGER whoever waits for a call notices when it is
--   held for this long; a healthy writer is held for pause_max_ns at most
-- @column   worth_most_ns INTEGER dirty pages that take the disk longer than
--   this make whoever syncs wait that long, and are lost in a crash
-- @column   little_most_ns INTEGER where every disk would write all that is
--   dirty within this time, no limit would change much
-- @column   nearly_all_ratio REAL a disk that wrote this share of all that was
--   written is taken for the only one
-- @column   most_percent INTEGER no max_ratio above this is proposed: it would
--   take less than a tenth of the limit from a device
-- @column   most_scale_factor INTEGER no vm.watermark_scale_factor above this
--   is proposed: it keeps 3 % of each zone free for each watermark
-- @column   fair_least_ratio REAL Jain's index from which on shares count as
--   equal
-- @column   held_least_ratio REAL a light writer is held up when it is
--   throttled for this share of its time
-- @column   again_least_ratio REAL what is read again is much when it is this
--   share of what is read
-- @column   lost_most_ratio REAL the loss of this share of events, or less,
--   changes no verdict
-- @column   small_request_bytes INTEGER a disk whose mean write is smaller is
--   limited by requests, not by bytes
-- @column   large_write_bytes INTEGER direct writes of this size and more keep
--   a disk busy
-- @column   excerpt_least_ns INTEGER a trace that is shorter, and that no
--   recorder vouches for, may be an excerpt
-- @column   excerpt_least_count INTEGER a text with fewer records likewise
-- @column   page_pause_ns INTEGER a pause of this length for two pages or fewer
--   makes some 100 KiB/s of any disk
-- @column   impossible_factor INTEGER the dirty limit falls to the threshold;
--   it is never this many times as high for long
-- @column   hung_factor INTEGER a device that is silent for this many times as
--   long as its rate makes of what it has stopped
-- @column   begun_most_count INTEGER a device that had more requests than these
--   when the trace began had its issues filtered
-- @column   depth_most_count INTEGER devices that lie on devices, and threads
--   made by threads, are followed so deep
-- @column   drain_most_count INTEGER windows in which a pool is written, at
--   most
-- @column   penalty_least_ns INTEGER a shorter sleep behind reclaim is none of
--   memory.high
-- @column   own_least_bytes INTEGER what tasks submit to a disk themselves is
--   told from this on
-- @column   windows_most_count INTEGER windows of a run, at most
-- @column   drawn_most_count INTEGER of more events a timeline draws the
--   extremes of drawn_steps_count parts of the run
-- @column   drawn_steps_count INTEGER about as wide as a screen
-- @column   listed_most_count INTEGER gaps that a timeline names
-- @source   the ratios are choices, the rest is mm/page-writeback.c
--   wb_position_ratio(), wb_update_write_bandwidth(), domain_dirty_limits()
CREATE VIEW wb_rule AS
SELECT
  0.5 AS most_ratio,
  0.75 AS falling_ratio,
  0.02 AS at_limit_ratio,
  0.125 AS freerun_margin_ratio,
  u.ms_ns AS call_least_ns,
  u.second_ns / 2 AS silent_least_ns,
  20 * u.ms_ns AS run_slack_ns,
  20 * u.ms_ns AS clock_jump_ns,
  2 * u.ms_ns AS came_back_ns,
  16 * u.ms_ns AS unslept_least_ns,
  0.05 AS throttled_least_ratio,
  0.5 AS idle_least_ratio,
  u.second_ns AS together_least_ns,
  64 * u.kib_bytes AS incidental_bytes,
  10 AS incidental_divisor,
  512 * u.kib_bytes AS leaked_bytes,
  0.1 AS leaked_ratio,
  0.01 AS light_most_ratio,
  64 * u.kib_bytes * u.kib_bytes AS leak_felt_bytes,
  0.99 AS folios_least_ratio,
  10 AS lag_most_times,
  0.25 AS calibrated_least_ratio,
  0.5 AS coverage_least_ratio,
  120 AS boost_percent,
  1.5 AS limit_step_factor,
  64 AS same_state_pages,
  16 AS same_state_divisor,
  0.9 AS reached_least_ratio,
  125 AS counter_lag_pages,
  0.25 AS enclosed_ratio,
  0.05 AS same_ratio,
  16 AS few_calls_count,
  20 * u.ms_ns AS sleep_late_ns,
  0.03 AS law_ratio,
  2 * u.second_ns AS stale_ns,
  200 * u.ms_ns AS pause_max_ns,
  3 * u.second_ns AS new_bdi_ns,
  4.0 AS overrated_factor,
  10 AS storm_per_s,
  0.75 AS handed_ratio,
  1.5 AS own_busy_factor,
  1.5 AS shrunk_factor,
  1.4 AS copied_factor,
  3.0 AS rate_step_factor,
  u.second_ns / 2 AS rate_side_ns,
  3 AS rate_side_count,
  0.9 AS busy_ratio,
  0.1 AS dirty_least_ratio,
  256 AS few_pages_count,
  100 * u.ms_ns AS loss_least_ns,
  0.05 AS named_least_ratio,
  u.second_ns / 2 AS long_call_ns,
  5 * u.second_ns AS worth_most_ns,
  2 * u.second_ns AS little_most_ns,
  0.9 AS nearly_all_ratio,
  90 AS most_percent,
  300 AS most_scale_factor,
  0.8 AS fair_least_ratio,
  0.2 AS held_least_ratio,
  0.2 AS again_least_ratio,
  0.001 AS lost_most_ratio,
  16 * u.kib_bytes AS small_request_bytes,
  64 * u.kib_bytes AS large_write_bytes,
  2 * u.second_ns AS excerpt_least_ns,
  100 AS excerpt_least_count,
  30 * u.ms_ns AS page_pause_ns,
  50 AS impossible_factor,
  4 AS hung_factor,
  256 AS begun_most_count,
  16 AS depth_most_count,
  16 AS drain_most_count,
  10 * u.ms_ns AS penalty_least_ns,
  u.kib_bytes * 1024 AS own_least_bytes,
  100000 AS windows_most_count,
  40000 AS drawn_most_count,
  2048 AS drawn_steps_count,
  100 AS listed_most_count
-- Not of wb_units, so that what reads these alone stands lower.
FROM (
  SELECT 1000000000 AS second_ns, 1000000 AS ms_ns, 1024 AS kib_bytes
) AS u;
