-- name: note
INSERT INTO koi_rejections (node, rid, sha256, code, reason, is_final, rejected_at)
VALUES (:node, :rid, :sha256, :code, :reason, :is_final, :now)
ON CONFLICT (node, rid) DO UPDATE SET sha256 = excluded.sha256, code = excluded.code, reason = excluded.reason,
    is_final = excluded.is_final, rejected_at = excluded.rejected_at;

-- name: hashes
SELECT rid, sha256 FROM koi_rejections WHERE node = :node AND is_final = 1;

-- name: clear
DELETE FROM koi_rejections WHERE node = :node;

-- name: failed
SELECT rid, sha256 FROM koi_rejections WHERE node = :node AND is_final = 0 ORDER BY rid;

-- name: clear_failed
DELETE FROM koi_rejections WHERE node = :node AND is_final = 0;
