-- name: update
UPDATE runs SET name = COALESCE(CAST(:name AS TEXT), name), notes = COALESCE(CAST(:notes AS TEXT), notes)
WHERE id = :id;

-- name: add_tag
INSERT INTO run_tags (run_id, tag) VALUES (:run, :tag) ON CONFLICT DO NOTHING;

-- name: remove_tag
DELETE FROM run_tags WHERE run_id = :run AND tag = :tag;

-- name: archive
UPDATE runs SET archived_at = CAST(:at AS {{big}}) WHERE id = :id;
