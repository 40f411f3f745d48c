CREATE VIEW resources AS
SELECT r.machine, r.name, nullif(r.device, '') AS device, r.amount, r.vram, r.problem,
    CAST(coalesce((SELECT sum(l.amount) FROM leases l
        WHERE l.name = r.name AND l.ended_at IS NULL AND coalesce(l.device, '') = r.device
            AND l.machine = r.machine), 0) AS BIGINT) AS held
FROM raw_resources r;

COMMENT ON VIEW resources IS 'What tasks can need: GPUs, processors, memory, licences, and what the settings name.';
COMMENT ON COLUMN resources.machine IS 'The machine that has it; elsewhere:NAME has no clone of the project.';
COMMENT ON COLUMN resources.name IS 'gpu, cpu, memory, license:NAME, or a name of the settings.';
COMMENT ON COLUMN resources.device IS 'Which GPU; null: it is counted.';
COMMENT ON COLUMN resources.amount IS 'How much there is; memory in bytes.';
COMMENT ON COLUMN resources.vram IS 'The memory of a GPU in bytes; null: it is not known.';
COMMENT ON COLUMN resources.problem IS 'Why it cannot be lent.';
COMMENT ON COLUMN resources.held IS 'How much attempts hold now.';
