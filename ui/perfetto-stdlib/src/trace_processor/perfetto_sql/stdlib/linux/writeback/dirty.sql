-- SPDX-License-Identifier: Apache-2.0

-- @module linux.writeback.dirty
-- Dirty pages of the machine against the limits that they are held to, and
-- the write bandwidth that the kernel believes each device to have.
--
-- Needs the ftrace events `writeback/global_dirty_state` and
-- `writeback/bdi_dirty_ratelimit`, with raw ftrace events imported.

INCLUDE PERFETTO MODULE linux.writeback.units;

-- The events of `linux_writeback_dirty_state`, in pages.
CREATE PERFETTO TABLE _linux_global_dirty_state
AS
SELECT
  id,
  ts,
  utid,
  extract_arg(arg_set_id, 'nr_dirty') AS nr_dirty,
  extract_arg(arg_set_id, 'nr_writeback') AS nr_writeback,
  -- Up to 5.7, for NFS.
  coalesce(extract_arg(arg_set_id, 'nr_unstable'), 0) AS nr_unstable,
  extract_arg(arg_set_id, 'background_thresh') AS bg_thresh,
  extract_arg(arg_set_id, 'dirty_thresh') AS thresh,
  max(
    extract_arg(arg_set_id, 'dirty_limit'),
    extract_arg(arg_set_id, 'dirty_thresh')
  ) AS hard_limit,
  extract_arg(arg_set_id, 'nr_dirtied') AS nr_dirtied,
  extract_arg(arg_set_id, 'nr_written') AS nr_written
FROM ftrace_event
WHERE name = 'global_dirty_state';

-- Dirty pages of the machine and their limits, from one
-- `writeback/global_dirty_state` event to the next. The kernel tells them when
-- a task or a flusher looks at them: often while something is written, and not
-- at all while the machine is idle.
CREATE PERFETTO TABLE linux_writeback_dirty_state(
  -- Id of the event.
  id JOINID(ftrace_event.id),
  -- When the kernel looked.
  ts TIMESTAMP,
  -- Time until it looked again, or until the trace ends.
  dur DURATION,
  -- Thread that looked.
  utid JOINID(thread.id),
  -- What the limits are compared with: pages that are dirty, under writeback
  -- or, up to 5.7, unstable.
  dirty_bytes LONG,
  -- Dirty page cache alone.
  file_dirty_bytes LONG,
  -- Pages under writeback; those on their way to swap are among them.
  writeback_bytes LONG,
  -- Below this tasks run free: halfway between `bg_thresh_bytes` and
  -- `thresh_bytes`.
  freerun_bytes LONG,
  -- Where throttling steers the dirty pages: halfway between `freerun_bytes`
  -- and `limit_bytes`.
  setpoint_bytes LONG,
  -- Above this the flusher writes. As `thresh_bytes`, it is a quarter higher
  -- when a real-time task looked.
  bg_thresh_bytes LONG,
  -- The threshold by the sysctls and the memory that is there now.
  thresh_bytes LONG,
  -- The hard limit: `thresh_bytes`, and when that has just fallen, the
  -- kernel's slowly following one.
  limit_bytes LONG,
  -- Dirtied since boot. Falls when pages are dirtied again while they are
  -- written.
  dirtied_bytes LONG,
  -- Written since boot; to swap, too.
  written_bytes LONG
)
AS
SELECT
  id,
  ts,
  coalesce(lead(ts) OVER (ORDER BY id), trace_end()) - ts AS dur,
  utid,
  _linux_writeback_bytes_of_pages!(nr_dirty + nr_writeback + nr_unstable)
    AS dirty_bytes,
  _linux_writeback_bytes_of_pages!(nr_dirty) AS file_dirty_bytes,
  _linux_writeback_bytes_of_pages!(nr_writeback) AS writeback_bytes,
  _linux_writeback_bytes_of_pages!((thresh + bg_thresh) / 2) AS freerun_bytes,
  _linux_writeback_bytes_of_pages!(
    (hard_limit + (thresh + bg_thresh) / 2) / 2
  ) AS setpoint_bytes,
  _linux_writeback_bytes_of_pages!(bg_thresh) AS bg_thresh_bytes,
  _linux_writeback_bytes_of_pages!(thresh) AS thresh_bytes,
  _linux_writeback_bytes_of_pages!(hard_limit) AS limit_bytes,
  _linux_writeback_bytes_of_pages!(nr_dirtied) AS dirtied_bytes,
  _linux_writeback_bytes_of_pages!(nr_written) AS written_bytes
FROM _linux_global_dirty_state
ORDER BY id;

-- The events of `linux_writeback_bdi_bandwidth`, in KiB/s.
CREATE PERFETTO TABLE _linux_bdi_dirty_ratelimit
AS
SELECT
  id,
  ts,
  extract_arg(arg_set_id, 'bdi') AS bdi,
  extract_arg(arg_set_id, 'cgroup_ino') AS cgroup_ino,
  extract_arg(arg_set_id, 'write_bw') AS write_bw,
  extract_arg(arg_set_id, 'avg_write_bw') AS avg_write_bw,
  extract_arg(arg_set_id, 'dirty_rate') AS dirty_rate,
  extract_arg(arg_set_id, 'dirty_ratelimit') AS dirty_ratelimit,
  extract_arg(arg_set_id, 'task_ratelimit') AS task_ratelimit,
  extract_arg(arg_set_id, 'balanced_dirty_ratelimit')
    AS balanced_dirty_ratelimit
FROM ftrace_event
WHERE name = 'bdi_dirty_ratelimit';

-- What the kernel takes the write bandwidth of each device for, and the rate
-- that it lets each task dirty at, from one `writeback/bdi_dirty_ratelimit`
-- event to the next of the same device and cgroup. The kernel updates them
-- each 200 ms, and only while it throttles. A device starts at 100 MiB/s,
-- whatever it is. With a memory cgroup there can be two updates in a row, the
-- first of which lasts some microseconds.
CREATE PERFETTO TABLE linux_writeback_bdi_bandwidth(
  -- Id of the event.
  id JOINID(ftrace_event.id),
  -- When the estimates were updated.
  ts TIMESTAMP,
  -- Time until the next update, or until the trace ends.
  dur DURATION,
  -- Backing device, such as `8:0` or `btrfs-2`.
  bdi STRING,
  -- Inode of the cgroup whose share of the device this is; 1 is the root.
  cgroup_ino LONG,
  -- Bandwidth of the device before this update.
  write_bytes_per_s LONG,
  -- The same, averaged over some seconds.
  avg_write_bytes_per_s LONG,
  -- Rate at which its pages were dirtied, all tasks together.
  dirty_bytes_per_s LONG,
  -- Base rate of one task.
  dirty_ratelimit_bytes_per_s LONG,
  -- The base rate corrected by how far the dirty pages are from the setpoint.
  task_ratelimit_bytes_per_s LONG,
  -- Rate of one task at which as much is dirtied as is written.
  balanced_ratelimit_bytes_per_s LONG
)
AS
SELECT
  id,
  ts,
  coalesce(
    lead(ts) OVER (PARTITION BY bdi, cgroup_ino ORDER BY id),
    trace_end()
  ) - ts AS dur,
  bdi,
  cgroup_ino,
  _linux_writeback_bytes_of_kib!(write_bw) AS write_bytes_per_s,
  _linux_writeback_bytes_of_kib!(avg_write_bw) AS avg_write_bytes_per_s,
  _linux_writeback_bytes_of_kib!(dirty_rate) AS dirty_bytes_per_s,
  _linux_writeback_bytes_of_kib!(dirty_ratelimit)
    AS dirty_ratelimit_bytes_per_s,
  _linux_writeback_bytes_of_kib!(task_ratelimit) AS task_ratelimit_bytes_per_s,
  _linux_writeback_bytes_of_kib!(balanced_dirty_ratelimit)
    AS balanced_ratelimit_bytes_per_s
FROM _linux_bdi_dirty_ratelimit
ORDER BY id;
