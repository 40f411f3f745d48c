-- What the program of an attempt says that it has used; null: it does not say. input_tokens includes cached_tokens. The
-- gateway's ledger is the meter where it has something.

ALTER TABLE task_attempts ADD COLUMN input_tokens {{big}};
ALTER TABLE task_attempts ADD COLUMN cached_tokens {{big}};
ALTER TABLE task_attempts ADD COLUMN output_tokens {{big}};
ALTER TABLE task_attempts ADD COLUMN cost_usd {{real}};
