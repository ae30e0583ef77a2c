-- SPDX-License-Identifier: Apache-2.0

-- @module linux.writeback.fairness
-- Whether the threads that write to a device got equal shares of it.
--
-- Needs the ftrace event `writeback/balance_dirty_pages`, and for
-- `coverage_ratio` also `writeback/global_dirty_state`, with raw ftrace events
-- imported.

INCLUDE PERFETTO MODULE linux.writeback.dirty;

INCLUDE PERFETTO MODULE linux.writeback.throttle;

-- How fast each thread dirtied pages of a device, as far as it was charged for
-- them. Threads are left out that the kernel never made wait and that were
-- charged no more than 64 KiB: they write on the side, such as their own
-- messages.
CREATE PERFETTO TABLE linux_writeback_dirtied_rate(
  -- Thread that dirties pages.
  utid JOINID(thread.id),
  -- Backing device.
  bdi STRING,
  -- Inode of the cgroup whose pages they are; 1 is the root. NULL up to 4.5.
  cgroup_ino LONG,
  -- Its first event.
  ts TIMESTAMP,
  -- From its first to its last event.
  dur DURATION,
  -- Bytes charged in that time: those of all its events but the first, whose
  -- pages were dirtied before it.
  charged_bytes LONG,
  -- The rate that this makes, a lower bound.
  charged_bytes_per_s DOUBLE
)
AS
WITH
  counted AS (
    SELECT
      utid,
      bdi,
      cgroup_ino,
      ts,
      sleep_dur,
      charged_bytes,
      row_number() OVER (PARTITION BY utid, bdi, cgroup_ino ORDER BY id)
        AS place
    FROM linux_writeback_throttle_event
  ),
  summed AS (
    SELECT
      utid,
      bdi,
      cgroup_ino,
      min(ts) AS ts,
      max(ts) - min(ts) AS dur,
      sum(iif(place > 1, charged_bytes, 0)) AS charged_bytes
    FROM counted
    GROUP BY
      utid,
      bdi,
      cgroup_ino
    HAVING
      max(sleep_dur) > 0 OR sum(charged_bytes) > 65536
  )
SELECT
  utid,
  bdi,
  cgroup_ino,
  ts,
  dur,
  charged_bytes,
  1e9 * charged_bytes / dur AS charged_bytes_per_s
FROM summed
WHERE
  dur > 0
  AND charged_bytes > 0;

-- How equal the rates of the threads are that write to a device for a cgroup.
-- A low index is no proof of unfairness: a thread may have asked for less.
CREATE PERFETTO VIEW linux_writeback_fairness(
  -- Backing device.
  bdi STRING,
  -- Inode of the cgroup whose pages they are; 1 is the root. NULL up to 4.5.
  cgroup_ino LONG,
  -- Threads that are compared.
  thread_count LONG,
  -- Their rates together, a lower bound.
  charged_bytes_per_s DOUBLE,
  -- Jain's fairness index of the rates: 1 when all are equal, 1 / thread_count
  -- when one thread got everything.
  jain_index DOUBLE,
  -- Slowest rate over fastest.
  slowest_to_fastest_ratio DOUBLE,
  -- Share of the bytes dirtied on the machine, in the time that the trace has
  -- `global_dirty_state` of, that events charge to threads: below a half, the
  -- rates say little. NULL where that event was not recorded.
  coverage_ratio DOUBLE
)
AS
WITH
  machine AS (
    SELECT
      (SELECT sum(charged_bytes) FROM linux_writeback_throttle_event)
        AS charged_bytes,
      (
        SELECT dirtied_bytes
        FROM linux_writeback_dirty_state
        ORDER BY id DESC
        LIMIT 1
      ) - (
        SELECT dirtied_bytes
        FROM linux_writeback_dirty_state
        ORDER BY id
        LIMIT 1
      ) AS dirtied_bytes
  )
SELECT
  r.bdi,
  r.cgroup_ino,
  count() AS thread_count,
  sum(r.charged_bytes_per_s) AS charged_bytes_per_s,
  sum(r.charged_bytes_per_s) * sum(r.charged_bytes_per_s)
    / (count() * sum(r.charged_bytes_per_s * r.charged_bytes_per_s))
    AS jain_index,
  min(r.charged_bytes_per_s) / max(r.charged_bytes_per_s)
    AS slowest_to_fastest_ratio,
  1.0 * m.charged_bytes / nullif(max(m.dirtied_bytes, 0), 0) AS coverage_ratio
FROM linux_writeback_dirtied_rate AS r
CROSS JOIN machine AS m
GROUP BY
  r.bdi,
  r.cgroup_ino;
