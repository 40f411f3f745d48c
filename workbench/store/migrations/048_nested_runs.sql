-- parent_id: the run within which a run was started.

ALTER TABLE runs ADD COLUMN parent_id {{big}} REFERENCES runs (id);
CREATE INDEX runs_by_parent ON runs (parent_id, id) WHERE parent_id IS NOT NULL;
