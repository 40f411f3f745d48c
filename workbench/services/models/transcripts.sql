-- part: of_attempt
-- Without an attempt, that of the message to go on from, else the last one: it may change between two pages.
SELECT id, attempt, chain, node, at, role, content FROM transcript
WHERE task_id = :task_id AND attempt = COALESCE(CAST(:attempt AS {{big}}),
    (SELECT attempt FROM transcript WHERE task_id = :task_id AND id = :id),
    (SELECT MAX(attempt) FROM transcript WHERE task_id = :task_id))

-- name: size
SELECT COALESCE(SUM(bytes), 0) AS bytes FROM transcript WHERE task_id = :task_id AND attempt = :attempt;

-- name: has
SELECT 1 AS there FROM transcript WHERE task_id = :task_id AND attempt = :attempt AND node = :node;

-- name: last
SELECT node FROM transcript WHERE task_id = :task_id AND attempt = :attempt ORDER BY id DESC LIMIT 1;

-- name: add
INSERT INTO transcript (task_id, attempt, chain, node, at, role, content, bytes)
VALUES (:task_id, :attempt, :chain, :node, :at, :role, :content, :bytes)
ON CONFLICT (task_id, attempt, node) DO NOTHING;

-- name: after
{{of_attempt}} AND id > :id ORDER BY id LIMIT :limit;

-- name: before
{{of_attempt}} AND id < :id ORDER BY id DESC LIMIT :limit;
