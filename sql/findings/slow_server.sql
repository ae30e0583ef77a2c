-- SPDX-License-Identifier: Apache-2.0
-- @finding   slow_server
-- @title     Tasks wait for a file server
-- @summary   Tasks waited while the server of their file system (NFS, FUSE) had
--   requests of theirs.
-- @when      slow_server
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} for the server of {bdi}, the longest
--   {longest_ns}.
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=slow_server,
--   bdi={bdi}); longest_ns = max(max_ns, finding=slow_server, bdi={bdi})
-- @advice    Look at the server and the network: query server_latency has the
--   time of each kind of request.
-- @optional  nfs:nfs_initiate_write, fuse:fuse_request_send
-- @column    severity TEXT warning or note
-- @column   bdi TEXT of the file system
-- @source    docs/stalls.md
SELECT
  t.cost_task_ns,
  CASE WHEN t.longest_ns >= v.long_call_ns THEN 'warning' ELSE 'note' END
    AS severity,
  t.tasks, t.bdi, t.longest_ns, t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
WHERE t.finding = 'slow_server' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
