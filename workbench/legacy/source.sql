-- Queries of the legacy database. Its tables have the names of ours, with fewer or other columns.

-- name: tables
SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name;

-- name: damage
PRAGMA quick_check(1);

-- name: projects
SELECT * FROM projects;

-- name: sessions
SELECT * FROM sessions;

-- name: teams
SELECT * FROM teams;

-- name: agents
SELECT * FROM agents;

-- name: contexts
SELECT * FROM contexts;

-- name: agent_tools
SELECT * FROM agent_tools;
