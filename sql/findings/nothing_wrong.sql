-- SPDX-License-Identifier: Apache-2.0

-- @finding   nothing_wrong
-- @title     Nothing is wrong
-- @summary   No other finding is more than a note. The rule always has a row,
--   which is shown only then. It is an all-clear only where the run shows it:
--   no task was asleep for more than a fifth of its life in known waits, or its
--   device had requests for all but 100 ms or a tenth of that time; sleeps were
--   recorded, or PSI shows that tasks hardly waited; and the run is whole: no
--   lost events, no marks of lines left out, and, without a recorder's start
--   and end, 2 s and, of a text, 100 records. Else it is a note that says what
--   is known and what is missing. It is about dirty throttling alone where
--   other waits took half a second or more, or only PSI tells of them. A part
--   of the time with a piece of a write that was blocked for half a second or
--   more in all never gets an all-clear.
-- @severity  ok
-- @confidence measured
-- @sentence  {lead:raw}{part:raw}:[ at most {dirty_max_bytes} were dirty, of
--   thresholds of {bg_thresh_bytes} (background) and {thresh_bytes}, and]
--   {calm}[tasks were throttled for {held_ns}, no write for longer than
--   {longest_ns}][; other waits took {other_ns}][;
--   {task} was asleep for {asleep_ratio} of the {life_ns} that it was seen][,
--   and the trace does not show that {asleep_bdi} was busy all that time][;
--   {stuck:raw}][; by PSI, tasks waited for {resource:raw} for a fifth of the
--   time or more][; {disk} was busy nearly all the time][; by PSI, a task was
--   ready and had no {cpu:raw} for half of the time or more][;
--   {excerpt:raw}]{unseen:raw}.
-- @evidence  dirty_limits: dirty_max_bytes = max(dirty_max_bytes);
--   bg_thresh_bytes = max(bg_thresh_bytes); thresh_bytes = max(thresh_bytes)
-- @evidence  lost_time: held_ns = sum(total_ns, kind=throttle); longest_ns =
--   max(whole_call_max_ns, kind=throttle); life_ns = max(life_ns, tid={tid});
--   asleep_ratio = max(asleep_ratio, tid={tid}); other_ns =
--   sum(total_ns) - sum(total_ns, kind=throttle) - sum(total_ns,
--   finding=flusher_waits_journal)
-- @advice    [Record what is missing: {command:raw}.]
-- @events    writeback:balance_dirty_pages
-- @column    cost_task_ns INTEGER time that tasks were throttled
-- @column    severity TEXT ok; note = no all-clear
-- @column    title TEXT what that is then, or what it is about; NULL = nothing
--   is wrong
-- @column    confidence TEXT inferred of less time than a call that is felt
--   takes, of a file that lacks what began before, and where only PSI tells of
--   other waits; cannot tell without an all-clear
-- @column    lead TEXT that nothing is wrong, or that it cannot be said
-- @column    calm TEXT that throttling held up no write, or none that it did
--   not before; empty where it held up any: other waits have findings of their
--   own
-- @column    held_ns INTEGER the same; NULL = nobody
-- @column    longest_ns INTEGER longest that one call of balance_dirty_pages()
--   was held up, by one or more waits that began in the time of interest
-- @column    other_ns INTEGER time that tasks lost in other waits; NULL = that
--   is little, or not known
-- @column    task TEXT that was asleep for more than a fifth of its life while
--   nothing shows that its device was busy; NULL = none
-- @column    tid INTEGER its number
-- @column    asleep_bdi TEXT that device; NULL = not known
-- @column    life_ns INTEGER how long it was seen
-- @column    stuck TEXT what stood still (_standstill); NULL = nothing
-- @column    resource TEXT I/O or memory, which tasks waited for by PSI, where
--   sleeps were not recorded; NULL = hardly, or not recorded
-- @column    disk TEXT that was busy nearly all the time, where neither sleeps
--   nor PSI were recorded; NULL = none
-- @column    cpu TEXT CPU, where PSI tells that a task had none for most of the
--   time; NULL = for less, or not recorded
-- @column    excerpt TEXT what is missing of the run; NULL = nothing
-- @column    unseen TEXT that other waits were not recorded; empty where they
--   were
-- @column    command TEXT what records the rest; NULL with an all-clear
-- @column    part TEXT that only a part was looked at, or little time; empty
--   for the whole
-- @source    docs/findings.md
WITH
  -- The events of 2011 tell no calls: each wait is one then.
  held AS (
    SELECT
      sum(CASE l.kind WHEN 'throttle' THEN l.dur END) AS dur,
      sum(CASE WHEN l.kind <> 'throttle' THEN l.dur END) AS other_dur
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.finding IS NOT 'flusher_waits_journal'
      AND in_time!(l.ts, b)
    GROUP BY coalesce(l.call_seq, -l.wait_id)
  ),
  summed AS MATERIALIZED (
    SELECT
      sum(h.dur) AS held_ns,
      max(h.dur) AS longest_ns,
      sum(h.other_dur) AS other_ns
    FROM held AS h
  ),
  -- What is left of a long call in a part may be short.
  piece AS (
    SELECT 1 AS is_long
    FROM wb_loss AS l
    CROSS JOIN wb_rule AS v
    WHERE l.call_seq IN (
      SELECT o.call_seq
      FROM wb_params AS p
      CROSS JOIN wb_bounds AS b
      CROSS JOIN wb_loss AS o
      WHERE (p.t0_ns IS NOT NULL OR p.t1_ns IS NOT NULL)
        AND o.ts + o.dur > b.start_ts
        AND o.ts < b.end_ts
    )
    GROUP BY l.call_seq, v.long_call_ns
    HAVING sum(l.dur) >= v.long_call_ns
    LIMIT 1
  ),
  known AS (
    SELECT
      EXISTS (SELECT 1 FROM piece) AS is_piece,
      CASE WHEN e.other_ns >= v.long_call_ns THEN e.other_ns END AS other_ns,
      EXISTS (
        SELECT 1 FROM stalls_before AS o WHERE o.kind = 'throttle'
      ) AS is_held_before,
      EXISTS (
        SELECT 1
        FROM raw_meta AS m
        WHERE m.key = 'range_first_ts' AND m.value IS NOT NULL
      ) AS is_cut
    FROM summed AS e
    CROSS JOIN wb_rule AS v
  ),
  length AS (
    SELECT b.asked_ns < v.long_call_ns AS is_short
    FROM wb_bounds AS b
    CROSS JOIN wb_rule AS v
  ),
  asleep AS (
    SELECT a.tid, a.comm, a.asleep_bdi AS bdi, a.asleep_ratio, a.life_ns
    FROM wb_loss AS a
    CROSS JOIN wb_rule AS v
    WHERE a.asleep_ratio > v.held_least_ratio
      AND coalesce(a.asleep_busy_ratio, 0) < v.busy_ratio
      AND a.asleep_ns * (1 - coalesce(a.asleep_busy_ratio, 0))
        >= v.loss_least_ns
    ORDER BY a.asleep_ratio * a.life_ns DESC, a.tid
    LIMIT 1
  ),
  judged AS (
    SELECT
      k.*,
      d.*,
      a.tid,
      task_name!(a) AS task,
      a.bdi, a.asleep_ratio, a.life_ns,
      CASE
        WHEN k.is_piece THEN 'piece'
        WHEN d.excerpt IS NOT NULL THEN 'excerpt'
        WHEN a.tid IS NOT NULL OR d.stuck IS NOT NULL THEN 'asleep'
        WHEN d.resource IS NOT NULL OR d.disk IS NOT NULL THEN 'other'
        WHEN d.is_unseen THEN 'unseen'
      END AS doubt
    FROM known AS k
    CROSS JOIN _doubt AS d
    LEFT JOIN asleep AS a ON 1 = 1
  )
SELECT
  coalesce(s.held_ns, 0) AS cost_task_ns,
  CASE WHEN j.doubt IS NULL THEN 'ok' ELSE 'note' END AS severity,
  CASE
    WHEN j.doubt = 'piece' THEN 'A part with a piece of a long write'
    WHEN j.doubt = 'excerpt' THEN 'Too little to tell whether anything is wrong'
    WHEN j.doubt = 'asleep' THEN 'Whether anything is wrong is unknown'
    WHEN j.doubt = 'other'
      THEN 'Tasks waited for unrecorded reasons'
    WHEN j.doubt = 'unseen'
      THEN 'No fault in dirty throttling; other waits were not recorded'
    WHEN j.cpu IS NOT NULL THEN 'Tasks wait for a CPU, not for writeback'
    WHEN j.other_ns > 0 OR NOT j.is_watched
      THEN 'Nothing is wrong with dirty throttling'
  END AS title,
  CASE
    WHEN j.doubt <> 'piece' THEN 'cannot tell'
    WHEN l.is_short OR j.is_cut OR NOT j.is_watched THEN 'inferred'
    ELSE 'measured'
  END AS confidence,
  CASE
    WHEN j.doubt = 'piece' THEN 'No all-clear with a piece of a long write'
    WHEN j.doubt IS NOT NULL THEN 'No all-clear'
    WHEN j.other_ns > 0 OR NOT j.is_watched OR j.cpu IS NOT NULL
      THEN 'Nothing is wrong with dirty throttling'
    ELSE 'Nothing is wrong'
  END AS lead,
  CASE
    WHEN s.held_ns > 0 THEN ''
    WHEN j.is_cut OR j.is_held_before
      THEN 'dirty throttling delayed no write that it had not delayed before'
    ELSE 'dirty throttling delayed no write'
  END AS calm,
  s.held_ns, s.longest_ns, j.other_ns, j.task, j.tid,
  CASE WHEN j.task IS NOT NULL THEN j.bdi END AS asleep_bdi,
  j.asleep_ratio, j.life_ns, j.stuck, j.resource, j.disk, j.cpu, j.excerpt,
  CASE WHEN j.is_unseen AND coalesce(j.doubt, '') <> 'piece'
    THEN '; whether tasks waited for anything else was not recorded'
    ELSE ''
  END AS unseen,
  CASE WHEN j.doubt <> 'piece'
    THEN 'wbscope record --profile deep --duration 30s -o RUN'
  END AS command,
  CASE
    WHEN p.t0_ns IS NOT NULL OR p.t1_ns IS NOT NULL OR j.is_cut
      THEN ' in this part of the trace'
    WHEN l.is_short THEN ' in so short a time'
    ELSE ''
  END AS part,
  m.dirty_max_bytes, m.bg_thresh_bytes, m.thresh_bytes
FROM dirty_limits AS m
CROSS JOIN summed AS s
CROSS JOIN length AS l
CROSS JOIN judged AS j
CROSS JOIN wb_params AS p
ORDER BY cost_task_ns;

-- @view     _standstill
-- @summary  What made no progress for two seconds or more, though it may be of
--   no consequence: requests of a device, kernel threads that were blocked,
--   and, for a second or more, all writing of pages though there was much to
--   write.
-- @grain    kind; order kind
-- @key      kind
-- @column   kind TEXT device, pages or thread
-- @column   what TEXT in words, the longest
-- @column   dur INTEGER how long
-- @materialize
CREATE VIEW _standstill AS
SELECT
  'device' AS kind,
  s.device || ' completed nothing for seconds while it had a request'
    AS what,
  max(s.silent_ns) AS dur
FROM wb_busy AS s
CROSS JOIN wb_bounds AS b
WHERE s.silent_to_ts > b.start_ts AND s.silent_from_ts < b.end_ts
GROUP BY b.start_ts
UNION ALL
SELECT
  'thread',
  t.comm || ' ' || t.tid || ' was blocked for seconds',
  max(s.end_ts - s.ts)
FROM wb_wait_end AS s
CROSS JOIN wb_rule AS v
CROSS JOIN wb_bounds AS b
JOIN wb_task AS t ON t.tid = s.tid
WHERE t.is_kernel = 1
  AND s.end_ts - s.ts >= v.little_most_ns
  AND s.ts < b.end_ts
  AND s.end_ts > b.start_ts
GROUP BY b.start_ts
UNION ALL
SELECT
  'pages',
  'nothing was written for a second or more, with many pages to write',
  max(d.dur)
FROM (
  -- While more than the background threshold was dirty, or many pages were
  -- under writeback: looked for in windows that end with what they began with.
  SELECT max(g.ts) - min(g.ts) AS dur
  FROM wb_window AS w
  CROSS JOIN wb_rule AS v
  CROSS JOIN wb_units AS u
  JOIN raw_global_dirty_state AS f ON f.seq = w.state_first_seq
  JOIN raw_global_dirty_state AS l
    ON l.seq = w.state_last_seq AND l.nr_written = f.nr_written
  JOIN raw_global_dirty_state AS g
    ON g.seq >= w.state_first_seq
    AND g.seq < w.state_after_seq
    AND (g.nr_dirty > g.bg_thresh OR g.nr_writeback >= v.few_pages_count)
  GROUP BY g.nr_written, u.second_ns
  HAVING max(g.ts) - min(g.ts) >= u.second_ns
) AS d
HAVING count(*) > 0;

-- @view     _doubt
-- @summary  What speaks against an all-clear, besides tasks that were asleep
--   most of their time.
-- @grain    one row
-- @column   stuck TEXT what did not go on; NULL = nothing
-- @column   resource TEXT that tasks waited for by /proc/pressure; NULL = for
--   none
-- @column   disk TEXT that was busy all the time; NULL = none
-- @column   cpu TEXT CPU, where tasks waited for one; NULL = they did not
-- @column   excerpt TEXT why the trace may be a part of more; NULL = nothing
--   says so
-- @column   is_watched INTEGER 1: sleeps of tasks, or their writes, were
--   recorded; 0 = whatever else held a task up is not known
-- @column   is_unseen INTEGER 1: no events of sleeps, and no pressure was
--   recorded
CREATE VIEW _doubt AS
WITH
  still AS (
    SELECT s.what
    FROM _standstill AS s
    ORDER BY s.kind
    LIMIT 1
  ),
  pressed AS (
    SELECT
      p.object AS resource,
      sum(p.some_ns) AS some_ns,
      1.0 * sum(p.some_ns) / sum(p.dur_ns) AS ratio
    FROM wb_usage AS p
    WHERE p.source = 'psi'
    GROUP BY p.object
  ),
  pressure AS (
    SELECT
      CASE p.resource WHEN 'io' THEN 'I/O' ELSE p.resource END AS resource,
      p.some_ns
    FROM pressed AS p
    CROSS JOIN wb_rule AS v
    WHERE p.resource <> 'cpu' AND p.ratio >= v.held_least_ratio
    ORDER BY p.some_ns DESC
    LIMIT 1
  ),
  busy AS (
    SELECT d.device, max(d.ratio) AS ratio
    FROM (
      SELECT
        coalesce(s.device, s.object) AS device,
        1.0 * sum(s.busy_ns) / sum(s.dur_ns) AS ratio
      FROM wb_usage AS s
      WHERE s.source = 'block'
      GROUP BY s.object
    ) AS d
    CROSS JOIN wb_rule AS v
    WHERE d.ratio >= v.busy_ratio
  ),
  told AS (
    SELECT
      max(CASE m.key WHEN 'format' THEN m.value GLOB '* text' END) AS is_text,
      max(CASE m.key WHEN 'loaded_count' THEN m.value END) AS records_count,
      max(CASE m.key WHEN 'elided_lines_count' THEN m.value END)
        AS elided_count,
      max(CASE m.key WHEN 'record_ended' THEN m.value END) AS ended
    FROM raw_meta AS m
  )
SELECT
  s.what AS stuck,
  CASE WHEN w.is_watched = 0 THEN p.resource END AS resource,
  CASE WHEN w.is_watched = 0 AND NOT EXISTS (SELECT 1 FROM pressed)
    THEN d.device
  END AS disk,
  (
    SELECT 'CPU' FROM pressed AS c
    WHERE c.resource = 'cpu' AND c.ratio >= v.most_ratio
  ) AS cpu,
  CASE
    WHEN t.elided_count > 0 THEN 'lines were left out of the text ('
      || t.elided_count || CASE t.elided_count WHEN 1 THEN ' mark)'
        ELSE ' marks)' END
    WHEN t.ended IS NULL AND t.is_text = 1
      AND t.records_count < v.excerpt_least_count
      THEN 'a text of ' || t.records_count || CASE t.records_count
        WHEN 1 THEN ' record may be' ELSE ' records may be' END
        || ' an excerpt'
    WHEN t.ended IS NULL AND o.last_ts - o.first_ts < v.excerpt_least_ns
      THEN 'the trace is shorter than 2 s'
    WHEN EXISTS (SELECT 1 FROM raw_lost_events) THEN 'events were lost'
  END AS excerpt,
  w.is_watched,
  w.is_watched = 0 AND NOT EXISTS (SELECT 1 FROM pressed) AS is_unseen
FROM wb_units AS o
CROSS JOIN (
  SELECT
    EXISTS (SELECT 1 FROM raw_sched_switch)
    OR recorded!('wbscope:blocked')
    OR EXISTS (SELECT 1 FROM wb_call AS k WHERE k.is_write >= 0)
    OR recorded!('syscalls:sys_enter_write') AS is_watched
) AS w
CROSS JOIN wb_rule AS v
CROSS JOIN told AS t
LEFT JOIN still AS s ON 1 = 1
LEFT JOIN pressure AS p ON 1 = 1
LEFT JOIN busy AS d ON d.ratio IS NOT NULL;
