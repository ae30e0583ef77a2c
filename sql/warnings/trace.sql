-- SPDX-License-Identifier: Apache-2.0
-- What the trace, the recorder and the files beside the trace lack.

-- @warning  damaged_trace
-- @scope    *
-- @sentence the trace is damaged and was read only in part: {damage}
SELECT
  coalesce(
    (SELECT m.value FROM raw_meta AS m WHERE m.key = 'damage'), 'no details'
  ) AS damage
FROM raw_meta AS d
WHERE d.key = 'damaged' AND d.value = 1;

-- @warning  no_events
-- @scope    *
-- @sentence no event was recorded, so there is nothing to judge
SELECT n.value
FROM raw_meta AS n
WHERE n.key = 'events_count' AND n.value = 0;

-- @warning  part_of_trace
-- @scope    *
-- @sentence only a part of the trace was read (ingest --time-range or --limit),
--   so sums cover that part only
SELECT p.value
FROM raw_meta AS p
WHERE p.key = 'partial' AND p.value = 1;

-- @warning  recording_cut_short
-- @scope    *
-- @sentence the recording ended before its time ({ended}), so the trace is not
--   whole[: {problems}]
SELECT
  r.value AS ended,
  (SELECT p.value FROM raw_meta AS p WHERE p.key = 'record_problems')
    AS problems
FROM raw_meta AS r
WHERE r.key = 'record_ended' AND r.value != 'complete';

-- @warning  recording_problems
-- @scope    *
-- @sentence the recorder met problems: {problems}
SELECT r.value AS problems
FROM raw_meta AS r
CROSS JOIN raw_meta AS e
WHERE r.key = 'record_problems'
  AND e.key = 'record_ended'
  AND e.value = 'complete';

-- @warning  other_machines
-- @scope    *
-- @sentence the trace holds events of {machines} machines or tracing instances;
--   only the first was read, without {events} of the others: convert each
--   trace.dat to its own file, or query it directly
SELECT m.value AS machines, o.value AS events
FROM raw_meta AS m
CROSS JOIN raw_meta AS o
WHERE m.key = 'machines_count' AND o.key = 'other_machines_events_count';

-- @warning  events_refused
-- @scope    *
-- @sentence Perfetto could not enable {events}: values derived from them are
--   missing; run its recorder as root, on Android with a build that may
SELECT r.value AS events
FROM raw_meta AS r
WHERE r.key = 'refused_events';

-- @warning  command_failed
-- @scope    *
-- @sentence the command that was recorded {ended} {value}, so it may not have
--   done its work
SELECT
  CASE r.key
    WHEN 'command_signal' THEN 'was ended by signal'
    ELSE 'exited with'
  END AS ended,
  r.value
FROM raw_meta AS r
WHERE r.key IN ('command_exit_code', 'command_signal') AND r.value != 0;

-- @warning  lost_events
-- @scope    *
-- @sentence the ring buffer overran {times} times, {lost}; sums over events are
--   too small
SELECT
  count(*) AS times,
  CASE
    WHEN count(l.count) = 0 THEN 'an unknown number of events is lost'
    WHEN count(l.count) < count(*)
      THEN 'at least ' || sum(l.count) || ' events are lost'
    ELSE sum(l.count) || ' events are lost'
  END AS lost
FROM raw_lost_events AS l
HAVING count(*) > 0;

-- @warning  events_missing
-- @scope    *
-- @sentence the trace does not add up[: {missing_share} of the
--   balance_dirty_pages events that should follow a look at the dirty pages are
--   missing][: {early_share} of the pauses are longer than the time to the next
--   event of their task], so times and sums of throttling are wrong (wbscope
--   query throttle_closure)
SELECT
  CASE WHEN c.missing > v.same_ratio * c.looks
    THEN printf('%.1f %%', 100.0 * c.missing / c.looks)
  END AS missing_share,
  CASE WHEN c.early > v.same_ratio * c.pauses
    THEN printf('%.1f %%', 100.0 * c.early / c.pauses)
  END AS early_share
FROM (
  SELECT
    total(o.missing_count) AS missing,
    total(o.looks_count) AS looks,
    total(o.early_count) AS early,
    total(o.pauses_count) AS pauses
  FROM throttle_closure AS o
) AS c
CROSS JOIN wb_rule AS v
WHERE c.missing > max(v.same_ratio * c.looks, v.few_calls_count / 2)
  OR c.early > max(v.same_ratio * c.pauses, v.few_calls_count / 2);

-- @warning  data_loss
-- @slug     data-loss-{kind}
-- @scope    *
-- @sentence {name} is {value}: data of the trace is missing, so sums are too
--   small; docs/schema.md says what it counts
SELECT replace(i.name, '_', '-') AS kind, i.name, i.value
FROM raw_ingest_stats AS i
WHERE not_read!(i)
  AND i.severity = 'data_loss'
  -- These have warnings of their own.
  AND i.name NOT IN (
    'text_not_understood',
    'text_overwritten',
    'text_cut',
    -- From here on: they are in lost_events.
    'perfetto_ftrace_cpu_has_data_loss',
    'perfetto_ftrace_cpu_overrun_delta',
    'perfetto_ftrace_cpu_dropped_events_delta',
    'perfetto_traced_buf_trace_writer_packet_loss',
    'perfetto_traced_buf_patches_failed'
  );

-- @warning  records_not_read
-- @scope    *
-- @sentence {value} {what}, so sums are too small
SELECT
  i.value,
  CASE i.name
    WHEN 'unknown_events'
      THEN 'records are of events whose format is not in the trace'
    WHEN 'short_records'
      THEN 'records are shorter than the format of their event'
    ELSE 'fields point outside of their record'
  END AS what
FROM raw_ingest_stats AS i
WHERE not_read!(i) AND i.severity IS NOT 'data_loss';

-- @warning  missing_field
-- @scope    *
-- @sentence {event} has no field {field} that wbscope knows, so values derived
--   from it are missing (the kernel is {release})
SELECT
  substr(f.value, instr(f.value, ' of ') + 4) AS event,
  substr(f.value, 1, instr(f.value, ' of ') - 1) AS field,
  coalesce(k.release, 'unknown') AS release
FROM trace_state AS s
CROSS JOIN wb_units AS k
CROSS JOIN json_each(
  '["' || replace(s.lacking, ', ', '","') || '"]'
) AS f;

-- @warning  sidecar
-- @slug     sidecar-{status}
-- @scope    *
-- @sentence {name}: {message}; values that need it may be missing
SELECT f.status, f.name, f.message
FROM raw_sidecar_file AS f
WHERE f.status <> 'loaded';

-- @warning  page_size_assumed
-- @scope    *
-- @sentence the trace lacks the page size of its machine; bytes are pages of
--   {page_bytes} bytes
SELECT u.page_bytes
FROM wb_units AS u
WHERE NOT EXISTS (SELECT 1 FROM raw_meta AS m WHERE m.key = 'page_bytes');

-- @warning  time_backwards
-- @scope    *
-- @sentence the time stamps of {value} records are before those of the record
--   before them: durations there are wrong, and windows, --from and --to can
--   take records of their neighbours
SELECT i.value
FROM raw_ingest_stats AS i
WHERE i.name = 'time_backwards' AND i.value > 0;

-- @warning  lines_not_understood
-- @scope    *
-- @sentence {value} lines of the text are no record and were left out
SELECT i.value
FROM raw_ingest_stats AS i
WHERE i.name = 'text_not_understood' AND i.value > 0;

-- @warning  lines_left_out
-- @scope    *
-- @sentence {marks} for lines left out: times go over the gap
SELECT
  CASE m.value
    WHEN 1 THEN 'a mark in the text stands'
    ELSE m.value || ' marks in the text stand'
  END AS marks
FROM raw_meta AS m
WHERE m.key = 'elided_lines_count';

-- @warning  records_overwritten
-- @scope    *
-- @sentence the ring buffer had overwritten {value} records before the text was
--   read; sums over events are too small
SELECT i.value
FROM raw_ingest_stats AS i
WHERE i.name = 'text_overwritten' AND i.value > 0;

-- @warning  no_time
-- @scope    *
-- @sentence the lines of this log have no time stamps: every ts is 0
SELECT m.value
FROM raw_meta AS m
WHERE m.key = 'clock_unit' AND m.value = 'none';

-- @warning  clock_without_unit
-- @scope    *
-- @sentence the trace clock {clock} counts ticks, not ns: every time and rate
--   is wrong; record with trace-cmd record -C mono
SELECT c.value AS clock
FROM raw_meta AS u
CROSS JOIN raw_meta AS c
WHERE u.key = 'clock_unit' AND u.value = 'ticks' AND c.key = 'clock';

-- @warning  cgroup_by_path
-- @scope    *
-- @sentence cgroup_ino {cgroup_ino} stands for {path}: this kernel records
--   paths, and the run has no cgroups file with this one
SELECT g.cgroup_ino, g.path
FROM wb_cgroup AS g
WHERE g.cgroup_ino < 0;

-- @warning  several_buffers
-- @scope    *
-- @sentence the trace has {instances} tracing instances; each event is taken
--   from the first one that has it
SELECT count(b.subbuf_bytes) AS instances
FROM raw_buffer AS b
HAVING count(b.subbuf_bytes) > 1;

-- @warning  no_bdi_samples
-- @slug     no-samples
-- @scope    bdi_samples
-- @sentence the run has no bdi.samples; wbscope record takes them
SELECT 1 AS is_so
WHERE NOT EXISTS (
  SELECT 1
  FROM raw_sample AS s
  WHERE s.source = 'bdi' AND s.sample = 'sampled'
);

-- @warning  no_block_samples
-- @slug     no-samples
-- @scope    block_samples
-- @sentence the run has no block.samples; wbscope record takes them
SELECT 1 AS is_so
WHERE NOT EXISTS (
  SELECT 1
  FROM raw_sample AS s
  WHERE s.source = 'block' AND s.sample = 'sampled'
);

-- @warning  no_cgroup_samples
-- @slug     no-samples
-- @scope    cgroup_samples
-- @sentence the run has no cgroup.samples; wbscope record takes them of cgroups
--   that write
SELECT 1 AS is_so
WHERE NOT EXISTS (
  SELECT 1
  FROM raw_sample AS s
  WHERE s.source = 'cgroup' AND s.sample = 'sampled'
);

-- @warning  no_pressure_samples
-- @slug     no-samples
-- @scope    pressure
-- @sentence the run has no psi.samples; wbscope record takes them
SELECT 1 AS is_so
WHERE NOT EXISTS (
  SELECT 1
  FROM raw_sample AS s
  WHERE s.source = 'psi' AND s.sample = 'sampled'
);
