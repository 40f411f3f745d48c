-- Events that a node will never accept, as it has said: they are not sent to it again unless they change, or it introduces
-- itself anew. sha256: of the contents; empty for a FORGET.
CREATE TABLE koi_rejections (
    node TEXT NOT NULL,
    rid TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    code TEXT NOT NULL,
    reason TEXT NOT NULL,
    rejected_at {{big}} NOT NULL,
    PRIMARY KEY (node, rid)
) {{strict}};
