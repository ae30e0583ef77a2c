-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_wait_busy
-- @summary  Each wait's own time, and how much of it a journal commit, a busy
--   device or an awake kswapd covers. Where the wait's events name no device,
--   the only one that commits or requests name is taken, if it is one; for
--   requests also where they name another one (a partition, a device mapper).
-- @grain    wait that keeps time of its own; order wait_id
-- @needs    wb_wait, wb_wait_piece, wb_busy
-- @column   wait_id INTEGER of wb_wait
-- @column   own_ns INTEGER its time without the waits inside it
-- @column   journal_ns INTEGER of that, while the journal committed; NULL =
--   not recorded
-- @column   device_ns INTEGER of that, while the device had requests; NULL =
--   not recorded
-- @column   kswapd_ns INTEGER of that, while kswapd of any node was awake;
--   NULL = not recorded
-- @materialize
CREATE VIEW wb_wait_busy AS
WITH
  seen AS (
    SELECT
      d.resource,
      d.device,
      min(d.from_ts) AS first_ts,
      count(*) OVER (PARTITION BY d.resource) AS devices_count
    FROM wb_busy AS d
    GROUP BY d.resource, d.device
  ),
  asked AS (
    SELECT
      w.wait_id,
      coalesce(n.resource, o.resource) AS resource,
      coalesce(n.device, o.device) AS device
    FROM wb_wait AS w
    CROSS JOIN (SELECT DISTINCT s.resource FROM seen AS s) AS r
    LEFT JOIN seen AS n ON n.resource = r.resource AND n.device = w.device
    LEFT JOIN seen AS o
      ON o.resource = r.resource
      AND o.devices_count = 1
      AND (w.device IS NULL OR r.resource <> 'journal')
    WHERE w.end_ts IS NOT NULL
      AND (
        (
          r.resource = 'kswapd'
          AND w.kind = 'direct reclaim'
          AND w.ts >= o.first_ts
        )
        OR (
          r.resource <> 'kswapd'
          AND w.kind IN ('folio wait', 'journal', 'fsync', 'sync', 'write')
        )
      )
      AND (n.resource IS NOT NULL OR o.resource IS NOT NULL)
  ),
  points AS (
    SELECT
      d.resource,
      d.device,
      d.from_ts AS ts,
      0 AS step,
      NULL AS wait_id,
      d.from_ts,
      d.to_ts,
      d.before_ns
    FROM wb_busy AS d
    UNION ALL
    SELECT a.resource, a.device, p.from_ts, -1, p.wait_id, NULL, NULL, NULL
    FROM wb_wait_piece AS p
    JOIN asked AS a ON a.wait_id = p.wait_id
    UNION ALL
    SELECT a.resource, a.device, p.to_ts, 1, p.wait_id, NULL, NULL, NULL
    FROM wb_wait_piece AS p
    JOIN asked AS a ON a.wait_id = p.wait_id
  ),
  -- Stretches do not overlap, so the greatest so far are those of the last.
  reached AS (
    SELECT
      q.resource,
      q.ts,
      q.step,
      q.wait_id,
      max(q.from_ts) OVER device AS from_ts,
      max(q.to_ts) OVER device AS to_ts,
      max(q.before_ns) OVER device AS before_ns
    FROM points AS q
    WINDOW device AS (
      PARTITION BY q.resource, q.device ORDER BY q.ts, abs(q.step)
      ROWS UNBOUNDED PRECEDING
    )
  ),
  covered AS (
    SELECT
      r.wait_id,
      r.resource,
      sum(
        r.step * coalesce(
          r.before_ns
            + CASE WHEN r.ts < r.to_ts THEN r.ts ELSE r.to_ts END - r.from_ts,
          0
        )
      ) AS busy_ns
    FROM reached AS r
    WHERE r.step <> 0
    GROUP BY r.wait_id, r.resource
  ),
  shares AS (
    SELECT
      c.wait_id,
      max(CASE WHEN c.resource = 'journal' THEN c.busy_ns END) AS journal_ns,
      max(CASE WHEN c.resource = 'device' THEN c.busy_ns END) AS device_ns,
      max(CASE WHEN c.resource = 'kswapd' THEN c.busy_ns END) AS kswapd_ns
    FROM covered AS c
    GROUP BY c.wait_id
  ),
  own AS (
    SELECT p.wait_id, sum(p.to_ts - p.from_ts) AS own_ns
    FROM wb_wait_piece AS p
    GROUP BY p.wait_id
  )
SELECT o.wait_id, o.own_ns, s.journal_ns, s.device_ns, s.kswapd_ns
FROM own AS o
LEFT JOIN shares AS s ON s.wait_id = o.wait_id;
