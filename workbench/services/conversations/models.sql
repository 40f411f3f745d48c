-- name: used
SELECT model AS name, MAX(at) AS used_at FROM (
    SELECT model, created_at AS at FROM turns WHERE model IS NOT NULL
    UNION ALL
    SELECT model, updated_at AS at FROM conversations WHERE model IS NOT NULL
) AS named GROUP BY model ORDER BY 2 DESC, 1;
