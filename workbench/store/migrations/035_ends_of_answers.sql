-- How an answer ended, what its requests used that nobody reported, and what its prompt was made of.
-- end_reason: stop or length, of answers that are completed; null: not recorded. cut_at: the tokens at which the limit cut
-- it. unmeasured: requests whose tokens are unknown. definition_hash is the version of the definition; prompt_hash is of
-- the system prompt that was sent, and include names the rules and references that were chosen for it, as JSON.

ALTER TABLE messages ADD COLUMN end_reason TEXT;
ALTER TABLE messages ADD COLUMN cut_at {{big}};
ALTER TABLE messages ADD COLUMN unmeasured {{big}};
ALTER TABLE messages ADD COLUMN prompt_hash TEXT;
ALTER TABLE messages ADD COLUMN include TEXT;
ALTER TABLE agents ADD COLUMN prompt_hash TEXT;
ALTER TABLE agents ADD COLUMN include TEXT;
ALTER TABLE processes ADD COLUMN prompt_hash TEXT;
ALTER TABLE processes ADD COLUMN include TEXT;
ALTER TABLE task_attempts ADD COLUMN prompt_hash TEXT;
ALTER TABLE task_attempts ADD COLUMN include TEXT;
