-- name: personalities
SELECT contents, manifest_at, owner FROM koi_bundles WHERE rid_type = 'orn:agent.personality';
