-- SPDX-License-Identifier: Apache-2.0
-- @finding   no_verdict
-- @title     The trace is not whole
-- @summary   Events were lost, or a part of the trace is damaged or could not
--   be read: numbers are lower bounds, and no advice is given. Where the trace
--   clock counts ticks, or no event was recorded, no other rule is asked: no
--   time and no rate is known.
-- @severity  severe
-- @confidence measured
-- @sentence  No verdict, {why:raw}:[ the ring buffer overran {gaps_count:time}
--   and {lost_count:event} are lost;][ the ring buffer overran
--   {unknown_gaps_count:time} and the trace does not tell of each how many
--   events that cost;][ {unread_count:record} could not be read;][ no record
--   has the field {lacking:raw};][ it is {state};][ its clock ({ticks_clock})
--   counts ticks, not ns;] {so:raw}.
-- @evidence  trace_state: gaps_count = max(gaps_count); lost_count =
--   max(lost_count); unknown_gaps_count = max(unknown_gaps_count);
--   unread_count = max(unread_count)
-- @advice    {remedy}.
-- @column    cost_task_ns INTEGER 0
-- @column    title TEXT that there are no events, or no times; NULL = the trace
--   is not whole
-- @column    why TEXT what is missing
-- @column    so TEXT what that means for all else
-- @column   lost_count INTEGER events lost
-- @column    is_empty INTEGER 1: no event was recorded; else 0
-- @column    remedy TEXT what gives a whole trace, with events and times
-- @source    docs/findings.md
SELECT
  0 AS cost_task_ns,
  CASE
    WHEN e.is_empty THEN 'No event was recorded'
    WHEN s.ticks_clock IS NOT NULL THEN 'The trace has no times'
    WHEN s.lacking IS NOT NULL THEN 'The trace cannot be read in full'
  END AS title,
  CASE
    WHEN e.is_empty THEN 'no event was recorded'
    WHEN s.ticks_clock IS NOT NULL THEN 'the trace has no times'
    WHEN s.lacking IS NOT NULL THEN 'the trace cannot be read in full'
    ELSE 'the trace is not whole'
  END AS why,
  CASE
    WHEN e.is_empty THEN 'there is nothing to judge'
    WHEN s.ticks_clock IS NULL THEN 'the numbers are lower bounds'
    ELSE 'no duration is known'
  END AS so,
  s.gaps_count, s.lost_count, s.unknown_gaps_count, s.unread_count, s.lacking,
  s.state, s.ticks_clock, e.is_empty,
  CASE
    WHEN e.is_empty
      THEN 'Record again, for longer and while something writes; of a trace'
        || ' with events, ingest a part that has some'
    WHEN s.ticks_clock IS NOT NULL
      THEN 'Record again with a clock that tells ns: trace-cmd record -C mono,'
        || ' or wbscope record, which takes such a one'
    WHEN s.lacking IS NOT NULL
      THEN 'Take a version of wbscope that knows this kernel, or send its'
        || ' authors the format file of the event'
    WHEN s.unread_count > coalesce(s.lost_count, 0)
      THEN 'Record again: the formats in this file are not those of all its'
        || ' records'
    WHEN coalesce(s.gaps_count, s.unknown_gaps_count) IS NULL
      THEN 'Copy the trace again, or record again: a recorder that was killed'
        || ' leaves such a file'
    ELSE 'Record again with twice the buffer (record --buffer-size; meta.json'
      || ' of a run has what it was), or with fewer events'
  END AS remedy
FROM trace_state AS s
CROSS JOIN (
  SELECT count(*) > 0 AS is_empty
  FROM raw_meta AS m
  WHERE m.key = 'events_count' AND CAST(m.value AS INTEGER) = 0
) AS e
WHERE s.matters = 1
ORDER BY s.gaps_count;
