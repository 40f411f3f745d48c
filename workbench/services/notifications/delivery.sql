-- name: due
SELECT n.id, n.at, n.sentence, n.items, n.left_out, d.tries,
    NULL AS command, NULL AS webhook, NULL AS error_code, NULL AS error
FROM notification_deliveries d JOIN notifications n ON n.id = d.notification_id
WHERE d.state = 'waiting' AND d.channel = :channel AND d.not_before <= :now AND d.begun_at IS NULL
ORDER BY n.id LIMIT 20;

-- name: note
UPDATE notification_deliveries SET state = :state, tries = :tries, not_before = :not_before, ended_at = :ended_at,
    error_code = :code, error = :error, begun_at = NULL
WHERE notification_id = :id AND channel = :channel;

-- name: begin
UPDATE notification_deliveries SET begun_at = :now WHERE notification_id = :id AND channel = :channel;

-- name: cut_off
SELECT notification_id AS id, tries FROM notification_deliveries
WHERE state = 'waiting' AND begun_at IS NOT NULL AND channel = :channel ORDER BY notification_id;

-- name: untried
SELECT notification_id FROM notification_deliveries WHERE state = 'waiting' AND tries = 0;
