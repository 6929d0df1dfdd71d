-- Every attempt once: the attempt in a task's row is in the log too when its
-- lock was lost (result 8), and when the task was cancelled while it waited for
-- the next attempt (cancelled, but no cancel was noted while it ran).

CREATE OR REPLACE VIEW execute_log AS
SELECT slice, slot_ms, task_id, fire, attempt AS retry_times, result,
       exec_node AS execute_node, sched_node, claimed_ms,
       called_ms AS execute_time, at_ms AS ended_ms, detail AS error_msg
  FROM task_log
 WHERE kind IN (1, 7)
UNION ALL
SELECT slice, slot_ms, task_id, fire, attempt, result, exec_node, sched_node,
       claimed_ms, called_ms, ended_ms, error
  FROM task_info
 WHERE claimed_ms > 0 AND status NOT IN (0, 3, 4) AND result <> 8
   AND NOT (status = 7 AND (flags & 1) = 0);
