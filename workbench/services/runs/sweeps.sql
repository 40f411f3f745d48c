-- name: by_name
SELECT id, name, notebook, notebook_sha256, specification, created_at, created_by FROM sweeps WHERE name = :name;

-- name: add
INSERT INTO sweeps (name, notebook, notebook_sha256, specification, created_at, created_by)
VALUES (:name, :notebook, :notebook_sha256, :specification, :now, :by);

-- name: list
SELECT w.id, w.name, w.notebook, w.notebook_sha256, w.specification, w.created_at, w.created_by,
    (SELECT COUNT(*) FROM runs r WHERE r.sweep_id = w.id AND r.state = 'completed') AS completed,
    (SELECT COUNT(*) FROM runs r WHERE r.sweep_id = w.id AND r.state = 'failed') AS failed,
    (SELECT COUNT(*) FROM runs r WHERE r.sweep_id = w.id AND r.state = 'running') AS running,
    (SELECT COUNT(*) FROM runs r WHERE r.sweep_id = w.id AND r.state = 'lost') AS lost
FROM sweeps w
WHERE w.id < :after AND (CAST(:search AS TEXT) IS NULL OR LOWER(w.name) LIKE LOWER(:search) ESCAPE '!')
ORDER BY w.id DESC LIMIT :limit;
