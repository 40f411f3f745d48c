-- name: neighbours
SELECT n.rid FROM koi_nodes n
WHERE n.blocked_at IS NULL AND n.rid <> :me AND (
    EXISTS (SELECT 1 FROM koi_edges e WHERE e.source = :me AND e.target = n.rid)
    OR EXISTS (SELECT 1 FROM koi_edges e WHERE e.target = :me AND e.source = n.rid)
    OR EXISTS (SELECT 1 FROM koi_network k WHERE k.first_contact_rid = n.rid));

-- name: subscribers
SELECT e.target, e.rid_types FROM koi_edges e JOIN koi_nodes n ON n.rid = e.target
WHERE e.source = :me AND n.blocked_at IS NULL;
