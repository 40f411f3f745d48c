CREATE VIEW personalities AS
SELECT rid, name, version,
    ROW_NUMBER() OVER (PARTITION BY name ORDER BY published_us DESC, version DESC) = 1 AS is_latest,
    owner, origin, sha256, tools, contents,
    make_timestamptz(published_us) AS published_at,
    make_timestamptz(first_seen_us) AS first_seen,
    make_timestamptz(changed_us) AS changed_at
FROM raw_personalities;

COMMENT ON VIEW personalities IS 'What agents of the KOI network tell about themselves.';
COMMENT ON COLUMN personalities.rid IS 'Its RID on the network.';
COMMENT ON COLUMN personalities.name IS 'Name of the agent.';
COMMENT ON COLUMN personalities.version IS 'Version of the profile.';
COMMENT ON COLUMN personalities.is_latest IS 'Whether no newer version is known.';
COMMENT ON COLUMN personalities.owner IS 'RID of the node that may change it.';
COMMENT ON COLUMN personalities.origin IS 'RID of the node that sent it.';
COMMENT ON COLUMN personalities.sha256 IS 'Digest of the profile.';
COMMENT ON COLUMN personalities.tools IS 'How many traits can be called.';
COMMENT ON COLUMN personalities.contents IS 'The profile, as JSON.';
COMMENT ON COLUMN personalities.published_at IS 'When its node published it.';
COMMENT ON COLUMN personalities.first_seen IS 'When it was first known here.';
COMMENT ON COLUMN personalities.changed_at IS 'When it last changed here.';
