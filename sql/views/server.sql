-- SPDX-License-Identifier: Apache-2.0
-- Requests to the servers of NFS and FUSE.

-- @view     wb_server_request
-- @shared
-- @summary  Requests that a client of NFS (WRITE and COMMIT), or a FUSE file
--   system, sent to its server, from being sent to the answer. The time in
--   which a request of NFS stands in the client's queue of the transport is
--   part of it. Matched by file and offset, and by FUSE's own number.
-- @grain    request; order seq
-- @optional nfs:nfs_initiate_write, nfs:nfs_writeback_done,
--   nfs:nfs_initiate_commit, nfs:nfs_commit_done, fuse:fuse_request_send,
--   fuse:fuse_request_end
-- @column   seq INTEGER of the event that sends it
-- @column   ts INTEGER ns, sent
-- @column   end_seq INTEGER of the answer; NULL = none in the trace
-- @column   end_ts INTEGER ns, answered; NULL = no answer in the trace
-- @column   until_ts INTEGER ns, end_ts or the trace's end
-- @column   tid INTEGER thread that sent it, often a kworker
-- @column   protocol TEXT nfs or fuse
-- @column   device TEXT name of the bdi
-- @column   op TEXT WRITE, COMMIT; of FUSE all others, too
-- @column   bytes INTEGER data of a WRITE; NULL = another request
-- @column   error INTEGER 0, or a negative errno; NULL = no answer
-- @column   answer_tid INTEGER thread in which the answer came
-- @source   fs/nfs/write.c; fs/fuse/dev.c; fs/fuse/inode.c fuse_bdi_init();
--   include/uapi/linux/fuse.h
-- @materialize
CREATE VIEW wb_server_request AS
WITH
  known AS (
    SELECT
      e.*,
      min(CASE WHEN e.is_end = 0 THEN e.seq END) OVER same AS first_seq,
      max(CASE WHEN e.is_end = 0 THEN e.key_1 END) OVER device AS top_key
    FROM _request_step AS e
    WINDOW
      same AS (PARTITION BY e.protocol, e.device, e.op, e.key_1, e.key_2),
      device AS (PARTITION BY e.protocol, e.device)
  ),
  -- Several COMMIT of a file can be on their way: the first answer is taken for
  -- the first of them. Linux 6.12 gives a request of FUSE its number after the
  -- event, so it tells 0: numbers are given in the order of the events, and
  -- those of requests sent before the trace are the least.
  counted AS (
    SELECT
      k.*,
      CASE
        WHEN k.op = 'COMMIT' AND k.protocol = 'nfs'
          THEN row_number() OVER (
            PARTITION BY
              k.protocol, k.device, k.op, k.key_1, k.key_2, k.is_end,
              k.first_seq > k.seq
            ORDER BY k.seq
          )
        -- Not where some of them are lost.
        WHEN k.protocol = 'fuse' AND k.top_key = 0
          AND EXISTS (SELECT 1 FROM raw_lost_events)
          THEN -k.seq
        WHEN k.protocol = 'fuse' AND k.top_key = 0 AND k.is_end = 1
          THEN row_number() OVER (
            PARTITION BY k.protocol, k.device, k.is_end ORDER BY k.key_1
          ) - 1
        WHEN k.protocol = 'fuse' AND k.top_key = 0
          THEN row_number() OVER (
            PARTITION BY k.protocol, k.device, k.is_end ORDER BY k.seq
          ) - 1 + max(k.answers_count - k.sent_count, 0)
      END AS key_3
    FROM (
      SELECT
        n.*,
        sum(n.is_end) OVER device AS answers_count,
        sum(1 - n.is_end) OVER device AS sent_count
      FROM known AS n
      WINDOW device AS (PARTITION BY n.protocol, n.device)
    ) AS k
  ),
  paired AS (
    SELECT
      s.*,
      lead(s.is_end) OVER request AS next_is_end,
      lead(s.seq) OVER request AS next_seq,
      lead(s.ts) OVER request AS next_ts,
      lead(s.tid) OVER request AS next_tid,
      lead(s.error) OVER request AS next_error
    FROM counted AS s
    WINDOW request AS (
      PARTITION BY
        s.protocol, s.device,
        -- The answer of FUSE does not say to what.
        CASE WHEN s.protocol = 'nfs' THEN s.op END,
        CASE WHEN s.protocol = 'nfs' OR s.top_key > 0 THEN s.key_1 END,
        s.key_2, s.key_3
      ORDER BY s.seq
    )
  )
SELECT
  p.seq, p.ts,
  CASE WHEN p.next_is_end = 1 THEN p.next_seq END AS end_seq,
  CASE WHEN p.next_is_end = 1 THEN p.next_ts END AS end_ts,
  CASE WHEN p.next_is_end = 1 THEN p.next_ts ELSE b.last_ts END AS until_ts,
  p.tid, p.protocol, p.device, p.op, p.bytes,
  CASE WHEN p.next_is_end = 1 THEN p.next_error END AS error,
  CASE WHEN p.next_is_end = 1 THEN p.next_tid END AS answer_tid
FROM paired AS p
CROSS JOIN wb_units AS b
WHERE p.is_end = 0
  -- It wants no answer.
  AND p.op NOT IN ('FORGET', 'BATCH_FORGET', 'INTERRUPT');

-- @view     _request_step
-- @summary  Begins and ends of requests to servers of network file systems and
--   FUSE.
-- @grain    event; order seq
-- @column   protocol TEXT nfs or fuse
-- @column   device TEXT major:minor of the file system, or the connection
-- @column   op TEXT kind of request
-- @column   key_1 INTEGER what begin and end have in common
-- @column   key_2 INTEGER likewise
-- @column   bytes INTEGER of a write
-- @column   error INTEGER of an end
-- @column   is_end INTEGER 1: the end
CREATE VIEW _request_step AS
SELECT
  w.seq, w.ts, w.tid,
  'nfs' AS protocol,
  device!(w) AS device,
  'WRITE' AS op,
  w.fileid AS key_1,
  w."offset" AS key_2,
  w.count AS bytes,
  NULL AS error,
  0 AS is_end
FROM raw_nfs_initiate_write AS w
UNION ALL
SELECT
  d.seq, d.ts, d.tid,
  'nfs',
  device!(d),
  'WRITE',
  d.fileid,
  d."offset",
  NULL, d.error, 1
FROM raw_nfs_writeback_done AS d
UNION ALL
SELECT
  c.seq, c.ts, c.tid,
  'nfs',
  device!(c),
  'COMMIT',
  c.fileid,
  c."offset",
  NULL, NULL, 0
FROM raw_nfs_initiate_commit AS c
UNION ALL
SELECT
  e.seq, e.ts, e.tid,
  'nfs',
  device!(e),
  'COMMIT',
  e.fileid,
  e."offset",
  NULL, e.error, 1
FROM raw_nfs_commit_done AS e
UNION ALL
SELECT
  s.seq, s.ts, s.tid,
  'fuse',
  device!(s)
    || CASE WHEN s.dev_major > 0 THEN '-fuseblk' ELSE '' END,
  CASE s.opcode
    WHEN 1 THEN 'LOOKUP'
    WHEN 2 THEN 'FORGET'
    WHEN 3 THEN 'GETATTR'
    WHEN 4 THEN 'SETATTR'
    WHEN 12 THEN 'RENAME'
    WHEN 14 THEN 'OPEN'
    WHEN 15 THEN 'READ'
    WHEN 16 THEN 'WRITE'
    WHEN 17 THEN 'STATFS'
    WHEN 18 THEN 'RELEASE'
    WHEN 20 THEN 'FSYNC'
    WHEN 21 THEN 'SETXATTR'
    WHEN 22 THEN 'GETXATTR'
    WHEN 25 THEN 'FLUSH'
    WHEN 26 THEN 'INIT'
    WHEN 35 THEN 'CREATE'
    WHEN 36 THEN 'INTERRUPT'
    WHEN 38 THEN 'DESTROY'
    WHEN 42 THEN 'BATCH_FORGET'
    WHEN 43 THEN 'FALLOCATE'
    WHEN 47 THEN 'COPY_FILE_RANGE'
    WHEN 50 THEN 'SYNCFS'
    ELSE 'opcode ' || s.opcode
  END,
  s.req, 0,
  CASE WHEN s.opcode = 16 THEN s.len - 80 END,
  NULL, 0
FROM raw_fuse_request_send AS s
UNION ALL
SELECT
  a.seq, a.ts, a.tid,
  'fuse',
  device!(a)
    || CASE WHEN a.dev_major > 0 THEN '-fuseblk' ELSE '' END,
  NULL, a.req, 0, NULL, a.error, 1
FROM raw_fuse_request_end AS a;
