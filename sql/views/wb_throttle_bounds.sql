-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle_bounds
-- @summary  The time of interest as numbers of balance_dirty_pages events.
-- @grain    one row
-- @needs    wb_throttle_edge
-- @events   writeback:balance_dirty_pages
-- @column   start_seq INTEGER first event of the time of interest
-- @column   end_seq INTEGER first event behind it
-- @materialize
CREATE VIEW wb_throttle_bounds AS
SELECT min(e.first_seq) AS start_seq, max(e.after_seq) AS end_seq
FROM wb_throttle_edge AS e;
