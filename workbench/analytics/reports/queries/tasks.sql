SELECT id, name, title, status, agent, attempts,
    round(wait_seconds, 2) AS unclaimed_s, round(duration_seconds, 2) AS duration_s
FROM tasks ORDER BY id
