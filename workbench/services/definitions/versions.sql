-- name: known
SELECT id, path FROM definitions WHERE id = :id OR name = :wanted OR path = :wanted;

-- name: recorded
SELECT hash, action, name, path, summary, saved_by, saved_at FROM definition_versions
WHERE definition_id = :id
ORDER BY number DESC
LIMIT :limit;

-- name: contents
SELECT hash, content FROM definition_contents
WHERE hash IN (SELECT hash FROM definition_versions WHERE definition_id = :id AND hash LIKE :prefix || '%')
ORDER BY hash
LIMIT 2;
