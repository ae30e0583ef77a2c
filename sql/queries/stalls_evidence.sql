-- SPDX-License-Identifier: Apache-2.0
-- Where tasks waited.

-- @query    stalls_evidence
-- @title    What the cause of each stall was decided on
-- @summary  For each row of stalls, its event and what was recorded around it.
-- @read     Rows with the same stall_ts and tid belong to one stall. Fields of
--   events are as the kernel prints them: pages, KiB/s and ms. before tells how
--   long before the stall it was so. `query stalls --explain` prints this below
--   the stalls. Of more than 10000 stalls only the longest 10000 are explained:
--   choose with --tid, --bdi, --from and --to.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    fact about a stall; order stall_ts
-- @keys     stall_ts, tid, comm, kind, evidence
-- @first    detail, before_ns
-- @events   as stalls
-- @optional as stalls
-- @column   stall_ts INTEGER ns, start of the stall
-- @column   comm TEXT its name
-- @column   before_ns INTEGER from it to the start of the stall; negative: it
--   fired later, such as an event that reports a sleep; NULL = of the whole
--   stall
-- @cost     620
WITH
  -- kswapd, and journals of the stall's device or of all.
  spells AS (
    SELECT 'kswapd' AS resource, 'node' AS device, s.ts, 1 AS step, s.wait_id,
      NULL AS from_ts, NULL AS to_ts
    FROM _evidence_stall AS s
    UNION ALL
    SELECT 'kswapd', d.device, d.from_ts, 0, NULL, d.from_ts, d.to_ts
    FROM wb_busy AS d
    WHERE d.resource = 'kswapd'
  ),
  spell AS (
    SELECT
      p.wait_id, p.ts,
      max(p.from_ts) OVER resource AS from_ts,
      max(p.to_ts) OVER resource AS to_ts
    FROM spells AS p
    WINDOW resource AS (
      PARTITION BY p.resource, p.device ORDER BY p.ts, p.step
      ROWS UNBOUNDED PRECEDING
    )
  ),
  -- The last commit that ended during the stall.
  commits AS (
    SELECT s.bdi AS device, s.ts + s.span_ns AS ts, 1 AS step, s.wait_id,
      NULL AS stats_seq
    FROM _evidence_stall AS s
    WHERE s.journal_ratio > 0 AND s.bdi IS NOT NULL
    UNION ALL
    SELECT
      coalesce(n.bdi, device!(j)), j.ts, 0, NULL, j.seq
    FROM raw_jbd2_run_stats AS j
    LEFT JOIN wb_device AS n
      ON instr(n.partitions, ' ' || device!(j) || ' ') > 0
  ),
  last_commit AS (
    SELECT
      c.wait_id,
      max(c.stats_seq) OVER (
        PARTITION BY c.device ORDER BY c.ts, c.step ROWS UNBOUNDED PRECEDING
      ) AS stats_seq
    FROM commits AS c
  ),
  fact AS (
    SELECT t.wait_id, t.place, t.evidence, t.evidence_ts, t.detail
    FROM _evidence_throttle AS t
    UNION ALL
    SELECT e.wait_id, e.place, e.evidence, e.evidence_ts, e.detail
    FROM _evidence_event AS e
    UNION ALL
    SELECT
      s.wait_id, 5,
      'journal commit',
      NULL,
      'covers ' || round(s.journal_ratio, 3) || ' of its time'
    FROM _evidence_stall AS s
    WHERE s.journal_ratio IS NOT NULL
    UNION ALL
    SELECT
      s.wait_id, 6,
      'jbd2_run_stats',
      j.ts,
      -- Text prints them in ms, so they are not known then.
      coalesce(
        'in jiffies: wait=' || j.wait
          || coalesce(' request_delay=' || j.request_delay, '')
          || ' running=' || j.running || ' locked=' || j.locked
          || ' flushing=' || j.flushing || ' logging=' || j.logging || ' ',
        ''
      )
        || 'handle_count=' || j.handle_count
        || ' blocks_logged=' || j.blocks_logged
    FROM last_commit AS c
    JOIN _evidence_stall AS s ON s.wait_id = c.wait_id
    JOIN raw_jbd2_run_stats AS j ON j.seq = c.stats_seq
    WHERE j.ts >= s.ts
    UNION ALL
    SELECT
      s.wait_id, 7,
      'device busy',
      NULL,
      'for ' || round(s.device_ratio, 3) || ' of its time'
    FROM _evidence_stall AS s
    WHERE s.device_ratio IS NOT NULL
    UNION ALL
    SELECT
      s.wait_id, 7,
      'server busy',
      NULL,
      'for ' || round(s.server_ratio, 3) || ' of its time'
    FROM _evidence_stall AS s
    WHERE s.server_ratio IS NOT NULL
    UNION ALL
    SELECT
      f.wait_id, 8,
      'requests in flight',
      f.ts,
      f.requests_count || CASE
        WHEN f.device = 'any' THEN ' on all devices'
        ELSE ' on ' || f.device
      END
    FROM _evidence_flight AS f
    WHERE f.wait_id IS NOT NULL
    UNION ALL
    SELECT
      k.wait_id, 9,
      'kswapd',
      CASE WHEN k.to_ts > k.ts THEN k.from_ts ELSE k.to_ts END,
      CASE
        WHEN k.to_ts > k.ts THEN 'awake since then'
        ELSE 'asleep since then'
      END
    FROM spell AS k
    WHERE k.wait_id IS NOT NULL AND k.from_ts IS NOT NULL
  )
SELECT
  s.ts AS stall_ts,
  s.tid, s.comm, s.kind, s.cause, f.evidence,
  s.ts - f.evidence_ts AS before_ns,
  f.detail
FROM fact AS f
CROSS JOIN _evidence_stall AS s ON s.wait_id = f.wait_id
ORDER BY s.ts, f.wait_id, f.place;

-- @view     _evidence_throttle
-- @summary  What a sleep of a throttled task was decided on.
-- @grain    stall, fact; order wait_id, place
-- @column   place INTEGER order among the facts of a stall
-- @column   evidence TEXT event or fact
-- @column   evidence_ts INTEGER ns, when it fired; NULL = of the whole stall
-- @column   detail TEXT what it says
CREATE VIEW _evidence_throttle AS
WITH
  throttled AS MATERIALIZED (
    SELECT
      s.wait_id, s.ref_seq, c.bandwidth_ts, c.avg_write_bw_bytes_per_s,
      c.top_write_bw_bytes_per_s, c.domain, c.pos_ratio, c.global_pos_ratio,
      c.wb_pos_ratio, c.global_share_ratio,
      (
        SELECT g.seq
        FROM raw_global_dirty_state AS g
        WHERE g.seq < b.seq AND g.seq > b.seq - 5000 AND g.tid = b.tid
        ORDER BY g.seq DESC
        LIMIT 1
      ) AS state_seq
    FROM _evidence_stall AS s
    JOIN wb_throttle_cause AS c ON c.seq = s.ref_seq
    JOIN raw_balance_dirty_pages AS b ON b.seq = s.ref_seq
    WHERE s.kind = 'throttle'
  )
SELECT
  t.wait_id,
  1 AS place,
  'balance_dirty_pages' AS evidence,
  b.ts AS evidence_ts,
  'limit=' || b."limit" || ' setpoint=' || b.setpoint
    || ' dirty=' || b.dirty
    || ' wb_setpoint=' || b.wb_setpoint || ' wb_dirty=' || b.wb_dirty
    || ' dirty_ratelimit=' || b.dirty_ratelimit
    || ' task_ratelimit=' || b.task_ratelimit
    || ' dirtied=' || b.dirtied || ' paused=' || b.paused
    || ' pause=' || b.pause || coalesce(' period=' || b.period, '')
    || coalesce(' think=' || b.think, '')
    || coalesce(' cgroup_ino=' || b.cgroup_ino, '') AS detail
FROM throttled AS t
JOIN raw_balance_dirty_pages AS b ON b.seq = t.ref_seq
UNION ALL
SELECT
  t.wait_id, 2,
  'global_dirty_state before',
  g.ts,
  'dirty=' || g.nr_dirty || ' writeback=' || g.nr_writeback
    || coalesce(' unstable=' || g.nr_unstable, '')
    || ' bg_thresh=' || g.bg_thresh || ' thresh=' || g.thresh
    || ' limit=' || g.dirty_limit
FROM throttled AS t
JOIN raw_global_dirty_state AS g ON g.seq = t.state_seq
UNION ALL
SELECT
  t.wait_id, 3,
  'bdi_dirty_ratelimit before',
  t.bandwidth_ts,
  'awrite_bw=' || (t.avg_write_bw_bytes_per_s / u.kib_bytes)
    || ' highest of 16 updates='
    || (t.top_write_bw_bytes_per_s / u.kib_bytes)
FROM throttled AS t
CROSS JOIN wb_units AS u
WHERE t.bandwidth_ts IS NOT NULL
UNION ALL
SELECT
  t.wait_id, 4,
  'position',
  NULL,
  'domain=' || coalesce(t.domain, 'unknown')
    || coalesce(' pos_ratio=' || round(t.pos_ratio, 3), '')
    || coalesce(' global=' || round(t.global_pos_ratio, 3), '')
    || coalesce(' wb=' || round(t.wb_pos_ratio, 3), '')
    || coalesce(
      ' global share of the loss=' || round(t.global_share_ratio, 3), ''
    )
FROM throttled AS t;

-- @view     _evidence_event
-- @summary  The event that began a wait, or reported it.
-- @grain    stall; order wait_id
-- @column   place INTEGER order among the facts of a stall
-- @column   evidence TEXT event or fact
-- @column   evidence_ts INTEGER ns, when it fired; NULL = of the whole stall
-- @column   detail TEXT what it says
CREATE VIEW _evidence_event AS
SELECT
  s.wait_id,
  1 AS place,
  e.event AS evidence,
  e.ts AS evidence_ts,
  e.detail
FROM _evidence_stall AS s
JOIN (
  SELECT
    d.seq, d.ts,
    'mm_vmscan_direct_reclaim_begin' AS event,
    'order=' || d."order" || coalesce(' gfp_flags=' || d.gfp_flags, '')
      AS detail
  FROM raw_mm_vmscan_direct_reclaim_begin AS d
  UNION ALL
  SELECT
    m.seq, m.ts,
    'mm_vmscan_memcg_reclaim_begin',
    'order=' || m."order" || coalesce(' gfp_flags=' || m.gfp_flags, '')
  FROM raw_mm_vmscan_memcg_reclaim_begin AS m
  UNION ALL
  SELECT
    k.seq, k.ts,
    'mm_vmscan_memcg_softlimit_reclaim_begin',
    'order=' || k."order" || coalesce(' gfp_flags=' || k.gfp_flags, '')
  FROM raw_mm_vmscan_memcg_softlimit_reclaim_begin AS k
  UNION ALL
  SELECT
    n.seq, n.ts,
    'mm_vmscan_node_reclaim_begin',
    'nid=' || n.nid || ' order=' || n."order"
      || coalesce(' gfp_flags=' || n.gfp_flags, '')
  FROM raw_mm_vmscan_node_reclaim_begin AS n
  UNION ALL
  SELECT
    w.seq, w.ts,
    'writeback_balance_dirty_pages_waiting',
    'bdi=' || w.bdi || ' pages=' || w.pages
  FROM raw_writeback_balance_dirty_pages_waiting AS w
  UNION ALL
  SELECT
    v.seq, v.ts,
    'mm_vmscan_throttled',
    'nid=' || v.nid || ' usec_timeout=' || v.usec_timeout
      || ' usec_delayed=' || v.usec_delayed || ' reason=' || v.reason
  FROM raw_mm_vmscan_throttled AS v
  UNION ALL
  SELECT
    f.seq, f.ts,
    'folio_wait_writeback',
    'bdi ' || f.name || ': ino=' || f.ino || ' index=' || f."index"
  FROM raw_folio_wait_writeback AS f
) AS e ON e.seq = s.ref_seq
WHERE s.kind IN (
  'throttle', 'direct reclaim', 'memcg reclaim', 'reclaim throttle',
  'folio wait'
)
UNION ALL
SELECT
  s.wait_id, 1, s.what, s.ts,
  'from start to end ' || s.span_ns || ' ns, of which its own ' || s.dur
    || ' ns'
FROM _evidence_stall AS s
WHERE s.kind IN ('fsync', 'sync', 'write', 'server')
  AND s.dur IS NOT NULL
UNION ALL
SELECT
  s.wait_id, 1, s.what, s.ts,
  coalesce(
    'from start to end ' || s.span_ns || ' ns, of which its own ' || s.dur
      || ' ns',
    'nothing tells its end'
  )
FROM _evidence_stall AS s
WHERE s.kind = 'journal'
UNION ALL
SELECT
  s.wait_id, 1, s.what, r.ts,
  coalesce('queued for ' || (r.issue_ts - r.ts) || ' ns, ', '')
    || coalesce(
      'in the device for ' || (r.end_ts - r.issue_ts) || ' ns', ''
    )
FROM _evidence_stall AS s
JOIN wb_wait_request AS r ON r.seq = s.ref_seq
WHERE s.kind = 'block queue';

-- @view     _evidence_flight
-- @summary  Requests in flight when a stall began: of its device, or of all
--   where it names none.
-- @grain    stall, or border of a request (wait_id NULL); order device, ts
-- @column   wait_id INTEGER of wb_wait; NULL = a request begins or ends
-- @column   device TEXT major:minor, or any
-- @column   ts INTEGER ns, when
-- @column   requests_count INTEGER in flight then
CREATE VIEW _evidence_flight AS
WITH
  -- Requests in flight: of the stall's device, or of all where it names none.
  stacked AS (
    SELECT k.bdi AS device, coalesce(r.issue_ts, r.ts) AS from_ts, r.end_ts
    FROM wb_stack AS k
    CROSS JOIN wb_wait_request AS r ON r.device = k.disk
    WHERE k.bdi IN (SELECT s.bdi FROM _evidence_stall AS s)
  ),
  seen AS (
    SELECT DISTINCT coalesce(s.bdi, 'any') AS device
    FROM _evidence_stall AS s
    WHERE s.bdi IN (SELECT r.device FROM wb_wait_request AS r)
      OR s.bdi IN (SELECT t.device FROM stacked AS t)
      OR (s.bdi IS NULL AND EXISTS (SELECT 1 FROM wb_wait_request))
  ),
  flights AS (
    SELECT coalesce(s.bdi, 'any') AS device, s.ts, 0 AS step, s.wait_id
    FROM _evidence_stall AS s
    WHERE coalesce(s.bdi, 'any') IN (SELECT e.device FROM seen AS e)
    UNION ALL
    SELECT r.device, coalesce(r.issue_ts, r.ts), 1, NULL
    FROM wb_wait_request AS r
    WHERE r.device IN (SELECT e.device FROM seen AS e)
    UNION ALL
    SELECT r.device, r.end_ts, -1, NULL
    FROM wb_wait_request AS r
    WHERE r.device IN (SELECT e.device FROM seen AS e)
    UNION ALL
    SELECT t.device, t.from_ts, 1, NULL
    FROM stacked AS t
    UNION ALL
    SELECT t.device, t.end_ts, -1, NULL
    FROM stacked AS t
    UNION ALL
    SELECT 'any', coalesce(r.issue_ts, r.ts), 1, NULL
    FROM wb_wait_request AS r
    WHERE 'any' IN (SELECT e.device FROM seen AS e)
    UNION ALL
    SELECT 'any', r.end_ts, -1, NULL
    FROM wb_wait_request AS r
    WHERE 'any' IN (SELECT e.device FROM seen AS e)
  )
SELECT
  f.wait_id, f.device, f.ts,
  sum(f.step) OVER (
    PARTITION BY f.device ORDER BY f.ts, f.step ROWS UNBOUNDED PRECEDING
  ) AS requests_count
FROM flights AS f;

-- @view     _evidence_stall
-- @summary  The stalls that the filters choose; of more than 10000 the longest
--   10000, which nobody reads to the end.
-- @grain    stall; order wait_id
-- @key      wait_id
-- @materialize
CREATE VIEW _evidence_stall AS
SELECT
  s.wait_id, s.ts, s.dur, s.span_ns, s.tid, s.comm, s.kind, s.what, s.cause,
  s.bdi, s.journal_ratio, s.device_ratio, s.server_ratio, s.ref_seq
FROM wb_stall AS s
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS p
WHERE in_time!(s.ts, b)
  AND asked!(s, p)
ORDER BY coalesce(s.dur, 0) DESC, s.wait_id
LIMIT 10000;
