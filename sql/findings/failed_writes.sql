-- SPDX-License-Identifier: Apache-2.0
-- @finding   failed_writes
-- @title     Writes failed
-- @summary   A device returned an error for requests that write, pages of files
--   could not be written, or fsync and the like returned an error. Pages whose
--   writeback fails count as written and are clean afterwards: nothing writes
--   them again. fsync returns the error once for each file that was open when
--   it came (up to Linux 4.12 only to who calls it first). Failed requests
--   alone are a warning where something lies on the device (multipath, RAID):
--   it may have tried them again.
-- @severity  severe
-- @confidence measured
-- @sentence  {lead:raw}[ on {bdi}][; {requests_count:request} of {failed_bytes}
--   in all ended with an error][; writeback of {files_count:file} failed][;
--   {calls_count:call} of {call:raw} by {tasks} returned {error:raw}]; the
--   first error came after {after_ns}.
-- @evidence  write_errors: requests_count = sum(count, kind=request,
--   bdi={bdi}); failed_bytes = sum(bytes, kind=request, bdi={bdi}); files_count
--   = count(what, kind=file, bdi={bdi}); calls_count = sum(count, kind=call,
--   bdi={bdi}); after_ns = min(after_ns, bdi={bdi})
-- @advice    No setting of writeback helps: look at the device and at the log
--   of the kernel (dmesg)[; {full_error:raw} means that there is no room left].
--   The kernel does not retry failed writeback: the programs have to write the
--   data again.
-- @column    cost_task_ns INTEGER time that tasks waited in calls that failed
-- @column    severity TEXT severe; warning = only requests failed, of a disk
--   that another device lies on
-- @column    lead TEXT that writes failed, and where programs were told so,
--   that data is lost
-- @column    bdi TEXT the device; NULL = not told
-- @column    requests_count INTEGER requests, or parts of them, with an error;
--   NULL = none
-- @column    failed_bytes INTEGER of them
-- @column    files_count INTEGER files of which pages could not be written;
--   NULL = none, or not recorded
-- @column    calls_count INTEGER calls that returned an error; NULL = none
-- @column    call TEXT which
-- @column    tasks TEXT who made them
-- @column    error TEXT what they returned
-- @column    after_ns INTEGER from the trace's start to the first error
-- @column    full_error TEXT error that says so of the device; NULL = none
-- @column    first_ts INTEGER ns, first error
-- @column    last_ts INTEGER ns, last
-- @source    mm/filemap.c file_check_and_advance_wb_err(); block/blk-mq.c
--   blk_update_request(); Documentation/filesystems/vfs.rst, "Handling errors
--   during writeback"
WITH
  summed AS (
    SELECT
      f.bdi,
      sum(CASE f.kind WHEN 'request' THEN f.count END) AS requests_count,
      sum(f.bytes) AS failed_bytes,
      nullif(count(DISTINCT CASE f.kind WHEN 'file' THEN f.what END), 0)
        AS files_count,
      sum(CASE f.kind WHEN 'call' THEN f.count END) AS calls_count,
      count(DISTINCT f.tid) AS tasks_count,
      count(DISTINCT f.comm) AS names_count,
      min(f.comm) AS comm,
      min(f.tid) AS tid,
      min(CASE f.kind WHEN 'call' THEN f.what END) AS first_call,
      max(CASE f.kind WHEN 'call' THEN f.what END) AS last_call,
      min(CASE f.kind WHEN 'call' THEN f.error END) AS first_error,
      max(CASE f.kind WHEN 'call' THEN f.error END) AS last_error,
      max(CASE WHEN f.error IN ('ENOSPC', 'EDQUOT') THEN f.error END)
        AS full_error,
      min(f.first_ts) AS first_ts,
      max(f.last_ts) AS last_ts
    FROM write_errors AS f
    GROUP BY f.bdi
  )
SELECT
  coalesce(t.cost_task_ns, 0) AS cost_task_ns,
  CASE
    WHEN coalesce(s.calls_count, s.files_count) IS NULL
      AND s.bdi IN (SELECT k.disk FROM wb_stack AS k)
      THEN 'warning'
    ELSE 'severe'
  END AS severity,
  CASE WHEN coalesce(s.calls_count, s.files_count) IS NULL
    THEN 'Writes failed'
    ELSE 'Writes failed and data is lost'
  END AS lead,
  s.bdi, s.requests_count, s.failed_bytes, s.files_count, s.calls_count,
  CASE WHEN s.first_call = s.last_call THEN s.first_call
    ELSE 'fsync and the like'
  END AS call,
  CASE
    WHEN s.tasks_count = 1 THEN task_name!(s)
    WHEN s.names_count = 1 THEN s.tasks_count || ' ' || s.comm
    ELSE s.comm || ' and ' || (s.tasks_count - 1) || ' more'
  END AS tasks,
  CASE WHEN s.first_error = s.last_error THEN s.first_error
    ELSE s.first_error || ' or ' || s.last_error
  END AS error,
  s.first_ts - b.first_ts AS after_ns,
  s.full_error, s.first_ts, s.last_ts
FROM summed AS s
CROSS JOIN wb_bounds AS b
LEFT JOIN wb_loss_total AS t
  ON t.finding = 'failed_writes' AND t.bdi IS s.bdi
ORDER BY cost_task_ns DESC, s.bdi;
