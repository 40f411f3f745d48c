-- name: personas
SELECT id, lease_us FROM personas ORDER BY id;

-- name: find
SELECT name, sha256, created_by, workplace, workplace_trusted FROM plans WHERE name = :name;

-- name: names
SELECT name FROM plans;

-- name: tasks
SELECT t.id, t.name, t.title, t.description, t.parent_id, t.target_worktree, t.run, t.check_stated, t.done_when, t.context_ref, t.metadata,
    t.max_retries, t.lease_us, t.session_id, t.on_failure, t.no_retry, t.due, s.persona_id, s.priority, s.status, s.needs,
    (SELECT b.declared FROM budgets b WHERE b.scope = 'task:' || CAST(t.id AS TEXT)) AS budget
FROM tasks t JOIN task_status s ON s.task_id = t.id
WHERE t.plan = :plan ORDER BY t.id;

-- name: edges
SELECT d.task_id, d.depends_on FROM task_dependencies d
JOIN tasks t ON t.id = d.task_id
JOIN tasks o ON o.id = d.depends_on
WHERE t.plan = :plan AND o.plan = :plan ORDER BY d.task_id, d.depends_on;
