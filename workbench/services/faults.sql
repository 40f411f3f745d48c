-- name: works
SELECT w.task_id, w.attempt, w.state, w.kept_commit, x.machine FROM attempt_work w
JOIN task_attempts x ON x.task_id = w.task_id AND x.attempt = w.attempt
ORDER BY w.task_id, w.attempt;

-- name: running
SELECT p.pid, p.started, x.machine FROM processes p
JOIN task_attempts x ON x.task_id = :task_id AND x.attempt = :attempt AND x.agent_id = p.agent_id
WHERE p.ended_at IS NULL;

-- name: orphans
-- PostgreSQL refuses such rows.
{{sqlite}}
SELECT f."table" AS child, f.parent, l."from" AS name, f.rowid AS row_id, c."notnull" OR c.pk AS is_needed
FROM pragma_foreign_key_check f
JOIN pragma_foreign_key_list(f."table") l ON l.id = f.fkid
JOIN pragma_table_info(f."table") c ON c.name = l."from"
ORDER BY f."table", l.id, l.seq, f.rowid
{{end}}{{postgres}}
SELECT '' AS child, '' AS parent, '' AS name, 0 AS row_id, 0 AS is_needed WHERE 1 = 0
{{end}};

-- name: check_at_the_end
{{sqlite}}PRAGMA defer_foreign_keys = ON{{end}}{{postgres}}SET CONSTRAINTS ALL DEFERRED{{end}};

-- name: renew
UPDATE worktrees SET protected = :protected WHERE name = :name;
