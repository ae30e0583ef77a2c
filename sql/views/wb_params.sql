-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_params
-- @summary  What a question is restricted to; NULL means all. The runner
--   replaces this view; the text below is the default.
-- @grain    one row
-- @needs
-- @column   t0_ns INTEGER first time of interest, trace clock
-- @column   t1_ns INTEGER end of the time of interest, trace clock
-- @column   window_ns INTEGER length of a window
-- @column   by_window INTEGER 1: window_ns was asked for, so that a question
--   with an answer of all the time answers for each window; else 0
-- @column   bdi TEXT backing device, such as 8:0
-- @column   tid INTEGER thread
-- @column   comm_glob TEXT pattern of the names of threads, such as dd*
-- @column   cgroup_ino INTEGER inode of the cgroup that owns the wb
CREATE VIEW wb_params AS
SELECT
  NULL AS t0_ns,
  NULL AS t1_ns,
  2000000000 AS window_ns,
  0 AS by_window,
  NULL AS bdi,
  NULL AS tid,
  NULL AS comm_glob,
  NULL AS cgroup_ino;
