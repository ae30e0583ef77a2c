-- SPDX-License-Identifier: Apache-2.0
-- Who did it: tasks under their names, threads and cgroups.

-- @view     wb_task
-- @summary  Tasks under their names. A thread id has a row for each task that
--   had it, one after another, and for each name that the task had, as far as
--   sched and task events tell; without them it has one row, with its last
--   known name. An event belongs to the row of its tid with from_seq <= seq
--   < until_seq, and every event belongs to one.
-- @grain    tid, task, name; order tid, from_seq
-- @key      task_id
-- @index    tid
-- @optional sched:sched_switch, sched:sched_process_exec,
--   sched:sched_process_exit, sched:sched_process_fork, task:task_newtask,
--   task:task_rename
-- @column   task_id INTEGER a task under one name: a row of wb_task, from 1 on
-- @column   tid INTEGER thread
-- @column   comm TEXT its name at that time; tid in words where none is known
-- @column   from_ts INTEGER ns, from when on it had this name: exec, rename and
--   fork tell it; else just after sched_switch last had another one. Of the
--   first row of a tid: before all times
-- @column   until_ts INTEGER ns, from_ts of the next row of the tid, else after
--   all times
-- @column   from_seq INTEGER the same as from_ts, in the order of all records
-- @column   until_seq INTEGER the same as until_ts, in the order of all records
-- @column   first_ts INTEGER first event in its context under this name, or
--   when it got the name
-- @column   last_ts INTEGER last event in its context under this name, or when
--   it lost the name
-- @column   path TEXT name and tid as a part of the path of a timeline's track
-- @column   is_kernel INTEGER 1: by its name it is a thread of the kernel,
--   nobody's program
-- @source   kernel/exit.c do_exit(), do_task_dead(); fs/exec.c
--   begin_new_exec(): comm is the last part of filename, 15 bytes at most;
--   docs/timeline.md has the rules of escaping; drivers/md/md.c
--   md_register_thread(); drivers/md/dm-crypt.c
-- @materialize
CREATE VIEW wb_task AS
WITH
  lives AS (
    SELECT
      s.*,
      coalesce(
        sum(CASE WHEN s.step IN (0, 9) THEN 1 ELSE 0 END) OVER (
          PARTITION BY s.tid ORDER BY s.seq IS NULL, s.seq, s.step
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        0
      ) AS life
    FROM _task_step AS s
  ),
  ordered AS (
    SELECT
      l.*,
      row_number() OVER (
        PARTITION BY l.tid, l.life ORDER BY l.seq IS NULL, l.seq, l.step
      ) AS place
    FROM lives AS l
    WHERE l.step NOT IN (0, 9)
  ),
  named AS (
    SELECT
      o.*,
      lag(o.comm) OVER life AS prev_comm,
      lag(o.ts) OVER life AS prev_ts,
      lag(o.seq) OVER life AS prev_seq
    FROM ordered AS o
    WHERE o.place = 1 OR o.comm IS NOT NULL
    WINDOW life AS (PARTITION BY o.tid, o.life ORDER BY o.place)
  ),
  -- Where a name begins. The first one of a life has all that is before it.
  begins AS (
    SELECT
      n.tid, n.life, n.comm,
      CASE
        WHEN n.place = 1 THEN NULL
        WHEN n.is_now = 1 THEN n.ts
        ELSE n.prev_ts + 1
      END AS from_ts,
      CASE
        WHEN n.place = 1 THEN NULL
        WHEN n.is_now = 1 THEN n.seq
        ELSE n.prev_seq + 1
      END AS from_seq
    FROM named AS n
    WHERE n.place = 1 OR n.comm <> coalesce(n.prev_comm, '')
  ),
  placed AS (
    SELECT b.tid, b.life, b.comm, b.from_ts, b.from_seq
    FROM begins AS b
    UNION ALL
    SELECT k.tid, 0, k.comm, NULL, NULL
    FROM raw_task AS k
    WHERE k.tid NOT IN (SELECT b.tid FROM begins AS b)
  ),
  bounded AS (
    SELECT
      p.tid, p.comm,
      coalesce(p.from_ts, d.ts, -9000000000000000000) AS from_ts,
      coalesce(
        p.from_seq,
        d.seq + CASE d.step WHEN 9 THEN 1 ELSE 0 END,
        -9000000000000000000
      ) AS from_seq
    FROM placed AS p
    LEFT JOIN lives AS d
      ON d.tid = p.tid AND d.life = p.life - 1 AND d.step IN (0, 9)
  ),
  spans AS (
    SELECT
      b.tid, b.comm, b.from_ts, b.from_seq,
      lead(b.from_ts, 1, 9000000000000000000) OVER (
        PARTITION BY b.tid ORDER BY b.from_seq
      ) AS until_ts
    FROM bounded AS b
  ),
  seen AS (
    SELECT
      s.tid,
      coalesce(s.comm, 'tid ' || s.tid) AS comm,
      s.from_ts, s.from_seq,
      CASE WHEN t.first_ts > s.from_ts THEN t.first_ts ELSE s.from_ts END
        AS first_ts,
      CASE WHEN t.last_ts < s.until_ts THEN t.last_ts ELSE s.until_ts - 1 END
        AS last_ts
    FROM spans AS s
    JOIN raw_task AS t ON t.tid = s.tid
  ),
  -- A name under which a task fired no event is no row.
  active AS (
    SELECT
      s.*,
      lag(s.tid) OVER (PARTITION BY s.tid ORDER BY s.from_seq) AS prev_tid
    FROM seen AS s
    WHERE s.first_ts <= s.last_ts
  )
SELECT
  row_number() OVER (ORDER BY a.tid, a.from_seq) AS task_id,
  a.tid, a.comm,
  CASE WHEN a.prev_tid IS NULL THEN -9000000000000000000 ELSE a.from_ts END
    AS from_ts,
  lead(a.from_ts, 1, 9000000000000000000) OVER (
    PARTITION BY a.tid ORDER BY a.from_seq
  ) AS until_ts,
  CASE WHEN a.prev_tid IS NULL THEN -9000000000000000000 ELSE a.from_seq END
    AS from_seq,
  lead(a.from_seq, 1, 9000000000000000000) OVER (
    PARTITION BY a.tid ORDER BY a.from_seq
  ) AS until_seq,
  a.first_ts, a.last_ts,
  replace(replace(a.comm, '\', '\\'), '/', '\/') || ' ' || a.tid AS path,
  is_kernel!(a.comm) AS is_kernel
FROM active AS a;

-- @view     wb_thread
-- @summary  Threads with the process that they belong to, as far as
--   task_newtask tells. A thread whose creation was not recorded counts as a
--   process of its own: that is what every kernel thread and every program with
--   one thread is.
-- @grain    thread; order tid
-- @optional task:task_newtask, sched:sched_switch
-- @column   tid INTEGER thread
-- @column   pid INTEGER process: tid of its first thread (the kernel's tgid)
-- @column   comm TEXT last known name of the thread
-- @column   process_comm TEXT last known name of the process's first thread
-- @column   is_real_time INTEGER 1: it ran with real-time or deadline priority:
--   the kernel gives it dirty thresholds a quarter and more above all others
-- @source   kernel/fork.c copy_process(): 0x10000 is CLONE_THREAD;
--   mm/page-writeback.c domain_dirty_limits(); include/linux/sched/rt.h:
--   priorities below 100 are real-time
-- @materialize
CREATE VIEW wb_thread AS
WITH RECURSIVE
  -- A tid may be used again: the last task that got it.
  newest AS (
    SELECT n.pid AS tid, n.tid AS parent_tid, n.clone_flags, n.seq
    FROM raw_task_newtask AS n
    JOIN (
      SELECT m.pid, max(m.seq) AS seq FROM raw_task_newtask AS m GROUP BY m.pid
    ) AS l ON l.seq = n.seq
  ),
  cloned AS (
    SELECT n.tid, n.parent_tid
    FROM newest AS n
    WHERE n.clone_flags & 65536 <> 0
  ),
  -- Threads are made by threads of their process.
  ancestor(tid, pid, depth) AS (
    SELECT c.tid, c.parent_tid, 1 FROM cloned AS c
    UNION ALL
    SELECT a.tid, c.parent_tid, a.depth + 1
    FROM ancestor AS a
    JOIN cloned AS c ON c.tid = a.pid
    WHERE a.depth < (SELECT v.depth_most_count FROM wb_rule AS v)
  ),
  deepest AS (
    SELECT a.tid, max(a.depth) AS depth FROM ancestor AS a GROUP BY a.tid
  ),
  leader AS (
    SELECT a.tid, a.pid
    FROM deepest AS d
    JOIN ancestor AS a ON a.tid = d.tid AND a.depth = d.depth
  ),
  hasty AS (
    SELECT s.prev_pid AS tid
    FROM raw_sched_switch AS s
    WHERE s.prev_prio < 100 AND s.prev_pid <> 0
    UNION
    SELECT s.next_pid
    FROM raw_sched_switch AS s
    WHERE s.next_prio < 100 AND s.next_pid <> 0
  )
SELECT
  t.tid,
  coalesce(l.pid, t.tid) AS pid,
  t.comm,
  p.comm AS process_comm,
  CASE WHEN h.tid IS NULL THEN 0 ELSE 1 END AS is_real_time
FROM raw_task AS t
LEFT JOIN leader AS l ON l.tid = t.tid
LEFT JOIN hasty AS h ON h.tid = t.tid
LEFT JOIN raw_task AS p ON p.tid = coalesce(l.pid, t.tid);

-- @view     wb_cgroup
-- @summary  Numbers for the cgroup paths that kernels 4.3 to 4.5 record instead
--   of inodes: the inode where the run's cgroups file has the path, 1 for the
--   root, else a negative number in order of the paths.
-- @grain    path; order path
-- @events   writeback:balance_dirty_pages
-- @column   path TEXT as recorded, below the mount point
-- @column   cgroup_ino INTEGER inode, or a negative number that stands for it
-- @source   include/trace/events/writeback.h of 4.3: __trace_wb_assign_cgroup()
-- @materialize
CREATE VIEW wb_cgroup AS
WITH
  old_kernel AS (
    SELECT k.version FROM wb_units AS k
    WHERE k.version IS NULL OR k.version BETWEEN 4003 AND 4005
  ),
  named AS (
    SELECT b.cgroup_path AS path
    FROM raw_balance_dirty_pages AS b
    WHERE EXISTS (SELECT 1 FROM old_kernel) AND b.cgroup_path IS NOT NULL
    UNION
    SELECT r.cgroup_path
    FROM raw_bdi_dirty_ratelimit AS r
    WHERE EXISTS (SELECT 1 FROM old_kernel) AND r.cgroup_path IS NOT NULL
  ),
  known AS (
    SELECT
      n.path,
      CASE
        WHEN n.path = '/' THEN 1
        ELSE (
          SELECT min(c.cgroup_ino)
          FROM raw_cgroup AS c
          -- The file has whole paths, from wherever cgroups are mounted.
          WHERE substr(c.path, -length(n.path)) = n.path
        )
      END AS cgroup_ino
    FROM named AS n
  )
SELECT
  k.path,
  coalesce(k.cgroup_ino, -row_number() OVER (ORDER BY k.path)) AS cgroup_ino
FROM known AS k;

-- @view     _task_step
-- @summary  What events say of the names of threads, and of their begins and
--   ends, in order.
-- @grain    event; order tid, seq
-- @column   tid INTEGER thread
-- @column   seq INTEGER of the event; NULL = of no event
-- @column   ts INTEGER ns
-- @column   step INTEGER order at one moment; 9 ends a life, 0 begins one
-- @column   comm TEXT its name; NULL = as before
-- @column   is_now INTEGER 1: it has the name from this event on
CREATE VIEW _task_step AS
WITH
  -- Tasks that sched_switch saw under another name than their last one: of the
  -- others one sight is enough.
  renamed AS (
    SELECT s.prev_pid AS tid
    FROM raw_sched_switch AS s
    CROSS JOIN raw_task AS t ON t.tid = s.prev_pid
    WHERE s.prev_pid <> 0 AND (t.comm IS NULL OR s.prev_comm <> t.comm)
    UNION
    SELECT s.next_pid
    FROM raw_sched_switch AS s
    CROSS JOIN raw_task AS t ON t.tid = s.next_pid
    WHERE s.next_pid <> 0 AND (t.comm IS NULL OR s.next_comm <> t.comm)
  ),
  -- After sched_process_exit a task still closes its files; where sched_switch
  -- sees it leave its CPU for good (state X or Z), that is its end.
  ends AS (
    SELECT x.tid, x.seq, x.ts, x.comm, 0 AS is_last
    FROM raw_sched_process_exit AS x
    UNION ALL
    SELECT s.prev_pid, s.seq, s.ts, s.prev_comm, 1
    FROM wb_units AS k
    CROSS JOIN raw_sched_switch AS s
    WHERE s.prev_state & k.dead_bits <> 0 AND s.prev_pid <> 0
  ),
  ended AS (
    SELECT
      e.tid, e.seq, e.ts, e.comm, e.is_last,
      -- Another name: that switch is of another task.
      lead(e.is_last) OVER task = 1
        AND coalesce(lead(e.comm) OVER task = e.comm, 1) AS is_followed
    FROM ends AS e
    WINDOW task AS (PARTITION BY e.tid ORDER BY e.seq)
  ),
  -- What tells a name (is_now: it is new from this time on, else the task may
  -- have had it before), and what ends a life: step 9, after its last event,
  -- and step 0, before the first event of the next task with this tid.
  told AS (
    SELECT s.prev_pid AS tid, s.seq, s.ts, 5 AS step, s.prev_comm AS comm,
      0 AS is_now
    FROM raw_sched_switch AS s
    WHERE s.prev_pid IN (SELECT r.tid FROM renamed AS r)
    UNION ALL
    SELECT s.next_pid, s.seq, s.ts, 5, s.next_comm, 0
    FROM raw_sched_switch AS s
    WHERE s.next_pid IN (SELECT r.tid FROM renamed AS r)
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 6, NULL, 0
    FROM raw_sched_process_exec AS x
    UNION ALL
    SELECT
      x.tid, x.seq, x.ts, 7,
      substr(
        x.filename,
        length(rtrim(x.filename, replace(x.filename, '/', ''))) + 1,
        15
      ),
      1
    FROM raw_sched_process_exec AS x
    UNION ALL
    SELECT coalesce(n.pid, n.tid), n.seq, n.ts, 6, n.oldcomm, 0
    FROM raw_task_rename AS n
    UNION ALL
    SELECT coalesce(n.pid, n.tid), n.seq, n.ts, 7, n.newcomm, 1
    FROM raw_task_rename AS n
    UNION ALL
    SELECT c.tid, c.seq, c.ts, d.step, CASE d.step WHEN 1 THEN c.comm END, 0
    FROM (
      SELECT f.child_pid AS tid, f.seq, f.ts, f.child_comm AS comm
      FROM raw_sched_process_fork AS f
      UNION ALL
      SELECT n.pid, n.seq, n.ts, n.comm
      FROM raw_task_newtask AS n
    ) AS c
    -- Whoever had the tid before, the end of that, the name of the new one.
    CROSS JOIN (
      SELECT -1 AS step UNION ALL SELECT 0 UNION ALL SELECT 1
    ) AS d
    UNION ALL
    -- A life of which nothing but its end is told has no other name.
    SELECT e.tid, e.seq, e.ts, 5, e.comm, 0
    FROM ended AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts + 1, 9, NULL, 0
    FROM ended AS e
    WHERE e.is_last = 1 OR coalesce(e.is_followed, 0) = 0
  )
SELECT t.tid, t.seq, t.ts, t.step, t.comm, t.is_now
FROM told AS t
WHERE t.tid <> 0
UNION ALL
-- The name that the recorder kept is the last one.
SELECT k.tid, NULL, k.last_ts, 8, k.comm, 0
FROM raw_task AS k
WHERE k.tid IN (SELECT t.tid FROM told AS t);
