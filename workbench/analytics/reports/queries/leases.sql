SELECT agent, count(*) AS made, count(*) FILTER (WHERE outcome = 'completed') AS completed,
    count(*) FILTER (WHERE outcome = 'failed') AS failed, count(*) FILTER (WHERE outcome = 'expired') AS leases_lost,
    count(*) FILTER (WHERE attempt > 1) AS later_attempts
FROM attempts GROUP BY agent ORDER BY leases_lost DESC, made DESC, agent
