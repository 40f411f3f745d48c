-- name: add
INSERT INTO approvals (kind, status, requester, asker, subject, payload, created_at)
VALUES (:kind, 'pending', :requester, :asker, :subject, :payload, :now)
RETURNING id;

-- name: get
SELECT * FROM approvals WHERE id = :id;

-- name: open_about
SELECT * FROM approvals WHERE subject = :subject AND kind = :kind AND status = 'pending'
ORDER BY id DESC LIMIT 1;

-- name: list
SELECT * FROM approvals
WHERE (CAST(:status AS TEXT) IS NULL OR status = :status)
  AND (CAST(:kind AS TEXT) IS NULL OR kind = :kind)
  AND (CAST(:subject AS TEXT) IS NULL OR subject = :subject)
ORDER BY id LIMIT :limit;

-- name: list_decided
SELECT * FROM approvals
WHERE status <> 'pending'
  AND (CAST(:kind AS TEXT) IS NULL OR kind = :kind)
  AND (CAST(:subject AS TEXT) IS NULL OR subject = :subject)
ORDER BY decided_at DESC, id DESC LIMIT :limit;

-- name: list_decided_by
SELECT * FROM approvals
WHERE status <> 'pending' AND (decided_at, id) < (CAST(:before_at AS {{big}}), CAST(:before_id AS {{big}}))
  AND (CAST(:status AS TEXT) IS NULL OR status = :status)
  AND (CAST(:kind AS TEXT) IS NULL OR kind = :kind)
  AND (CAST(:search AS TEXT) IS NULL OR LOWER(subject) LIKE LOWER(:search) ESCAPE '!'
       OR LOWER(requester) LIKE LOWER(:search) ESCAPE '!' OR LOWER(asker) LIKE LOWER(:search) ESCAPE '!'
       OR LOWER(reason) LIKE LOWER(:search) ESCAPE '!'
       OR LOWER(decided_by) LIKE LOWER(:search) ESCAPE '!' OR LOWER(person) LIKE LOWER(:search) ESCAPE '!'
       OR LOWER(payload) LIKE LOWER(:search) ESCAPE '!')
ORDER BY decided_at DESC, id DESC LIMIT :limit;

-- name: pending
SELECT * FROM approvals WHERE status = 'pending' AND kind = :kind ORDER BY id;

-- name: is_pending
SELECT 1 AS found FROM approvals WHERE status = 'pending' AND kind = :kind LIMIT 1;

-- name: pending_about
SELECT * FROM approvals WHERE subject = :subject AND status = 'pending' ORDER BY id;

-- name: decide
UPDATE approvals SET status = :status, decided_at = :now, decided_by = :by, reason = :reason,
    outcome = :outcome, person = :person
WHERE id = :id AND status = 'pending';

-- name: note_changes
UPDATE approvals SET changes_requested_at = :now WHERE id = :id;

-- name: reopen
UPDATE approvals SET status = 'pending', decided_at = NULL, decided_by = NULL, person = NULL, reason = NULL, outcome = NULL
WHERE id = :id AND status = 'rejected';

-- name: amend
UPDATE approvals SET payload = :payload WHERE id = :id;

-- name: conclude
UPDATE approvals SET status = :status, reason = :reason, outcome = :outcome WHERE id = :id;

-- name: requester
SELECT id FROM agents WHERE assigned_agent_id = :name
UNION ALL
SELECT id FROM former_ids WHERE agent_id = :name
LIMIT 1;

-- name: requested_by
SELECT 1 AS found FROM approvals WHERE id = :id AND requester IN (
    SELECT assigned_agent_id FROM agents WHERE id = :agent
    UNION ALL
    SELECT agent_id FROM former_ids WHERE id = :agent
);
