-- Keyed hashes of what one process of the project was given as secret, so that no other process shows it. The key is a
-- file beside the store. beginning is a keyed hash of two bytes of the first characters of the value.

CREATE TABLE secret_marks (
    mark TEXT PRIMARY KEY,
    beginning TEXT NOT NULL,
    characters {{big}} NOT NULL,
    learned_at {{big}} NOT NULL
) {{strict}};
CREATE INDEX secret_marks_by_time ON secret_marks (learned_at);

-- Older records are masked once, by the next process that opens the project; a new store has none.

CREATE TABLE masked_records (
    masked_at {{big}} NOT NULL
) {{strict}};
INSERT INTO masked_records (masked_at) SELECT {{now}} WHERE NOT EXISTS (SELECT 1 FROM events);
