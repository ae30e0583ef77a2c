-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle_domain
-- @summary  Which limits throttled a task whose wb belongs to a memory cgroup:
--   the machine's or the cgroup's. The event does not tell; the
--   global_dirty_state that the same call fired just before does: the machine's
--   limits threw the task's event when both see the same dirty pages and the
--   same setpoint, within a sixteenth.
-- @grain    balance_dirty_pages event of a wb that is not the root's; order seq
-- @key      seq
-- @needs    raw_balance_dirty_pages, raw_global_dirty_state,
--   wb_throttle_done, wb_kernel
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, writeback:balance_dirty_pages_done
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   domain TEXT global or memcg; NULL without global_dirty_state and
--   without the call's return
-- @column   has_limit INTEGER 1: limit is that of the domain; 0: the kernel (up
--   to 6.14.1) recorded the machine's limit whatever the domain, or it is not
--   known which it was
-- @source   mm/page-writeback.c balance_dirty_pages(), domain_dirty_limits()
-- @materialize
CREATE VIEW wb_throttle_domain AS
WITH
  member AS (
    SELECT DISTINCT b.tid
    FROM raw_balance_dirty_pages AS b
    WHERE b.cgroup_ino > 1 OR b.cgroup_path <> '/'
  ),
  steps AS (
    SELECT
      b.tid,
      b.seq,
      b.cgroup_ino > 1 OR b.cgroup_path <> '/' AS is_member,
      b.dirty,
      b.setpoint,
      NULL AS state_seq
    FROM raw_balance_dirty_pages AS b
    WHERE b.tid IN (SELECT m.tid FROM member AS m)
    UNION ALL
    SELECT
      g.tid,
      g.seq,
      NULL,
      g.nr_dirty + g.nr_writeback + coalesce(g.nr_unstable, 0),
      (
        CASE WHEN g.thresh > g.dirty_limit THEN g.thresh ELSE g.dirty_limit END
        + (g.thresh + g.bg_thresh) / 2
      ) / 2,
      g.seq
    FROM raw_global_dirty_state AS g
    WHERE EXISTS (SELECT 1 FROM member)
      AND g.tid IN (SELECT m.tid FROM member AS m)
  ),
  paired AS (
    SELECT
      s.seq,
      s.is_member,
      s.dirty,
      s.setpoint,
      lag(s.state_seq) OVER task AS state_seq,
      lag(s.dirty) OVER task AS machine_dirty,
      lag(s.setpoint) OVER task AS machine_setpoint
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid ORDER BY s.seq)
  ),
  judged AS (
    SELECT
      p.seq,
      CASE
        WHEN d.domain IS NOT NULL AND (d.is_last = 1 OR p.state_seq IS NULL)
          THEN d.domain
        WHEN p.state_seq IS NULL THEN NULL
        WHEN abs(p.setpoint - p.machine_setpoint) * 16 <= p.machine_setpoint
          AND (
            abs(p.dirty - p.machine_dirty) <= 64
            OR abs(p.dirty - p.machine_dirty) * 16 <= p.machine_dirty
          )
          THEN 'global'
        ELSE 'memcg'
      END AS domain
    FROM paired AS p
    LEFT JOIN wb_throttle_done AS d ON d.seq = p.seq
    WHERE p.is_member = 1
  )
SELECT
  j.seq,
  j.domain,
  CASE
    WHEN j.domain = 'global' OR k.version >= 6015 THEN 1
    WHEN k.version = 6014 AND k.patch >= 2 THEN 1
    ELSE 0
  END AS has_limit
FROM judged AS j
CROSS JOIN wb_kernel AS k;
