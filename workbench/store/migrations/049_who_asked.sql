-- The name of the person who asked, where a person did and not an agent: as person is for who decided.

ALTER TABLE approvals ADD COLUMN asker TEXT;
