-- name: due
SELECT n.id, n.at, n.sentence, n.items, n.left_out, d.tries,
    NULL AS command, NULL AS webhook, NULL AS error_code, NULL AS error
FROM notification_deliveries d JOIN notifications n ON n.id = d.notification_id
WHERE d.state = 'waiting' AND d.channel = :channel AND d.not_before <= :now
ORDER BY n.id LIMIT 20;

-- name: note
UPDATE notification_deliveries SET state = :state, tries = :tries, not_before = :not_before, ended_at = :ended_at,
    error_code = :code, error = :error
WHERE notification_id = :id AND channel = :channel;
