-- SPDX-License-Identifier: Apache-2.0
-- Idioms with a name: NAME!(ARGUMENTS) in a statement is what stands here, in
-- parentheses. They are put in their place when the library is read.

-- Whom the waits of a finding were for, by device; place 1 is the task that
-- held them longest.
holders!(rule) =
  SELECT
    l.bdi,
    l.waker || CASE WHEN count(*) OVER (PARTITION BY l.bdi) > 1
      THEN ' or another task' ELSE '' END AS holder,
    row_number() OVER (
      PARTITION BY l.bdi ORDER BY sum(l.dur) DESC, l.waker
    ) AS place
  FROM wb_loss AS l
  CROSS JOIN wb_bounds AS b
  WHERE l.finding = rule AND in_time!(l.ts, b)
  GROUP BY l.bdi, l.waker;

-- Who was throttled for pages of a device during the longest wait for it by a
-- finding, if that took half a second or more.
writers_beside!(rule) =
  SELECT f.bdi, replace(group_concat(DISTINCT o.comm), ',', ', ') AS writers
  FROM (
    SELECT
      l.bdi, l.task_id, l.ts,
      l.ts + l.dur AS end_ts,
      row_number() OVER (PARTITION BY l.bdi ORDER BY l.dur DESC, l.ts) AS place
    FROM wb_loss AS l
    CROSS JOIN wb_rule AS v
    WHERE l.finding = rule AND l.dur >= v.long_call_ns
  ) AS f
  CROSS JOIN wb_loss AS o
    ON o.kind = 'throttle'
    AND o.bdi = f.bdi
    AND o.task_id <> f.task_id
    AND o.ts < f.end_ts
    AND o.ts + o.dur > f.ts
  WHERE f.place = 1
  GROUP BY f.bdi;

-- The devices for which tasks waited by a finding that dirtied most of all that
-- was dirtied themselves, by the probes; limits is wb_rule.
own_writes!(rule, limits) =
  SELECT o.bdi
  FROM (
    SELECT DISTINCT l.bdi, l.tid FROM wb_loss AS l WHERE l.finding = rule
  ) AS o
  CROSS JOIN wb_rule AS limits
  CROSS JOIN wb_call AS c
    ON c.tid = o.tid AND c.call = 'balance_dirty_pages'
  GROUP BY o.bdi, limits.most_ratio
  HAVING sum(c.dirtied_bytes) > limits.most_ratio * (
    SELECT sum(a.dirtied_bytes)
    FROM wb_call AS a
    WHERE a.call = 'balance_dirty_pages'
  );

-- Of each device on whose disk others lie (LVM), the one whose writers were
-- throttled longest, for longer than its own. bounds is wb_bounds.
same_disk!(bounds) =
  SELECT
    a.bdi,
    o.bdi AS mate_bdi,
    max(o.comm) AS mate,
    row_number() OVER (PARTITION BY a.bdi ORDER BY sum(o.dur) DESC, o.bdi)
      AS place
  FROM wb_stack AS a
  JOIN wb_stack AS c ON c.disk = a.disk AND c.bdi <> a.bdi
  CROSS JOIN wb_bounds AS bounds
  CROSS JOIN wb_loss AS o ON o.bdi = c.bdi AND o.kind = 'throttle'
  WHERE in_time!(o.ts, bounds)
  GROUP BY a.bdi, o.bdi
  HAVING sum(o.dur) > (
    SELECT total(l.dur) FROM wb_loss AS l
    WHERE l.bdi = a.bdi AND l.kind = 'throttle'
  );

-- In which calls the waits of some rows of wb_loss were. A file system syncs a
-- file in a call that is no fsync: of a write that O_SYNC asks for it, and
-- overlayfs of what it copies up in open().
sync_place!(loss) =
  CASE
    WHEN min(loss.sync_call = 'ext4_sync_file') = 1
      AND recorded!('syscalls:sys_enter_fsync')
      THEN 'in syncs outside of fsync calls (O_SYNC or O_DSYNC, open() of what'
        || ' overlayfs copies up, NFS server, io_uring)'
    WHEN min(loss.sync_call IS NOT NULL) = 1 THEN 'in sync or fsync'
    WHEN max(loss.sync_call IS NOT NULL) = 1
      THEN 'in sync, in fsync or for pages under writeback'
    ELSE 'for pages under writeback (truncate, a rewrite, or a sync without an'
      || ' event)'
  END;

-- The call that waits until data is on the disk and took longest in all, with
-- the finding that tells of it: the dearest, where those who lost time to that
-- made nearly all of these. bounds is wb_bounds.
sync_calls!(bounds) =
  SELECT
    o.finding, o.bdi, s.call,
    count(*) AS calls_count,
    sum(s.end_ts - s.ts) / count(*) AS mean_ns,
    CASE WHEN count(*) > 1 THEN max(s.end_ts - s.ts) END AS max_ns,
    '.' AS full_stop,
    row_number() OVER (ORDER BY sum(s.end_ts - s.ts) DESC, s.call) AS place,
    count(w.tid) >= o.nearly_all_ratio * count(*) AS is_told
  FROM (
    SELECT t.finding, t.bdi, v.nearly_all_ratio
    FROM wb_loss_total AS t
    CROSS JOIN wb_rule AS v
    WHERE t.finding IN (
      'journal_commit', 'fsync_storm', 'many_seconds', 'past_page_cache'
    )
    ORDER BY t.cost_task_ns DESC, t.finding, t.bdi
    LIMIT 1
  ) AS o
  CROSS JOIN wb_call AS s
  CROSS JOIN wb_bounds AS bounds
  LEFT JOIN (SELECT DISTINCT l.finding, l.bdi, l.tid FROM wb_loss AS l) AS w
    ON w.tid = s.tid AND w.finding = o.finding AND w.bdi IS o.bdi
  WHERE s.is_sync = 1
    AND s.end_ts IS NOT NULL
    AND (s.cut IS NULL OR s.errno IS NULL)
    AND in_time!(s.ts, bounds)
  GROUP BY o.finding, o.bdi, o.nearly_all_ratio, s.call;

-- Who submitted a request (wb_wait_request), by the row of wb_task of its tid:
-- kernel: a thread of the kernel, such as the flusher; metadata: marked so;
-- sync: a task in fsync or the like; itself: a task otherwise, which is direct
-- I/O, or a write to a file that is open with O_SYNC where no event of the file
-- system tells.
way!(request, task) =
  CASE
    WHEN request.tid = 0 OR task.is_kernel = 1 THEN 'kernel'
    WHEN request.rwbs GLOB '*M*' THEN 'metadata'
    WHEN request.ts <= (
      SELECT c.end_ts
      FROM wb_call AS c
      WHERE c.tid = request.tid
        AND c.is_write IS NULL
        AND c.seq < request.seq
        AND c.is_sync IS NOT NULL
      ORDER BY c.seq DESC
      LIMIT 1
    ) THEN 'sync'
    ELSE 'itself'
  END;

-- Its row (call) for a row of wb_loss_total.
told_calls!(call, total) =
  call.place = 1 AND call.is_told = 1
  AND call.finding = total.finding AND call.bdi IS total.bdi;

-- Samples of the part that was asked for, each with its window; told is the
-- source of wb_usage.
sampled!(told) =
  SELECT window_start!(u.ts, i, o) AS window_start_ns, u.*
  FROM wb_usage AS u
  CROSS JOIN wb_bounds AS i
  CROSS JOIN wb_params AS o
  WHERE u.source = told AND in_range!(u.ts, o);

-- The row of wb_task that an event belongs to.
task_of!(task, event) =
  task.tid = event.tid
  AND event.seq >= task.from_seq AND event.seq < task.until_seq;

-- What each task wrote by write system calls under a name; what a shell writes
-- before it runs a program is the shell's, and standard error is left out.
written!(bounds) =
  SELECT t.task_id, t.tid, sum(c.written_bytes) AS bytes
  FROM wb_call AS c
  CROSS JOIN wb_bounds AS bounds
  JOIN wb_task AS t
    ON t.tid = c.tid AND c.ts >= t.from_ts AND c.ts < t.until_ts
  WHERE c.written_bytes > 0 AND (c.fd IS NULL OR c.fd <> 2)
    AND in_time!(c.ts, bounds)
  GROUP BY t.task_id, t.tid;

-- The kernel's fls(): the place of the highest bit that is set, from 1 on.
fls!(number) =
  (
    SELECT count(*)
    FROM json_each('[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21]')
      AS bit
    WHERE number >> bit.value > 0
  );

-- A time in the time of interest; bounds is wb_bounds.
in_time!(ts, bounds) =
  ts >= bounds.start_ts AND ts < bounds.end_ts;

-- A time in the part of the trace that was asked for, whatever the trace has;
-- params is wb_params.
in_range!(ts, params) =
  (params.t0_ns IS NULL OR ts >= params.t0_ns)
  AND (params.t1_ns IS NULL OR ts < params.t1_ns);

-- What the filters of a question ask for; params is wb_params.
asked!(row, params) =
  of_wb!(row, params) AND of_task!(row, params);

of_wb!(row, params) =
  (params.bdi IS NULL OR row.bdi = params.bdi)
  AND (params.cgroup_ino IS NULL OR row.cgroup_ino = params.cgroup_ino);

-- A disk that was asked for, or below the device that was.
of_disk!(device, params) =
  params.bdi IS NULL
  OR device = params.bdi
  OR device IN (
    SELECT k.disk FROM wb_params AS a JOIN wb_stack AS k ON k.bdi = a.bdi
  );

of_task!(row, params) =
  (params.tid IS NULL OR row.tid = params.tid)
  AND (params.comm_glob IS NULL OR row.comm GLOB params.comm_glob);

-- Rows of one task under its name, bdi and cgroup.
same_writer!(one, other) =
  one.task_id = other.task_id
  AND one.bdi = other.bdi
  AND coalesce(one.cgroup_ino, 0) = coalesce(other.cgroup_ino, 0);

-- The start of the window that a time lies in, also before the first event.
window_start!(ts, bounds, params) =
  bounds.start_ts
  + (ts - bounds.start_ts) / params.window_ns * params.window_ns
  - CASE WHEN (ts - bounds.start_ts) % params.window_ns < 0
    THEN params.window_ns ELSE 0 END;

-- The windows that a stretch of time lies in, as far as it is in the time of
-- interest; found by their numbers.
touches!(from_ts, to_ts, window, bounds, params) =
  from_ts < bounds.end_ts
  AND to_ts > bounds.start_ts
  AND window.window_index >= (from_ts - bounds.start_ts) / params.window_ns
  AND window.window_index <= (to_ts - 1 - bounds.start_ts) / params.window_ns;

-- A balance_dirty_pages event that tells something: one that charged dirtied
-- pages, made the task sleep or went round the loop (a step), or came after a
-- think time of 500 ms and more. Most of a busy run tell nothing. As in the
-- catalog (notable), word by word: ingest made an index of them.
is_told!(event) =
  is_step!(event) OR event.think >= 500;

is_step!(event) =
  event.pause > 0
  OR event.paused > 0
  OR event.pause < -1000
  OR event.period <> 0
  OR event.period IS NULL
  OR event.pause IS NULL;

-- Pages that the kernel compares with its thresholds, and the hard limit, of a
-- global_dirty_state.
dirty_pages!(state) =
  state.nr_dirty + state.nr_writeback + coalesce(state.nr_unstable, 0);

hard_limit!(state) =
  CASE WHEN state.thresh > state.dirty_limit
    THEN state.thresh
    ELSE state.dirty_limit
  END;

-- The setpoint of a wb, of a balance_dirty_pages event; units is wb_units. NULL
-- where the kernel's product setpoint * wb_thresh does not fit into 32 bits.
wb_setpoint!(event, units) =
  CASE
    WHEN units.long_bytes = 4 AND event.setpoint * event."limit" >= 1 << 32
      THEN NULL
    ELSE event.wb_setpoint
  END;

-- Whether an event goes on with the call of the one before it, last: 1 or 0;
-- call is the row of _throttle_done of the event, where a return proves it.
goes_on!(call, last, event) =
  CASE
    WHEN call.done_seq IS NOT NULL THEN 1 - call.is_first
    WHEN call.follows_done = 1 THEN 0
    ELSE coalesce(goes_round!(last, event), 0)
  END;

-- Whether a balance_dirty_pages event with a pause and the task's next one are
-- of one call, where no return proves it: a call goes round again only at
-- task_ratelimit 0 and after a sleep, which is part of paused, and keeps its
-- dirtied count. One that left at task_ratelimit 0, as its wb had hardly a
-- dirty page, is told from the next one by paused alone.
goes_round!(event, next) =
  next.paused >= event.paused + event.pause
  AND event.task_ratelimit = 0
  AND event.pause > 0
  AND next.bdi = event.bdi
  AND next.dirtied = event.dirtied;

-- Whether an event was recorded: it may not have fired.
recorded!(named) =
  EXISTS (SELECT 1 FROM raw_event_format AS f WHERE f.event = named);

-- A record shortly before the time of a moment; a search goes on from there.
seq_before!(moment) =
  coalesce(
    (
      SELECT i.seq
      FROM raw_time_index AS i
      WHERE i.ts < moment.ts
      ORDER BY i.ts DESC, i.seq DESC
      LIMIT 1
    ), 0
  );

-- The first of some events at a time or behind it; near has a seq before it.
first_at!(events, near) =
  SELECT a.seq
  FROM events AS a
  WHERE a.seq >= near.seq AND a.ts >= near.ts
  ORDER BY a.seq
  LIMIT 1;

-- The first event of a task in the order of wbs, and the last: an index has
-- them, and a task with one wb has the same wb in both.
low_wb!(task) =
  SELECT w.seq
  FROM raw_balance_dirty_pages AS w
  WHERE w.tid = task.tid
  ORDER BY w.tid, w.bdi, w.cgroup_ino
  LIMIT 1;

high_wb!(task) =
  SELECT w.seq
  FROM raw_balance_dirty_pages AS w
  WHERE w.tid = task.tid
  ORDER BY w.tid DESC, w.bdi DESC, w.cgroup_ino DESC
  LIMIT 1;

-- Whether a name is that of a thread of the kernel, nobody's program: of md
-- md127_raid1, md_home_raid5, md0_resync, and not md5_check.
is_kernel!(comm) =
  comm GLOB 'kworker/*'
  OR comm GLOB 'jbd2/*'
  OR comm GLOB 'xfs*/*'
  OR comm GLOB 'btrfs-*'
  OR comm GLOB 'kswapd[0-9]*'
  OR comm GLOB 'kcompactd[0-9]*'
  OR comm GLOB 'flush-*'
  OR comm GLOB 'loop[0-9]*'
  OR comm GLOB 'md*_raid[0-9]*'
  OR comm GLOB 'md*_resync'
  OR comm GLOB 'md*_reshape'
  OR comm GLOB 'dmcrypt_write/*'
  OR comm GLOB 'ksoftirqd/*'
  OR comm GLOB 'ktimers/*'
  OR comm GLOB 'rcu[_ocs]*'
  OR comm GLOB 'scsi_eh_[0-9]*'
  OR comm GLOB 'drbd_*'
  OR comm GLOB 'f2fs_*'
  OR comm GLOB 'z_*'
  OR comm IN ('txg_sync', 'usb-storage')
  OR comm GLOB 'migration/*'
  OR comm IN ('ext4lazyinit', 'khugepaged', 'kthreadd', 'kauditd');

-- Name and number of a task, dd 399; tid 399 where it has no name.
task_name!(task) =
  coalesce(nullif(task.comm, 'tid ' || task.tid) || ' ' || task.tid, task.comm);

-- The mean of what may not be known, weighted.
mean_over!(value, weight) =
  sum(weight * value)
  / nullif(sum(CASE WHEN value IS NOT NULL THEN weight END), 0);

-- Returns of a system call, each with its entry: calls never nest within a
-- task, so that what is before a return is its entry, or that is lost. exit and
-- enter are the adapters of its events.
returned!(exit, enter, number) =
  SELECT
    x.tid,
    number AS call,
    x.seq AS exit_seq,
    x.ts AS exit_ts,
    x.ret, x.prev_seq,
    e.seq AS enter_seq,
    e.ts AS enter_ts,
    e.fd
  FROM exit AS x
  LEFT JOIN enter AS e ON e.seq = x.prev_seq;

-- Its entries that no return follows, but another entry, or nothing: of each
-- task the last of all, by twice its seq, and one more of a return.
entered!(enter, exit, number) =
  SELECT e.tid, number AS call, e.seq, e.ts, n.ts AS next_ts
  FROM enter AS n
  CROSS JOIN enter AS e ON e.seq = n.prev_seq
  UNION ALL
  SELECT e.tid, number, e.seq, e.ts, NULL
  FROM (
    SELECT s.tid, max(s.step) AS step
    FROM (
      SELECT e.tid, max(e.seq) * 2 AS step FROM enter AS e GROUP BY e.tid
      UNION ALL
      SELECT x.tid, max(x.seq) * 2 + 1 FROM exit AS x GROUP BY x.tid
    ) AS s
    GROUP BY s.tid
  ) AS l
  CROSS JOIN enter AS e ON e.seq = l.step / 2
  WHERE l.step % 2 = 0;

-- Entries and returns of a system call that waits for the disk.
sync_call!(enter, exit, named) =
  SELECT
    e.tid, e.seq, e.ts,
    named AS call,
    1 AS is_entry,
    NULL AS ret
  FROM enter AS e
  UNION ALL
  SELECT x.tid, x.seq, x.ts, named, 0, x.ret
  FROM exit AS x;

-- Events that begin and end a span of a task.
span!(opening, closing, named) =
  SELECT
    e.tid, e.seq, e.ts,
    named AS what,
    0 AS is_end
  FROM opening AS e
  UNION ALL
  SELECT e.tid, e.seq, e.ts, named, 1
  FROM closing AS e;

-- Each task that left a CPU (is_on 0) or got it (1), by sched_switch.
-- left_state is that of one that left it: R could go on, S sleeps, D blocked
-- (uninterruptible), T stopped or traced, I a thread of the kernel that has
-- nothing to do, X ended; NULL = nothing tells. TASK_KILLABLE has the bit of
-- TASK_UNINTERRUPTIBLE, too; without bits for tasks that sleep or end
-- prev_state is 0, with a bit above 255 for a task that was preempted. kernel
-- is the name of wb_units in it.
switched!(kernel) =
  SELECT
    s.prev_pid AS tid,
    s.seq, s.ts,
    0 AS is_on,
    CASE
      WHEN s.prev_state IS NULL THEN NULL
      WHEN s.prev_state & kernel.dead_bits <> 0 THEN 'X'
      -- D|K of texts is TASK_KILLABLE: its 128 is the idle bit of 4.14 on.
      WHEN s.prev_state & kernel.idle_bits <> 0 AND s.prev_state & 130 <> 130
        THEN 'I'
      WHEN s.prev_state & 2 <> 0 THEN 'D'
      WHEN s.prev_state & 1 <> 0 THEN 'S'
      WHEN s.prev_state & 12 <> 0 THEN 'T'
      ELSE 'R'
    END AS left_state
  FROM wb_units AS kernel
  CROSS JOIN raw_sched_switch AS s
  WHERE s.prev_pid <> 0
  UNION ALL
  SELECT s.next_pid, s.seq, s.ts, 1, NULL
  FROM raw_sched_switch AS s
  WHERE s.next_pid <> 0;

-- Begins or ends of requests to servers of NFS.
nfs_step!(events, asked, data, failed, ending) =
  SELECT
    e.seq, e.ts, e.tid,
    'nfs' AS protocol,
    device!(e) AS device,
    asked AS op,
    e.fileid AS key_1,
    e."offset" AS key_2,
    data AS bytes,
    failed AS error,
    ending AS is_end
  FROM events AS e;

-- A block device as events of writeback name it.
device!(event) =
  event.dev_major || ':' || event.dev_minor;

-- The same with its name, as a part of the path of a timeline's track, in which
-- a slash separates levels.
device_part!(named, bdi) =
  replace(replace(coalesce(named || ' ', '') || bdi, '\', '\\'), '/', '\/');

-- The place of a percentile among count values: nearest rank.
rank_of!(percent, count) =
  (percent * count + 99) / 100;

-- For how long a device, or another resource of wb_busy, had been busy at a
-- moment: up to the last stretch that had begun. The statement reads wb_busy
-- itself, too: what a macro reads is not seen.
busy_until!(moment, kind, bdi) =
  coalesce(
    (
      SELECT b.before_ns + min(moment, b.to_ts) - b.from_ts
      FROM wb_busy AS b
      WHERE b.resource = kind AND b.device = bdi AND b.from_ts <= moment
      ORDER BY b.from_ts DESC
      LIMIT 1
    ), 0
  );

-- A size as people read it, 54.6 MiB, and a rate.
mib!(bytes) = printf('%.1f MiB', (bytes) / 1048576.0);

mib_per_s!(rate) = printf('%.2f MiB/s', (rate) / 1048576.0);

-- A size that may be small.
size!(bytes) =
  CASE
    WHEN bytes >= 1048576 THEN printf('%.1f MiB', bytes / 1048576.0)
    ELSE printf('%.0f KiB', bytes / 1024.0)
  END;

-- A counter of ingest (raw_ingest_stats) that counts records, or parts of the
-- trace, that were not read in full. Overruns are in raw_lost_events.
not_read!(stat) =
  stat.value > 0
  AND (
    stat.severity = 'data_loss'
    OR stat.name IN ('unknown_events', 'short_records', 'bad_dynamic_fields')
  )
  AND stat.name <> 'lost_gaps';

-- The name of an error of writing: a disk that somebody unplugged, that is
-- full, or whose medium is bad. NULL for other errors.
write_error!(errno) =
  CASE errno
    WHEN 5 THEN 'EIO'
    WHEN 6 THEN 'ENXIO'
    WHEN 19 THEN 'ENODEV'
    WHEN 28 THEN 'ENOSPC'
    WHEN 30 THEN 'EROFS'
    WHEN 52 THEN 'EBADE'
    WHEN 61 THEN 'ENODATA'
    WHEN 67 THEN 'ENOLINK'
    WHEN 84 THEN 'EILSEQ'
    WHEN 110 THEN 'ETIMEDOUT'
    WHEN 116 THEN 'ESTALE'
    WHEN 117 THEN 'EUCLEAN'
    WHEN 121 THEN 'EREMOTEIO'
    WHEN 122 THEN 'EDQUOT'
  END;

-- The device and the cgroup that a wait counts for: NULL where the finding that
-- tells of it is not about one.
finding_bdi!(loss) =
  CASE
    WHEN loss.finding NOT IN (
      'swap_competes', 'reclaim_meets_dirty', 'direct_reclaim', 'limit_changed'
    ) THEN loss.bdi
  END;

finding_cgroup!(loss) =
  CASE
    WHEN loss.finding IN ('small_memcg_limit', 'cgroup_starves', 'device_idle')
      THEN loss.cgroup_ino
  END;

-- A device stopped: it is silent for far longer than its rate makes of what it
-- has; silence is wb_busy, rate wb_disk_rate. One that wrote nothing else has
-- no rate.
is_hung!(silence, rule, rate) =
  silence.silent_ns > 0
  AND silence.silent_ns >= rule.hung_factor * silence.silent_bytes
    * coalesce(
      max(rate.busy_ns - silence.silent_ns, 0) / nullif(rate.written_bytes, 0),
      0
    );
