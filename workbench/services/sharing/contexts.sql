-- part: visible
(CAST(:everything AS {{big}}) = 1 OR c.agent_id = :me OR c.session_id = :my_session
       OR c.agent_id IN (SELECT id FROM agents WHERE team_id = :my_team))

-- part: joins
LEFT JOIN sessions s ON s.id = c.session_id
LEFT JOIN projects p ON p.id = COALESCE(s.project_id, c.project_id)

-- part: not_deleted
COALESCE(c.deleted_at, s.deleted_at, p.deleted_at) IS NULL

-- part: columns
SELECT c.number, c.agent_id AS author, a.team_id AS team, c.id,
    COALESCE(s.project_id, c.project_id) AS project_id, c.session_id, s.name AS session,
    a.assigned_agent_id AS agent_id, c.sequence_number, c.title, c.content, c.metadata, c.created_at, c.updated_at,
    COALESCE(c.deleted_at, s.deleted_at, p.deleted_at) AS deleted_at
FROM contexts c
{{joins}}
LEFT JOIN agents a ON a.id = c.agent_id

-- part: titled
(CAST(:title AS TEXT) IS NULL OR c.title = :title)
  AND (CAST(:sequence_after AS {{big}}) IS NULL OR c.sequence_number > :sequence_after)

-- name: next_number
UPDATE sessions SET contexts = contexts + 1
WHERE id = :session AND deleted_at IS NULL
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = sessions.project_id AND p.deleted_at IS NULL)
RETURNING contexts, project_id;

-- name: add
INSERT INTO contexts (
    id, project_id, session_id, agent_id, sequence_number, title, content, metadata, created_at, updated_at
) VALUES (
    :id, :project, :session, :agent, :sequence_number, :title, :content, :metadata, :now, :now
);

-- name: get
{{columns}}
WHERE c.id = :id AND (c.deleted_at IS NOT NULL) = (CAST(:deleted AS {{big}}) = 1)
  AND COALESCE(s.deleted_at, p.deleted_at) IS NULL
  AND {{visible}};

-- name: rows
{{columns}}
WHERE CAST(:numbers AS TEXT) <> '[]' AND c.number IN (SELECT CAST(n.value AS {{big}}) FROM {{rows_of numbers}} AS n)
ORDER BY c.number DESC;

-- name: authors
SELECT id FROM agents WHERE id = :me
UNION
SELECT id FROM agents WHERE team_id = :my_team;

-- name: newest
SELECT c.number FROM contexts c
{{joins}}
WHERE c.number < :before AND {{not_deleted}}
  AND {{visible}}
  AND {{titled}}
ORDER BY c.number DESC LIMIT :limit;

-- name: of_session
SELECT c.number FROM contexts c
{{joins}}
WHERE c.session_id = :session AND c.number < :before AND {{not_deleted}}
  AND {{visible}}
  AND {{titled}}
ORDER BY c.number DESC LIMIT :limit;

-- name: of_agent
SELECT c.number FROM contexts c
{{joins}}
WHERE c.agent_id = :agent AND c.number < :before AND {{not_deleted}}
  AND {{visible}}
  AND (CAST(:session AS TEXT) IS NULL OR c.session_id = :session)
  AND {{titled}}
ORDER BY c.number DESC LIMIT :limit;

-- name: changed
-- The plus signs keep SQLite from scanning the rows by number.
SELECT c.number FROM contexts c
{{joins}}
WHERE c.updated_at > :since AND +c.number < :before AND {{not_deleted}}
  AND {{visible}}
  AND (CAST(:session AS TEXT) IS NULL OR c.session_id = :session)
  AND (CAST(:agent AS TEXT) IS NULL OR c.agent_id = :agent)
  AND {{titled}}
ORDER BY +c.number DESC LIMIT :limit;

-- name: numbered_after
-- The plus signs keep SQLite from scanning the rows by number.
SELECT c.number FROM contexts c
{{joins}}
WHERE c.session_id = :session AND c.sequence_number > :sequence_after AND +c.number < :before AND {{not_deleted}}
  AND {{visible}}
  AND (CAST(:agent AS TEXT) IS NULL OR c.agent_id = :agent)
  AND (CAST(:title AS TEXT) IS NULL OR c.title = :title)
  AND (CAST(:since AS {{big}}) IS NULL OR c.updated_at > :since)
ORDER BY +c.number DESC LIMIT :limit;

-- name: with_words
{{sqlite}}
SELECT c.number FROM contexts_text w JOIN contexts c ON c.number = w.rowid
{{end}}
{{postgres}}
SELECT c.number FROM contexts c
{{end}}
{{joins}}
WHERE {{not_deleted}}
{{sqlite}}
  AND contexts_text MATCH :words AND w.rowid < :before
{{end}}
{{postgres}}
  AND c.search @@ websearch_to_tsquery('simple', regexp_replace(normalize(:words, NFKD), '[\u0300-\u036F]', '', 'g'))
  AND c.number < :before
{{end}}
  AND {{visible}}
  AND (CAST(:session AS TEXT) IS NULL OR c.session_id = :session)
  AND (CAST(:agent AS TEXT) IS NULL OR c.agent_id = :agent)
  AND {{titled}}
  AND (CAST(:since AS {{big}}) IS NULL OR c.updated_at > :since)
{{sqlite}}
ORDER BY w.rowid DESC LIMIT :limit
{{end}}
{{postgres}}
ORDER BY c.number DESC LIMIT :limit
{{end}}
;

-- name: update
UPDATE contexts SET title = COALESCE(CAST(:title AS TEXT), title),
    content = COALESCE(CAST(:content AS TEXT), content),
    metadata = COALESCE(CAST(:metadata AS TEXT), metadata), updated_at = :now
WHERE number = :number;

-- name: set_deleted
UPDATE contexts SET deleted_at = CAST(:at AS {{big}}) WHERE number = :number;
