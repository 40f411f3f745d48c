-- What programs and models wrote, as they wrote it: masked() masks a text, or the texts in JSON; history() and
-- definition() leave what a person wrote. What is run or sent (tasks, plans, personas, questions) stays as it is.

UPDATE events SET data = masked(data);
UPDATE task_logs SET message = masked(message);
UPDATE task_attempts SET error_message = masked(error_message);
UPDATE task_status SET result_data = masked(result_data), artifacts = masked(artifacts),
    error_message = masked(error_message);
UPDATE attempt_work SET requested_end = masked(requested_end), problem = masked(problem);
UPDATE tool_calls SET arguments = masked(arguments), result = masked(result),
    progress_message = masked(progress_message);
UPDATE turns SET content = masked(content), parts = masked(parts), history = history(history), error = masked(error)
WHERE role = 'assistant';
UPDATE chat_frames SET data = masked(data);
UPDATE contexts SET title = masked(title), content = masked(content), metadata = masked(metadata);
{{sqlite}}
INSERT INTO contexts_text (contexts_text) VALUES ('rebuild');
{{end}}
UPDATE agents SET capabilities = masked(capabilities);
UPDATE approvals SET payload = CASE status WHEN 'pending' THEN payload ELSE masked(payload) END,
    reason = masked(reason), outcome = masked(outcome);
UPDATE processes SET reason = masked(reason);
UPDATE spawns SET reason = masked(reason);
UPDATE closed_worktrees SET reason = masked(reason);
UPDATE runs SET error = masked(error);
UPDATE run_metrics SET text = masked(text) WHERE text IS NOT NULL;
UPDATE run_latest_metrics SET text = masked(text) WHERE text IS NOT NULL;
UPDATE definition_contents SET content = definition(content);
