-- name: note
INSERT INTO koi_rejections (node, rid, sha256, code, reason, rejected_at)
VALUES (:node, :rid, :sha256, :code, :reason, :now)
ON CONFLICT (node, rid) DO UPDATE SET sha256 = excluded.sha256, code = excluded.code, reason = excluded.reason,
    rejected_at = excluded.rejected_at;

-- name: hashes
SELECT rid, sha256 FROM koi_rejections WHERE node = :node;

-- name: clear
DELETE FROM koi_rejections WHERE node = :node;
