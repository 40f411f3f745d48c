SELECT kind, coalesce(person, decided_by, 'nobody yet') AS decided_by,
    person IS NOT NULL OR (status IN ('approved', 'rejected') AND coalesce(decided_by, '') = 'operator') AS by_person, count(*) AS asked,
    count(*) FILTER (WHERE status = 'approved') AS approved, count(*) FILTER (WHERE status = 'rejected') AS rejected,
    count(*) FILTER (WHERE status = 'failed') AS withdrawn, count(*) FILTER (WHERE status = 'pending') AS pending,
    sum(wait_seconds) AS total_s, median(wait_seconds) AS median_s, max(wait_seconds) AS longest_s
FROM approvals GROUP BY ALL ORDER BY by_person DESC, total_s DESC NULLS LAST, kind, 2
