-- name: last
SELECT hash, deleted_at FROM definitions WHERE id = :id;

-- name: known
SELECT id FROM definitions WHERE deleted_at IS NULL;

-- name: save
INSERT INTO definitions (id, name, path, hash, seen_at, deleted_at)
VALUES (:id, :name, :path, :hash, :now, CAST(:deleted AS {{big}}))
ON CONFLICT (id) DO UPDATE SET name = excluded.name, path = excluded.path, hash = excluded.hash,
    seen_at = excluded.seen_at, deleted_at = excluded.deleted_at;

-- name: keep_content
INSERT INTO definition_contents (hash, content) VALUES (:hash, :content) ON CONFLICT (hash) DO NOTHING;

-- name: keep_version
INSERT INTO definition_versions (definition_id, hash, action, name, path, summary, saved_by, saved_at)
VALUES (:id, :hash, :action, :name, :path, :summary, :by, :now);

-- name: replace_in_versions
UPDATE definition_versions SET definition_id = :new WHERE definition_id = :old;

-- name: replace_in_agents
UPDATE agents SET definition_id = :new WHERE definition_id = :old;

-- name: replace_in_attempts
UPDATE task_attempts SET definition_id = :new WHERE definition_id = :old;

-- name: replace_in_trust
UPDATE definition_trust SET definition_id = :new WHERE definition_id = :old;

-- name: replace_in_calls
UPDATE tool_calls SET definition_id = :new WHERE definition_id = :old;

-- name: replace_in_conversations
UPDATE conversations SET definition_id = :new WHERE definition_id = :old;

-- name: replace_in_personalities
UPDATE own_personalities SET definition_id = :new WHERE definition_id = :old;

-- name: forget_id
DELETE FROM definitions WHERE id = :old;
