-- SPDX-License-Identifier: Apache-2.0
-- The run itself.

-- @query    event_counts
-- @title    Events in the trace
-- @summary  How often each event is in the trace, and how many were loaded.
-- @read     count is what trace-cmd report would print; loaded_count is how
--   many are in tables (0: not asked for; load them with ingest --events).
-- @grain    event; order event
-- @column   count INTEGER in the trace
-- @column   loaded_count INTEGER in the database's tables
SELECT c.event, c.count, c.loaded_count
FROM raw_event_counts AS c
ORDER BY c.event;
