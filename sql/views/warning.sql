-- SPDX-License-Identifier: Apache-2.0
-- What must be known before a number is believed.

-- @view     wb_warning
-- @shared
-- @summary  What the reader of an answer must know. The runner shows the rows
--   of a query's name and those of '*' with every answer.
-- @grain    warning; order scope, slug
-- @column   scope TEXT name of a query, or *
-- @column   slug TEXT stable name of the warning
-- @column   message TEXT what it means, with the numbers
CREATE VIEW wb_warning AS
-- The files of sql/warnings add their rows.
SELECT '' AS scope, '' AS slug, '' AS message
WHERE 0;

-- @view     wb_dirtied_warning
-- @shared
-- @summary  What the reader of what tasks dirtied must know.
-- @grain    warning; order slug
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
-- @column   slug TEXT stable name of the warning
-- @column   message TEXT what it means, with the numbers
CREATE VIEW wb_dirtied_warning AS
SELECT
  'little-coverage' AS slug,
  'events charge ' || CAST(100 * max(d.coverage_ratio) + 0.5 AS INTEGER)
    || ' % of what the machine dirtied, and nothing tells who dirtied the rest:'
    || ' what tasks dirtied are lower bounds, and there is no index of'
    || ' fairness; wbscope record tells it from probes' AS message
FROM wb_task_dirtied AS d
CROSS JOIN wb_rule AS v
WHERE d.basis = 'bound'
  AND d.is_incidental = 0
  AND d.coverage_ratio < v.coverage_least_ratio
HAVING count(*) > 0;

-- @view     wb_fairness_warning
-- @shared
-- @summary  What the reader of an index of fairness must know.
-- @grain    warning; order slug
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, sched:sched_switch
CREATE VIEW wb_fairness_warning AS
SELECT d.slug, d.message
FROM wb_dirtied_warning AS d
UNION ALL
SELECT
  'demand-unknown',
  'nothing tells what the writers of ' || min(r.bdi)
    || CASE WHEN min(r.bdi) <> max(r.bdi) THEN ' and others' ELSE '' END
    || ' asked for, so there is no weighted index: record sched_switch'
    || ' (profile deep), or let fio write fio.json'
FROM wb_task_rate AS r
CROSS JOIN wb_params AS p
WHERE r.demand_basis = 'none'
  AND p.by_window = 0
  AND (p.bdi IS NULL OR r.bdi = p.bdi)
HAVING count(*) > 0;

-- @view     wb_disk_warning
-- @shared
-- @summary  What the reader of causes must know of disks.
-- @grain    warning; order slug
-- @optional writeback:balance_dirty_pages, block:block_rq_issue,
--   block:block_rq_complete
-- @column   slug TEXT stable name of the warning
-- @column   message TEXT what it means, with the numbers
CREATE VIEW wb_disk_warning AS
SELECT
  'disk-unknown' AS slug,
  'whether the disk of ' || u.bdi || ' was busy is not known: it has no block'
    || ' request, as LVM, dm-crypt, md and btrfs have none, and nothing tells'
    || ' which disks it lies on (' || u.disks || ' wrote); wbscope record notes'
    || ' it, or write the file stacks by hand, with lines such as ' || u.bdi
    || ' ' || u.disk AS message
FROM wb_disk_unknown AS u;
