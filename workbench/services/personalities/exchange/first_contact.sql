-- name: unknown
-- The first contact, unless its bundle is known or it is blocked.
SELECT k.first_contact_url, k.first_contact_rid FROM koi_network k
WHERE k.joined = 1 AND k.first_contact_url IS NOT NULL AND (k.first_contact_rid IS NULL OR (
    NOT EXISTS (SELECT 1 FROM koi_bundles b WHERE b.rid = k.first_contact_rid)
    AND NOT EXISTS (SELECT 1 FROM koi_nodes n WHERE n.rid = k.first_contact_rid AND n.blocked_at IS NOT NULL)));

-- name: pin
UPDATE koi_network SET first_contact_rid = :rid WHERE first_contact_url = :url AND first_contact_rid IS NULL;
