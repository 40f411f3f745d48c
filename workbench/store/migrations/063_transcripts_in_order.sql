-- The messages of an attempt are read in their order, from either end.

CREATE INDEX transcript_in_order ON transcript (task_id, attempt, id);
