-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_thread
-- @summary  Threads with the process that they belong to, as far as
--   task_newtask tells. A thread whose creation was not recorded counts as a
--   process of its own: that is what every kernel thread and every program with
--   one thread is.
-- @grain    thread; order tid
-- @needs    raw_task, raw_task_newtask
-- @optional task:task_newtask
-- @column   tid INTEGER thread
-- @column   pid INTEGER process: tid of its first thread (the kernel's tgid)
-- @column   comm TEXT last known name of the thread
-- @column   process_comm TEXT last known name of the process's first thread
-- @source   kernel/fork.c copy_process(): 0x10000 is CLONE_THREAD
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
  -- Threads are made by threads of their process; 16 deep is deep enough.
  ancestor(tid, pid, depth) AS (
    SELECT c.tid, c.parent_tid, 1 FROM cloned AS c
    UNION ALL
    SELECT a.tid, c.parent_tid, a.depth + 1
    FROM ancestor AS a
    JOIN cloned AS c ON c.tid = a.pid
    WHERE a.depth < 16
  ),
  deepest AS (
    SELECT a.tid, max(a.depth) AS depth FROM ancestor AS a GROUP BY a.tid
  ),
  leader AS (
    SELECT a.tid, a.pid
    FROM deepest AS d
    JOIN ancestor AS a ON a.tid = d.tid AND a.depth = d.depth
  )
SELECT
  t.tid,
  coalesce(l.pid, t.tid) AS pid,
  t.comm,
  p.comm AS process_comm
FROM raw_task AS t
LEFT JOIN leader AS l ON l.tid = t.tid
LEFT JOIN raw_task AS p ON p.tid = coalesce(l.pid, t.tid);
