-- The queries of each kind of space. A file that uses them defines the parts `table`, `source` (the table as x, and what
-- x is in), `columns` (those that only it has), `parent_id`, `deleted_at` (of x or what it is in) and `visible_to_agent`.

-- part: shown
SELECT x.id, x.name, x.description, x.created_at, x.updated_at, {{deleted_at}} AS deleted_at, {{parent_id}} AS parent_id,
{{columns}}
FROM {{source}}

-- part: visible
({{deleted_at}} IS NOT NULL) = (CAST(:deleted AS {{big}}) = 1)
  AND (CAST(:everything AS {{big}}) = 1 OR {{visible_to_agent}})

-- part: wanted
{{visible}}
  AND (CAST(:parent AS TEXT) IS NULL OR {{parent_id}} = :parent)
  AND (CAST(:since AS {{big}}) IS NULL OR x.updated_at > :since)
  AND (CAST(:search AS TEXT) IS NULL
       OR LOWER(x.name) LIKE LOWER(:search) ESCAPE '!' OR LOWER(x.description) LIKE LOWER(:search) ESCAPE '!')

-- name: find
{{shown}}
WHERE (x.id = :ref OR x.name = :ref) AND {{visible}}
ORDER BY x.created_at, x.id;

-- name: list
{{shown}}
WHERE {{wanted}}
  AND (x.created_at, x.id) > (CAST(:after_at AS {{big}}), CAST(:after_id AS TEXT))
ORDER BY x.created_at, x.id LIMIT :limit;

-- name: count
SELECT COUNT(*) AS n FROM {{source}} WHERE {{wanted}};

-- name: named
SELECT x.id FROM {{table}} x
WHERE COALESCE({{parent_id}}, '') = COALESCE(CAST(:parent AS TEXT), '') AND x.name = :name AND x.deleted_at IS NULL;

-- name: update
UPDATE {{table}} SET name = COALESCE(CAST(:name AS TEXT), name),
    description = COALESCE(CAST(:description AS TEXT), description), updated_at = :now
WHERE id = :id;

-- name: set_deleted
UPDATE {{table}} SET deleted_at = CAST(:at AS {{big}}) WHERE id = :id;
