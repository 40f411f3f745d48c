-- name: taken_names
SELECT name FROM worktrees WHERE name LIKE :prefix || '%';
