SELECT waits_for, count(DISTINCT task_id) AS waiting_tasks, count(*) AS waits, sum(seconds) AS total_s, median(seconds) AS median_s,
    max(seconds) AS longest_s, count(*) FILTER (WHERE ended_at IS NULL) AS now_waiting,
    (SELECT count(DISTINCT task_id) FROM waits) AS of_tasks, (SELECT count(*) FROM blocked) AS of_blocked
FROM waits GROUP BY waits_for ORDER BY total_s DESC, waits_for
