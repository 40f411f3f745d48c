-- Personalities on a KOI network (spec 5): this project's node and its own profiles, the nodes it knows, what they have
-- published, what is still to be sent to them, and what each of them may call.

-- One row: whether the node takes part, its name, and the node that it contacts first.
CREATE TABLE koi_network (
    one {{big}} PRIMARY KEY CHECK (one = 1),
    joined {{big}} NOT NULL,
    name TEXT NOT NULL,
    first_contact_url TEXT,
    first_contact_rid TEXT,
    changed_by TEXT NOT NULL,
    changed_at {{big}} NOT NULL
) {{strict}};

-- Nodes that this one has met. public_key: base64 of its DER form; its hash is part of the RID. is_relay: what it passes
-- on of other nodes is accepted, as that of the first contact. blocked_at: nothing is accepted from it or sent to it.
-- failures, retry_at: of requests to it, since the last success.
CREATE TABLE koi_nodes (
    rid TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    node_type TEXT NOT NULL CHECK (node_type IN ('FULL', 'PARTIAL')),
    base_url TEXT,
    public_key TEXT NOT NULL,
    is_relay {{big}} NOT NULL DEFAULT 0,
    first_seen {{big}} NOT NULL,
    last_seen {{big}} NOT NULL,
    failures {{big}} NOT NULL DEFAULT 0,
    retry_at {{big}},
    last_error TEXT,
    blocked_at {{big}},
    blocked_by TEXT
) {{strict}};

-- The newest bundle of each RID: personalities, nodes and edges. contents, manifest: JSON as received. manifest_at: the
-- time of the manifest. owner: the node that may change it; origin: the node that sent it; both are this node's for its
-- own. changed_at: when the contents changed here.
CREATE TABLE koi_bundles (
    rid TEXT PRIMARY KEY,
    rid_type TEXT NOT NULL,
    manifest TEXT NOT NULL,
    manifest_at {{big}} NOT NULL,
    sha256 TEXT NOT NULL,
    contents TEXT NOT NULL,
    owner TEXT NOT NULL,
    origin TEXT NOT NULL,
    first_seen {{big}} NOT NULL,
    last_seen {{big}} NOT NULL,
    changed_at {{big}} NOT NULL
) {{strict}};
CREATE INDEX koi_bundles_by_type ON koi_bundles (rid_type, rid);
CREATE INDEX koi_bundles_by_owner ON koi_bundles (owner, rid_type);

-- What personalities there are, derived from their bundles. is_latest: of the versions of its name.
CREATE TABLE personalities (
    rid TEXT PRIMARY KEY REFERENCES koi_bundles (rid),
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    owner TEXT NOT NULL,
    tools {{big}} NOT NULL,
    is_latest {{big}} NOT NULL
) {{strict}};
CREATE INDEX personalities_by_name ON personalities (name, is_latest);

-- Which node owns a name of personalities. It stays when they are forgotten, so that no other node takes the name.
CREATE TABLE personality_owners (
    name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    since {{big}} NOT NULL
) {{strict}};

-- What a personality was: a row for each change of its contents.
CREATE TABLE personality_history (
    id {{id}},
    rid TEXT NOT NULL,
    name TEXT NOT NULL,
    event_type TEXT NOT NULL CHECK (event_type IN ('NEW', 'UPDATE', 'FORGET')),
    sha256 TEXT,
    contents TEXT,
    origin TEXT NOT NULL,
    manifest_at {{big}},
    at {{big}} NOT NULL
) {{strict}};
CREATE INDEX personality_history_by_name ON personality_history (name, id);

-- What was forgotten. Only what is newer than `manifest_at` can come back.
CREATE TABLE koi_tombstones (
    rid TEXT PRIMARY KEY,
    rid_type TEXT NOT NULL,
    manifest_at {{big}} NOT NULL,
    owner TEXT NOT NULL,
    forgotten_at {{big}} NOT NULL
) {{strict}};

-- Who sends what to whom, derived from the bundles of edges. rid_types: JSON list.
CREATE TABLE koi_edges (
    rid TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    edge_type TEXT NOT NULL CHECK (edge_type IN ('WEBHOOK', 'POLL')),
    status TEXT NOT NULL CHECK (status IN ('PROPOSED', 'APPROVED')),
    rid_types TEXT NOT NULL
) {{strict}};
CREATE INDEX koi_edges_by_source ON koi_edges (source, target);
CREATE INDEX koi_edges_by_target ON koi_edges (target, source);

-- What is still to be sent to a node, or fetched by it: the newest event of each RID, in the order of `id`. What is sent
-- is the bundle as it is then.
CREATE TABLE koi_outbox (
    id {{id}},
    node TEXT NOT NULL,
    rid TEXT NOT NULL,
    event_type TEXT NOT NULL CHECK (event_type IN ('NEW', 'UPDATE', 'FORGET')),
    queued_at {{big}} NOT NULL,
    UNIQUE (node, rid)
) {{strict}};
CREATE INDEX koi_outbox_by_node ON koi_outbox (node, id);

-- How many messages of a node were refused, by reason. node: as the message names it.
CREATE TABLE koi_refusals (
    node TEXT NOT NULL,
    code TEXT NOT NULL,
    count {{big}} NOT NULL,
    last_at {{big}} NOT NULL,
    last_reason TEXT NOT NULL,
    PRIMARY KEY (node, code)
) {{strict}};

-- What a node may call here. trait: the name `agent__trait`, or * for all others.
CREATE TABLE koi_permissions (
    node TEXT NOT NULL,
    trait TEXT NOT NULL,
    permission TEXT NOT NULL CHECK (permission IN ('always', 'ask', 'never')),
    calls_per_minute {{big}} NOT NULL,
    decided_by TEXT NOT NULL,
    decided_at {{big}} NOT NULL,
    PRIMARY KEY (node, trait)
) {{strict}};

-- The personalities that this project publishes. traits: JSON list, those that were set by hand. What the definition, the
-- persona and the functions of notebooks add is read when the profile is made.
CREATE TABLE own_personalities (
    name TEXT PRIMARY KEY,
    version TEXT NOT NULL,
    agent_id TEXT REFERENCES agents (id),
    definition_id TEXT,
    traits TEXT NOT NULL,
    created_at {{big}} NOT NULL,
    changed_at {{big}} NOT NULL
) {{strict}};

-- The node that made a call from elsewhere, the call's id and the caller's name there.
ALTER TABLE tool_calls ADD COLUMN origin_node TEXT;
ALTER TABLE tool_calls ADD COLUMN origin_call TEXT;
ALTER TABLE tool_calls ADD COLUMN origin_caller TEXT;
CREATE INDEX tool_calls_by_origin ON tool_calls (origin_node, origin_call) WHERE origin_node IS NOT NULL;
