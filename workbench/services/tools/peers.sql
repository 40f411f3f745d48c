-- name: nodes
SELECT rid, name, base_url, public_key, blocked_at, retry_at, last_error FROM koi_nodes;

-- name: node
SELECT rid, name, base_url, public_key, blocked_at, retry_at, failures, last_error FROM koi_nodes WHERE rid = :rid;

-- name: bundle
SELECT manifest, contents FROM koi_bundles WHERE rid = :rid;

-- name: failed
UPDATE koi_nodes SET failures = failures + 1, retry_at = :retry_at, last_error = :error WHERE rid = :rid;

-- name: reached
UPDATE koi_nodes SET last_seen = :now, failures = 0, retry_at = NULL, last_error = NULL WHERE rid = :rid;

-- name: last_change
SELECT event_type, at FROM personality_history WHERE name = :name ORDER BY id DESC LIMIT 1;
