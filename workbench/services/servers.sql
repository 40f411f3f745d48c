-- name: machines
SELECT name, identity, home FROM machines ORDER BY joined_at, name;

-- name: join
INSERT INTO machines (name, identity, home, joined_at) VALUES (:name, :identity, :home, :now);

-- name: rename
UPDATE machines SET name = :name, home = :home WHERE identity = :identity;

-- name: move_home
UPDATE machines SET home = :home WHERE identity = :identity AND home <> :home;

-- name: leave
DELETE FROM machines WHERE name = :name;

-- name: worktrees_to
UPDATE worktrees SET machine = :to WHERE CAST(:of AS TEXT) IS NULL OR machine = :of;

-- name: steps_to
UPDATE worktree_steps SET machine = :to WHERE CAST(:of AS TEXT) IS NULL OR machine = :of;

-- name: closed_to
UPDATE closed_worktrees SET machine = :to WHERE CAST(:of AS TEXT) IS NULL OR machine = :of;

-- name: spawns_to
UPDATE spawns SET machine = :to WHERE CAST(:of AS TEXT) IS NULL OR machine = :of;

-- name: attempts_to
UPDATE task_attempts SET machine = :to WHERE CAST(:of AS TEXT) IS NULL OR machine = :of;

-- name: schedules_to
UPDATE schedules SET machine = :to WHERE CAST(:of AS TEXT) IS NULL OR machine = :of;

-- name: servers_to
UPDATE servers SET machine = :to WHERE CAST(:of AS TEXT) IS NULL OR machine = :of;

-- name: resources_to
-- What it had is not there any more.
DELETE FROM resources WHERE machine = :of OR (CAST(:of AS TEXT) IS NULL AND machine <> :to AND machine NOT LIKE 'elsewhere:%');

-- name: leases_to
UPDATE resource_leases SET machine = :to WHERE machine = :of OR (CAST(:of AS TEXT) IS NULL AND machine NOT LIKE 'elsewhere:%');

-- name: waits_to
UPDATE resource_waits SET machine = :to WHERE machine = :of OR (CAST(:of AS TEXT) IS NULL AND machine NOT LIKE 'elsewhere:%');

-- name: runs_to
UPDATE runs SET machine = :to WHERE CAST(:of AS TEXT) IS NULL OR machine = :of;

-- name: koi_to
UPDATE koi_network SET machine = :to WHERE CAST(:of AS TEXT) IS NULL OR machine = :of;

-- name: begin
INSERT INTO servers (nonce, machine, process, url, started_at, seen_at)
VALUES (:nonce, :machine, :process, :url, :now, :now);

-- name: end
UPDATE servers SET ended_at = :now WHERE nonce = :nonce AND ended_at IS NULL;

-- name: end_earlier
-- A machine has one server at a time.
UPDATE servers SET ended_at = :now
WHERE nonce <> :nonce AND ended_at IS NULL AND (CAST(:machine AS TEXT) IS NULL OR machine = :machine);

-- name: forget
DELETE FROM servers WHERE ended_at < :before OR (ended_at IS NULL AND seen_at < :before);

-- name: beat
UPDATE servers SET seen_at = :now WHERE nonce = :nonce;

-- name: take_turn
-- It passes to another server when its time is over.
INSERT INTO turn_of_server (one, server, until) VALUES (1, :nonce, :until)
ON CONFLICT (one) DO UPDATE SET server = excluded.server, until = excluded.until
WHERE turn_of_server.server = excluded.server OR turn_of_server.until <= :now;

-- name: end_turn
DELETE FROM turn_of_server WHERE server = :nonce;

-- name: end_turn_of_machine
-- The turn of an earlier server of a machine, which has one at a time.
DELETE FROM turn_of_server WHERE server IN (SELECT s.nonce FROM servers s WHERE s.machine = :machine);

-- name: list
SELECT nonce, machine, process, url, started_at, seen_at, ended_at,
    CASE WHEN EXISTS (SELECT 1 FROM turn_of_server t WHERE t.server = nonce AND t.until > :now) THEN 1 ELSE 0 END AS has_turn
FROM servers
WHERE CAST(:all AS {{big}}) = 1 OR ended_at IS NULL ORDER BY started_at DESC, nonce;

-- name: running_on
SELECT nonce FROM servers WHERE machine = :machine AND ended_at IS NULL AND seen_at >= :since;

-- name: left_connected
-- Servers that hold connections and give no sign of life.
SELECT DISTINCT c.server FROM connections c LEFT JOIN servers s ON s.nonce = c.server
WHERE c.closed_at IS NULL AND (s.nonce IS NULL OR s.ended_at IS NOT NULL OR s.seen_at < :since);
