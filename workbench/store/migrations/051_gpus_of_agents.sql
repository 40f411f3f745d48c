-- The GPU that an agent's box has, by the name of its device: no other agent gets it while the agent runs.

ALTER TABLE spawns ADD COLUMN gpu TEXT;
