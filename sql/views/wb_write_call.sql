-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_write_call
-- @summary  Finished write system calls, and copies inside the kernel, with the
--   bytes they wrote.
-- @grain    call; order ts, tid
-- @needs    raw_sys_enter_write, raw_sys_exit_write, raw_sys_enter_pwrite64,
--   raw_sys_exit_pwrite64, raw_sys_enter_writev, raw_sys_exit_writev,
--   raw_sys_enter_pwritev, raw_sys_exit_pwritev, raw_sys_enter_pwritev2,
--   raw_sys_exit_pwritev2, raw_sys_enter_copy_file_range,
--   raw_sys_exit_copy_file_range, raw_sys_enter_sendfile64,
--   raw_sys_exit_sendfile64
-- @optional syscalls:sys_exit_write, syscalls:sys_enter_write
-- @column   ts INTEGER ns, when the call was entered; when it returned, where
--   the entry was not recorded
-- @column   end_ts INTEGER ns, when the call returned
-- @column   tid INTEGER thread
-- @column   fd INTEGER descriptor; NULL when the entry was not recorded
-- @column   written_bytes INTEGER result of the call
-- @materialize
CREATE VIEW wb_write_call AS
WITH
  steps AS (
    SELECT e.tid, e.seq, e.ts, e.fd, NULL AS ret FROM raw_sys_enter_write AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, e.fd, NULL FROM raw_sys_enter_pwrite64 AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, e.fd, NULL FROM raw_sys_enter_writev AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, e.fd, NULL FROM raw_sys_enter_pwritev AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, e.fd, NULL FROM raw_sys_enter_pwritev2 AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, e.fd, NULL
    FROM raw_sys_enter_copy_file_range AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, e.fd, NULL FROM raw_sys_enter_sendfile64 AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, NULL, x.ret FROM raw_sys_exit_write AS x
    UNION ALL
    SELECT x.tid, x.seq, x.ts, NULL, x.ret FROM raw_sys_exit_pwrite64 AS x
    UNION ALL
    SELECT x.tid, x.seq, x.ts, NULL, x.ret FROM raw_sys_exit_writev AS x
    UNION ALL
    SELECT x.tid, x.seq, x.ts, NULL, x.ret FROM raw_sys_exit_pwritev AS x
    UNION ALL
    SELECT x.tid, x.seq, x.ts, NULL, x.ret FROM raw_sys_exit_pwritev2 AS x
    UNION ALL
    SELECT x.tid, x.seq, x.ts, NULL, x.ret
    FROM raw_sys_exit_copy_file_range AS x
    UNION ALL
    SELECT x.tid, x.seq, x.ts, NULL, x.ret FROM raw_sys_exit_sendfile64 AS x
  ),
  paired AS (
    SELECT
      s.ts,
      s.tid,
      s.ret,
      lag(s.ret IS NULL, 1, 0) OVER task AS has_entry,
      lag(s.ts) OVER task AS entry_ts,
      lag(s.fd) OVER task AS entry_fd
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid ORDER BY s.seq)
  )
SELECT
  CASE WHEN p.has_entry THEN p.entry_ts ELSE p.ts END AS ts,
  p.ts AS end_ts,
  p.tid,
  CASE WHEN p.has_entry THEN p.entry_fd END AS fd,
  p.ret AS written_bytes
FROM paired AS p
WHERE p.ret > 0;
