-- A task waits from its creation, its revival, or the end of an attempt, until the next claim or its cancellation. That
-- time, a window, is split in this order: a pause before a retry, dependencies that are not completed, then nobody to
-- claim it. While nobody claims it, it waits for a person as long as the admission of the agent that claims it in the end
-- is not decided; one that a rule or `spawn` admits is not waited for. A task that an agent proposes waits for a person
-- before its first attempt, until it is approved or left out. A task that cannot start any more has waited until
-- what it needs failed. `end_us` tells windows before the same attempt apart.
CREATE VIEW waits AS
WITH latest AS (
    SELECT coalesce(max(at_us), 0) AS us FROM raw_events
), last_attempt AS (
    SELECT task_id, max(attempt) AS attempt, max(ended_us) AS ended_us, arg_max(outcome, attempt) AS outcome
    FROM raw_attempts GROUP BY task_id
), undone_cancellations AS (
    SELECT t.id AS task_id, c.at_us
    FROM raw_events c JOIN raw_tasks t ON c.subject = 'task:' || t.id
    WHERE c.kind = 'task.cancelled'
      AND EXISTS (FROM raw_events e WHERE e.kind = 'task.revived' AND e.subject = c.subject AND e.id > c.id)
), windows AS (
    SELECT task_id, attempt, agent_uid, claimed_us AS until_us, claimed_us AS end_us, TRUE AS is_claimed,
        lag(ended_us) OVER by_task AS before_us, lag(outcome) OVER by_task AS before_outcome
    FROM raw_attempts WINDOW by_task AS (PARTITION BY task_id ORDER BY attempt)
    UNION ALL
    SELECT t.id, coalesce(l.attempt, 0) + 1, NULL, t.completed_us, coalesce(t.completed_us, 0), FALSE, l.ended_us, l.outcome
    FROM raw_tasks t LEFT JOIN last_attempt l ON l.task_id = t.id
    WHERE t.status = 'pending' OR (t.status = 'cancelled' AND (l.ended_us IS NULL OR l.ended_us < t.completed_us))
    UNION ALL
    SELECT c.task_id, coalesce(max(x.attempt), 0) + 1, NULL, c.at_us, c.at_us, FALSE, max(x.ended_us), arg_max(x.outcome, x.attempt)
    FROM undone_cancellations c LEFT JOIN raw_attempts x ON x.task_id = c.task_id AND x.ended_us <= c.at_us
    GROUP BY c.task_id, c.at_us
), revivals AS (
    SELECT w.task_id, w.attempt, w.end_us, max(e.at_us) AS us
    FROM windows w JOIN raw_events e
      ON e.kind = 'task.revived' AND e.subject = 'task:' || w.task_id AND e.at_us <= coalesce(w.until_us, e.at_us)
    GROUP BY w.task_id, w.attempt, w.end_us
), pauses AS (
    SELECT w.task_id, w.attempt, w.end_us, min(e.at_us) AS us
    FROM windows w JOIN raw_events e
      ON e.kind = 'task.retry_ready' AND e.subject = 'task:' || w.task_id AND e.at_us >= w.before_us
    GROUP BY w.task_id, w.attempt, w.end_us
), needs AS (
    SELECT w.task_id, w.attempt, w.end_us,
        max(d.completed_us) FILTER (WHERE is_met AND d.completed_us <= coalesce(w.until_us, d.completed_us)) AS met_us,
        bool_or(NOT is_met OR d.completed_us > w.until_us) AS is_unmet
    FROM windows w
    JOIN held_back h ON h.task_id = w.task_id
    JOIN raw_tasks o ON o.id = h.by_way_of
    JOIN (
        SELECT *, status = 'completed' AS is_completed, status IN ('completed', 'failed', 'cancelled') AS is_over FROM raw_tasks
    ) d ON d.id = h.depends_on
    CROSS JOIN LATERAL (SELECT CASE WHEN o.on_failure = 'ignore' THEN d.is_over ELSE d.is_completed END AS is_met)
    GROUP BY w.task_id, w.attempt, w.end_us
), registrations AS (
    SELECT p.id AS approval_id, a.id AS uid, a.persona, p.status, p.created_us, p.decided_us
    FROM raw_approvals p JOIN raw_agents a ON p.subject = 'agent:' || a.id
    WHERE p.kind = 'registration' AND (p.decided_by IS NULL OR (p.decided_by <> 'spawn' AND p.decided_by NOT LIKE 'rule:%'))
), admissions AS (
    SELECT uid, min(approval_id) AS approval_id, min(created_us) AS created_us, min(decided_us) AS decided_us
    FROM registrations WHERE status = 'approved' GROUP BY uid
), open_admissions AS (
    SELECT persona, min(approval_id) AS approval_id, min(created_us) AS created_us
    FROM registrations WHERE status = 'pending' GROUP BY persona
), proposals AS (
    SELECT t.id AS task_id, CAST(e.data->>'$.approval' AS BIGINT) AS approval_id, e.at_us AS decided_us
    FROM raw_events e JOIN raw_tasks t ON e.subject = 'task:' || t.id WHERE e.kind = 'task.approved'
    UNION ALL
    SELECT id, approval_id, NULL FROM raw_tasks WHERE approval_id IS NOT NULL
), bounds AS (
    SELECT w.task_id, w.attempt, coalesce(w.until_us, epoch_us(b.blocked_at)) AS until_us,
        coalesce(w.until_us, epoch_us(b.blocked_at), l.us) AS to_us,
        greatest(coalesce(w.before_us, t.created_us), coalesce(v.us, 0)) AS from_us,
        w.before_outcome IN ('failed', 'expired') AND v.us IS NULL AS is_retry,
        z.us AS paused_us,
        n.met_us,
        coalesce(n.is_unmet, FALSE) AND NOT w.is_claimed AS is_unmet,
        coalesce(p.approval_id, m.approval_id, o.approval_id) AS approval_id,
        CASE WHEN p.task_id IS NULL THEN coalesce(m.created_us, o.created_us) ELSE t.created_us END AS asked_us,
        coalesce(p.decided_us, CASE WHEN p.task_id IS NULL THEN m.decided_us END, to_us) AS answered_us,
        p.decided_us IS NOT NULL AS is_approved
    FROM windows w
    CROSS JOIN latest l
    JOIN raw_tasks t ON t.id = w.task_id
    LEFT JOIN revivals v ON v.task_id = w.task_id AND v.attempt = w.attempt AND v.end_us = w.end_us
    LEFT JOIN pauses z ON z.task_id = w.task_id AND z.attempt = w.attempt AND z.end_us = w.end_us
    LEFT JOIN blocked b ON b.task_id = w.task_id AND NOT w.is_claimed
    LEFT JOIN needs n ON n.task_id = w.task_id AND n.attempt = w.attempt AND n.end_us = w.end_us
    LEFT JOIN admissions m ON m.uid = w.agent_uid
    LEFT JOIN open_admissions o ON o.persona = t.persona AND w.until_us IS NULL
    LEFT JOIN proposals p ON p.task_id = w.task_id AND w.attempt = 1
), retried AS (
    SELECT *, CASE WHEN is_retry THEN least(greatest(coalesce(paused_us, to_us), from_us), to_us) ELSE from_us END AS rested_us
    FROM bounds
), ready AS (
    SELECT *, CASE WHEN is_unmet THEN to_us ELSE least(greatest(coalesce(met_us, 0), rested_us), to_us) END AS ready_us
    FROM retried
), asked AS (
    SELECT *, least(greatest(coalesce(asked_us, to_us), ready_us), to_us) AS person_us,
        least(greatest(coalesce(answered_us, 0), ready_us), to_us) AS admitted_us
    FROM ready
), parts AS (
    SELECT task_id, attempt, 'retry' AS waits_for, NULL AS approval_id, from_us, rested_us AS to_us,
        until_us IS NULL AND is_retry AND paused_us IS NULL AS is_open
    FROM asked
    UNION ALL
    SELECT task_id, attempt, 'dependency', NULL, rested_us, ready_us,
        until_us IS NULL AND is_unmet AND NOT (is_retry AND paused_us IS NULL)
    FROM asked
    UNION ALL
    SELECT task_id, attempt, 'agent', NULL, ready_us, person_us,
        until_us IS NULL AND NOT is_unmet AND NOT (is_retry AND paused_us IS NULL) AND asked_us IS NULL
    FROM asked
    UNION ALL
    SELECT task_id, attempt, 'person', approval_id, person_us, greatest(admitted_us, person_us),
        until_us IS NULL AND NOT is_unmet AND NOT (is_retry AND paused_us IS NULL) AND asked_us IS NOT NULL AND NOT is_approved
    FROM asked
    UNION ALL
    SELECT task_id, attempt, 'agent', NULL, greatest(admitted_us, person_us), to_us,
        until_us IS NULL AND NOT is_unmet AND is_approved
    FROM asked
    UNION ALL
    SELECT task_id, attempt, 'person', approval_id, requested_us, coalesce(started_us, ended_us, l.us),
        started_us IS NULL AND ended_us IS NULL
    FROM raw_tool_calls CROSS JOIN latest l WHERE approval_id IS NOT NULL AND task_id IS NOT NULL
    UNION ALL
    SELECT t.id, t.attempt, 'person', p.id, greatest(p.created_us, t.completed_us), coalesce(p.decided_us, l.us),
        p.decided_us IS NULL
    FROM raw_approvals p
    JOIN raw_tasks t ON p.subject = 'worktree:' || t.worktree AND t.status = 'completed'
    CROSS JOIN latest l
    WHERE p.kind = 'integration' AND p.status IN ('pending', 'approved', 'rejected')
      AND t.completed_us <= coalesce(p.decided_us, l.us)
      AND NOT EXISTS (
        FROM raw_approvals earlier
        WHERE earlier.subject = p.subject AND earlier.kind = 'integration' AND earlier.status = 'approved'
          AND earlier.id < p.id AND earlier.decided_us >= t.completed_us
      )
)
SELECT task_id, attempt, waits_for, approval_id,
    make_timestamptz(from_us) AS began_at,
    CASE WHEN NOT is_open THEN make_timestamptz(to_us) END AS ended_at,
    (to_us - from_us) / 1e6 AS seconds
FROM parts WHERE to_us > from_us OR is_open;

COMMENT ON VIEW waits IS 'What tasks waited for, piece by piece: a dependency, an agent, a person or a retry.';
COMMENT ON COLUMN waits.task_id IS 'The task.';
COMMENT ON COLUMN waits.attempt IS 'The attempt that it waited to begin; a person may also keep one waiting that runs, or has ended.';
COMMENT ON COLUMN waits.waits_for IS 'dependency, agent (nobody claimed it), person (who had to admit the agent, permit a tool or merge the work) or retry (the pause after a failure).';
COMMENT ON COLUMN waits.approval_id IS 'The approval that a person had to decide; null: it did not wait for a person.';
COMMENT ON COLUMN waits.began_at IS 'When this wait began.';
COMMENT ON COLUMN waits.ended_at IS 'When it ended, also because it cannot start any more; null: it still waits.';
COMMENT ON COLUMN waits.seconds IS 'How long; of a wait that lasts, until the last event of the project.';
