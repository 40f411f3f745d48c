-- name: add_events
WITH given AS (
    SELECT * FROM unnest(
        CAST(:ats AS BIGINT[]), CAST(:kinds AS TEXT[]), CAST(:actors AS TEXT[]), CAST(:subjects AS TEXT[]),
        CAST(:sessions AS TEXT[]), CAST(:datas AS TEXT[])
    ) WITH ORDINALITY AS given (at, kind, actor, subject, session, data, place)
), added AS (
    INSERT INTO events (at, kind, actor, subject, session, data)
    SELECT at, kind, actor, subject, session, data FROM given ORDER BY place
    RETURNING id
)
SELECT id, CAST(pg_current_xact_id() AS TEXT), pg_notify('workbench', '') FROM added ORDER BY id;
