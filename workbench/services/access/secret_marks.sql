-- name: known
SELECT mark, beginning, characters FROM secret_marks;

-- name: get
SELECT mark FROM secret_marks WHERE mark = :mark;

-- name: record
INSERT INTO secret_marks (mark, beginning, characters, learned_at) VALUES (:mark, :beginning, :characters, :now)
ON CONFLICT (mark) DO UPDATE SET learned_at = excluded.learned_at;

-- name: drop_oldest
DELETE FROM secret_marks WHERE learned_at < (
    SELECT learned_at FROM secret_marks ORDER BY learned_at DESC LIMIT 1 OFFSET :most
);
