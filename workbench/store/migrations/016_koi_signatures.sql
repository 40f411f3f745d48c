-- What keeps nodes of a KOI network from doing harm by repetition, or by mere number.

-- Requests that would do harm if they were received again, and that carry no time: polls, and FORGET events without a
-- manifest. mark: the first half of the signature, which nobody but the sender can make anew.
CREATE TABLE koi_used_signatures (
    node TEXT NOT NULL,
    mark TEXT NOT NULL,
    used_at {{big}} NOT NULL,
    PRIMARY KEY (node, mark)
) {{strict}};
CREATE INDEX koi_used_signatures_by_time ON koi_used_signatures (used_at);

CREATE INDEX koi_tombstones_by_time ON koi_tombstones (forgotten_at);
CREATE INDEX personality_owners_by_owner ON personality_owners (owner);
