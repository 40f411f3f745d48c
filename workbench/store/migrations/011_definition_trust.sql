-- What of the agent definitions the operator was asked to trust, and what became of it. fingerprint: identifies a
-- program, server, provider or permission with all that it consists of; a changed one has another fingerprint.

CREATE TABLE definition_trust (
    definition_id TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('asked', 'trusted', 'refused')),
    -- The question; null if it was trusted without one.
    approval_id {{big}} REFERENCES approvals (id),
    decided_by TEXT,
    decided_at {{big}},
    PRIMARY KEY (definition_id, fingerprint)
) {{strict}};
CREATE INDEX definition_trust_by_approval ON definition_trust (approval_id) WHERE approval_id IS NOT NULL;
