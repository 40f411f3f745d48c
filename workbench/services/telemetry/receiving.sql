-- name: has
SELECT 1 AS there FROM spending WHERE agent_id IS NOT DISTINCT FROM CAST(:agent AS TEXT) AND report = :report;

-- name: providers
SELECT model_providers FROM attempt_work WHERE task_id = :task_id AND attempt = :attempt;
