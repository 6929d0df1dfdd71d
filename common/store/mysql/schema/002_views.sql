-- What people look at: every attempt, the latest one (in the task's row) and
-- the earlier ones (in the log). The numbers of status, kind and result are
-- explained in docs/STORAGE.md.

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
 WHERE claimed_ms > 0 AND status NOT IN (0, 3, 4);

CREATE OR REPLACE VIEW retry_record AS
SELECT slice, slot_ms, task_id, fire, attempt AS retry_times, result,
       next_slot_ms AS next_time, exec_node AS execute_node,
       called_ms AS execute_time, at_ms AS ended_ms, detail AS error_msg
  FROM task_log
 WHERE kind IN (1, 7);
