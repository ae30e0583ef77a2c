-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_task_label
-- @summary  How timelines name tasks, escaped: in the path of a track, and
--   among the arguments of a slice.
-- @grain    task under a name; order task_id
-- @key      task_id
-- @needs    wb_task
-- @column   task_id INTEGER of wb_task
-- @column   tid INTEGER thread
-- @column   from_seq INTEGER as in wb_task
-- @column   until_seq INTEGER as in wb_task
-- @column   path TEXT name and tid as a part of a path
-- @column   args TEXT tid and comm as arguments
-- @source   docs/timeline.md has the rules of escaping
-- @materialize
CREATE VIEW wb_task_label AS
SELECT
  t.task_id,
  t.tid,
  t.from_seq,
  t.until_seq,
  replace(replace(t.comm, '\', '\\'), '/', '\/') || ' ' || t.tid AS path,
  'tid=' || t.tid
    || '|comm="' || replace(replace(t.comm, '\', '\\'), '|', '\|') || '"'
    AS args
FROM wb_task AS t;
