-- The keys of a workplace that plans and personas state, as JSON; and whether the operator trusts those of a plan.

ALTER TABLE plans ADD COLUMN workplace TEXT;
ALTER TABLE plans ADD COLUMN workplace_trusted {{big}} NOT NULL DEFAULT 0;
ALTER TABLE personas ADD COLUMN workplace TEXT;
