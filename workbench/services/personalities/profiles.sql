-- name: get
SELECT name, version, agent_id, definition_id, traits FROM own_personalities WHERE name = :name;

-- name: of_agent
SELECT name FROM own_personalities WHERE agent_id = :agent ORDER BY name LIMIT 1;

-- name: save
INSERT INTO own_personalities (name, version, agent_id, definition_id, traits, created_at, changed_at)
VALUES (:name, :version, CAST(:agent_id AS TEXT), CAST(:definition_id AS TEXT), :traits, :now, :now)
ON CONFLICT (name) DO UPDATE SET version = excluded.version, agent_id = excluded.agent_id,
    definition_id = excluded.definition_id, traits = excluded.traits, changed_at = excluded.changed_at;

-- name: delete
DELETE FROM own_personalities WHERE name = :name;

-- name: owner
SELECT owner FROM personality_owners WHERE name = :name;

-- name: published
SELECT sha256 FROM koi_bundles WHERE rid = :rid AND owner LIKE :own_node;
