-- What is kept of a node is summed without its edges, and those that it has sent, of which it may not be the owner. The
-- indexes hold all that sums need.
DROP INDEX koi_bundles_by_size;
CREATE INDEX koi_bundles_by_size ON koi_bundles (owner, rid_type, bytes);
CREATE INDEX koi_bundles_by_sender ON koi_bundles (rid_type, origin, bytes);

-- is_final: the node will never accept the event. Otherwise it has failed with it, and gets it again when both are compared.
ALTER TABLE koi_rejections ADD COLUMN is_final {{big}} NOT NULL DEFAULT 1;
