-- The token by which the command of an attempt asks for models, valid while the attempt is under way, and the providers
-- that it is for, separated by blanks.

ALTER TABLE attempt_work ADD COLUMN model_token_hash TEXT;
ALTER TABLE attempt_work ADD COLUMN model_providers TEXT;
CREATE UNIQUE INDEX attempt_work_by_model_token ON attempt_work (model_token_hash) WHERE model_token_hash IS NOT NULL;
