-- name: imported
UPDATE worktrees SET imported_commit = :commit, imported_at = :now
WHERE name = :name AND (imported_commit IS NULL OR imported_commit <> :commit);
