-- name: of_definition
SELECT t.fingerprint, t.status, t.approval_id, a.reason
FROM definition_trust t
LEFT JOIN approvals a ON a.id = t.approval_id
WHERE t.definition_id = :definition;

-- name: asked_by
SELECT fingerprint FROM definition_trust WHERE approval_id = :approval AND status = 'asked';

-- name: names_asked_by
SELECT name FROM definition_trust WHERE approval_id = :approval AND status = 'asked' ORDER BY name;

-- name: trust
INSERT INTO definition_trust (definition_id, fingerprint, name, status, approval_id, decided_by, decided_at)
VALUES (:definition, :fingerprint, :name, 'trusted', NULL, :by, :now)
ON CONFLICT (definition_id, fingerprint) DO UPDATE SET status = 'trusted', approval_id = NULL,
    decided_by = excluded.decided_by, decided_at = excluded.decided_at;

-- name: ask
INSERT INTO definition_trust (definition_id, fingerprint, name, status, approval_id, decided_by, decided_at)
VALUES (:definition, :fingerprint, :name, 'asked', :approval, NULL, NULL)
ON CONFLICT (definition_id, fingerprint) DO UPDATE SET status = 'asked', approval_id = excluded.approval_id,
    decided_by = NULL, decided_at = NULL;

-- name: decide
UPDATE definition_trust SET status = :status, decided_by = :by, decided_at = :now
WHERE approval_id = :approval AND status = 'asked';

-- name: withdraw
DELETE FROM definition_trust WHERE approval_id = :approval AND status = 'asked';

-- name: forget
DELETE FROM definition_trust WHERE definition_id = :definition AND status <> 'asked';

-- name: texts
SELECT fingerprint FROM definition_trust
WHERE definition_id = :definition AND (name = 'prompt' OR name LIKE 'rules.%' OR name LIKE 'references.%' OR name LIKE 'tools.%');

-- name: note_text
INSERT INTO definition_trust (definition_id, fingerprint, name, status) VALUES (:definition, :fingerprint, :name, 'asked')
ON CONFLICT (definition_id, fingerprint) DO NOTHING;

-- name: release_texts
UPDATE definition_trust SET approval_id = NULL
WHERE approval_id = :approval AND status = 'asked' AND (name = 'prompt' OR name LIKE 'rules.%' OR name LIKE 'references.%' OR name LIKE 'tools.%');

-- name: forget_texts
UPDATE definition_trust SET status = 'asked', approval_id = NULL, decided_by = NULL, decided_at = NULL
WHERE definition_id = :definition AND status <> 'asked' AND (name = 'prompt' OR name LIKE 'rules.%' OR name LIKE 'references.%' OR name LIKE 'tools.%');
