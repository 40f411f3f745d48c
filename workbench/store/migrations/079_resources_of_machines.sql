-- What there is, is there on a machine: GPUs, processors and memory of each by themselves.
CREATE TABLE resources_of_machines (
    machine TEXT NOT NULL DEFAULT '',
    name TEXT NOT NULL,
    device TEXT NOT NULL DEFAULT '',
    amount {{big}} NOT NULL,
    vram {{big}},
    problem TEXT,
    PRIMARY KEY (machine, name, device)
) {{strict}};
INSERT INTO resources_of_machines (name, device, amount, vram, problem)
SELECT name, device, amount, vram, problem FROM resources;
DROP TABLE resources;
ALTER TABLE resources_of_machines RENAME TO resources;
CREATE INDEX resources_by_name ON resources (name);

ALTER TABLE resource_leases ADD COLUMN machine TEXT NOT NULL DEFAULT '';
DROP INDEX one_holder_of_a_device;
CREATE UNIQUE INDEX one_holder_of_a_device ON resource_leases (machine, name, device) WHERE device <> '';

-- machine: on which an agent asked last that could do it.
ALTER TABLE resource_waits ADD COLUMN machine TEXT NOT NULL DEFAULT '';

-- machine: which one has the key of the project's node, and takes part in the KOI network.
ALTER TABLE koi_network ADD COLUMN machine TEXT NOT NULL DEFAULT '';

-- machine: which one has the files that the run left.
ALTER TABLE runs ADD COLUMN machine TEXT NOT NULL DEFAULT '';
