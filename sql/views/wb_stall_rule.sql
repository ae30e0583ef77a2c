-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_stall_rule
-- @summary  The thresholds by which the causes of stalls are decided; there are
--   no others but those of wb_throttle_domain.
-- @grain    one row
-- @needs    wb_units
-- @column   most_ratio REAL a commit, a busy device or an awake kswapd is the
--   cause of a stall when it covers at least this share of it, and one half of
--   the position control is when it holds at least this share of the loss
-- @column   falling_ratio REAL a bdi's bandwidth falls when its estimate is
--   below this share of the highest one of its last 16 updates (3 s of
--   throttling, the time over which the kernel averages)
-- @column   at_limit_ratio REAL so near to the limit that pos_ratio rounds to
--   0: the global part of pos_ratio is below this
-- @column   freerun_margin_ratio REAL dirty pages are surely in free run when
--   they are below it by this share of limit - setpoint; the limit recorded up
--   to 6.14 can be a little too low, and the freerun made of it too high
-- @column   call_least_ns INTEGER a write system call that sched_switch did not
--   watch counts as a wait from this length on: shorter ones copy data
-- @column   run_slack_ns INTEGER a sleep belongs to an event of its task when
--   no more than this lies between them
-- @source   the ratios are choices, the rest is mm/page-writeback.c
--   wb_position_ratio(), wb_update_write_bandwidth()
CREATE VIEW wb_stall_rule AS
SELECT
  0.5 AS most_ratio,
  0.75 AS falling_ratio,
  0.02 AS at_limit_ratio,
  0.125 AS freerun_margin_ratio,
  u.ms_ns AS call_least_ns,
  20 * u.ms_ns AS run_slack_ns
FROM wb_units AS u;
