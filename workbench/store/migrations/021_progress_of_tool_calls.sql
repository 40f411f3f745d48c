-- How far a call was when it last said so: `progress` of `progress_total`, with a text; null: it has not, or not this.
ALTER TABLE tool_calls ADD COLUMN progress {{real}};
ALTER TABLE tool_calls ADD COLUMN progress_total {{real}};
ALTER TABLE tool_calls ADD COLUMN progress_message TEXT;

-- What a model behind the tool has used; null: no model, or its provider does not report it.
ALTER TABLE tool_calls ADD COLUMN input_tokens {{big}};
ALTER TABLE tool_calls ADD COLUMN output_tokens {{big}};
ALTER TABLE tool_calls ADD COLUMN cost_usd {{real}};
