SELECT kind, class, count(*) AS failures, max(occurred_at) AS last_at, arg_max(message, occurred_at) AS last_message
FROM failures GROUP BY kind, class ORDER BY failures DESC, kind, class
