-- name: personalities
SELECT contents, manifest_at, owner FROM koi_bundles WHERE rid_type = 'orn:agent.personality';

-- name: some
SELECT contents, manifest_at, owner FROM koi_bundles
WHERE rid_type = 'orn:agent.personality' AND rid IN (SELECT value FROM {{rows_of rids}} AS wanted);
