WITH here AS (SELECT agent, here_seconds AS here_s FROM agents WHERE admitted_at IS NOT NULL),
origin AS (SELECT min(began_at) AS zero FROM busy)
SELECT b.agent, b.persona, epoch(b.began_at - o.zero) AS start_s, epoch(b.began_at - o.zero) + b.seconds AS end_s,
    b.seconds AS busy_s, h.here_s, least(1, sum(b.seconds) OVER (PARTITION BY b.agent) / nullif(h.here_s, 0)) AS share
FROM busy b CROSS JOIN origin o LEFT JOIN here h ON h.agent = b.agent
UNION ALL
SELECT a.agent, a.persona, NULL, NULL, 0, h.here_s, 0
FROM agents a JOIN here h ON h.agent = a.agent CROSS JOIN origin o
WHERE a.role = 'worker' AND o.zero IS NOT NULL AND a.agent NOT IN (SELECT agent FROM busy)
ORDER BY share DESC, 1, start_s
