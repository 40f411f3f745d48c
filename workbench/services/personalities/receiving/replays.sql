-- name: use
INSERT INTO koi_used_signatures (node, mark, used_at) VALUES (:node, :mark, :now) ON CONFLICT (node, mark) DO NOTHING;
