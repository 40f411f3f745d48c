-- name: edges_of
SELECT rid FROM koi_edges WHERE source = :node OR target = :node ORDER BY rid;
