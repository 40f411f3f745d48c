-- Nothing has ever noted when a session was last used.

ALTER TABLE sessions DROP COLUMN used_at;
