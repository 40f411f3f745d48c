-- How large what the nodes of a KOI network have sent is, and names of personalities that were taken from their owners.

-- bytes: of `contents`, as UTF-8. Those that were stored before count by their characters. The indexes hold all that sums
-- need: a row would have to be read as far as its end, behind the contents.
ALTER TABLE koi_bundles ADD COLUMN bytes {{big}} NOT NULL DEFAULT 0;
UPDATE koi_bundles SET bytes = LENGTH(contents);
CREATE INDEX koi_bundles_by_size ON koi_bundles (owner, bytes);
ALTER TABLE personality_history ADD COLUMN bytes {{big}} NOT NULL DEFAULT 0;
UPDATE personality_history SET bytes = LENGTH(contents) WHERE contents IS NOT NULL;
CREATE INDEX personality_history_by_size ON personality_history (name, id, bytes);

-- Names that the operator took from their owners. key_hash: of the owner's key, as its RID ends, whatever it calls itself.
-- What this owner has signed is not accepted under the name any more, however old or new it is.
CREATE TABLE personality_releases (
    name TEXT NOT NULL,
    key_hash TEXT NOT NULL,
    owner TEXT NOT NULL,
    released_by TEXT NOT NULL,
    released_at {{big}} NOT NULL,
    PRIMARY KEY (name, key_hash)
) {{strict}};
