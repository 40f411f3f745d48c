CREATE VIEW leases AS
WITH held AS (
    SELECT x.task_id, x.attempt, coalesce(CAST(x.leased AS JSON) ->> 'machine', x.machine) AS machine, a.agent, x.claimed_us, x.ended_us, CAST(x.leased AS JSON) AS leased
    FROM raw_attempts x JOIN raw_agents a ON a.id = x.agent_uid WHERE x.leased IS NOT NULL
), parts AS (
    SELECT h.*, 'gpu' AS name, unnest(CAST(h.leased -> 'devices' AS VARCHAR[])) AS device, 1 AS amount FROM held h
    UNION ALL
    SELECT h.*, part.key AS name, NULL AS device, part.value AS amount
    FROM (SELECT held.*, unnest(map_entries(CAST(leased -> 'amounts' AS MAP(VARCHAR, BIGINT)))) AS part FROM held) AS m
    JOIN held h USING (task_id, attempt)
    UNION ALL
    SELECT h.*, 'alone' AS name, 'machine' AS device, 1 AS amount FROM held h WHERE h.leased ->> 'alone' = 'true'
)
SELECT task_id, attempt, machine, agent, name, device, amount,
    make_timestamptz(claimed_us) AS begun_at,
    make_timestamptz(ended_us) AS ended_at,
    (ended_us - claimed_us) / 1e6 AS seconds
FROM parts;

COMMENT ON VIEW leases IS 'What attempts hold, and held, of what their tasks need: a row for each thing.';
COMMENT ON COLUMN leases.task_id IS 'The task.';
COMMENT ON COLUMN leases.attempt IS 'Number of the attempt at this task.';
COMMENT ON COLUMN leases.machine IS 'The machine whose it is; elsewhere:NAME has no clone of the project.';
COMMENT ON COLUMN leases.agent IS 'The agent that makes it.';
COMMENT ON COLUMN leases.name IS 'gpu, cpu, memory, license:NAME, a name of the settings, or alone: nothing else was begun.';
COMMENT ON COLUMN leases.device IS 'Which GPU; null: it is counted.';
COMMENT ON COLUMN leases.amount IS 'How much; memory in bytes.';
COMMENT ON COLUMN leases.begun_at IS 'When it was claimed.';
COMMENT ON COLUMN leases.ended_at IS 'When it was free again; null: it is held.';
COMMENT ON COLUMN leases.seconds IS 'Seconds for which it was held.';
