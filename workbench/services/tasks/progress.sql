-- name: start
UPDATE task_status SET status = 'in_progress', started_at = :now WHERE task_id = :task_id;

-- name: start_attempt
UPDATE task_attempts SET started_at = :now WHERE task_id = :task_id AND attempt = :attempt;

-- name: progress
UPDATE task_status SET progress = :progress, lease_expires_at = :now + CAST(:lease_us AS {{big}})
WHERE task_id = :task_id;

-- name: log
INSERT INTO task_logs (task_id, agent_id, level, message, logged_at)
VALUES (:task_id, :agent, :level, :message, :now);

-- name: complete
UPDATE task_status SET status = 'completed', progress = 100, completed_at = :now,
    started_at = COALESCE(started_at, :now), lease_expires_at = NULL, result_data = :result,
    artifacts = :artifacts, error_message = NULL, evidence = :evidence
WHERE task_id = :task_id;

-- name: note_usage
UPDATE task_attempts SET input_tokens = CAST(:input_tokens AS {{big}}), cached_tokens = CAST(:cached_tokens AS {{big}}),
    output_tokens = CAST(:output_tokens AS {{big}}), cost_usd = CAST(:cost_usd AS {{real}})
WHERE task_id = :task_id AND attempt = :attempt;
