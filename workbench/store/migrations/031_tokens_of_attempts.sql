-- The command of a supervised attempt has a token of its own, which is valid until the attempt ends.

ALTER TABLE attempt_work ADD COLUMN token_hash TEXT;
CREATE UNIQUE INDEX attempt_work_by_token ON attempt_work (token_hash) WHERE token_hash IS NOT NULL;
