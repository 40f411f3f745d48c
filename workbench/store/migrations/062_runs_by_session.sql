-- Which run a request to a model was made in is looked up by the session of who made it.

CREATE INDEX runs_by_session ON runs (session_id, started_at) WHERE session_id IS NOT NULL;
