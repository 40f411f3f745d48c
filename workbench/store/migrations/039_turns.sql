-- A contribution to a conversation is a turn; a message is what one participant says to another.
-- The frames in chat_frames.data keep the words of /ws/chat.

ALTER TABLE messages RENAME TO turns;
ALTER TABLE chat_frames RENAME COLUMN message_id TO turn_id;
DROP INDEX messages_running;
CREATE UNIQUE INDEX turns_running ON turns (conversation_id) WHERE state = 'running';
DROP INDEX chat_frames_of_messages;
CREATE INDEX chat_frames_of_turns ON chat_frames (turn_id, number);

UPDATE events SET kind = 'turn.sent' WHERE kind = 'message.sent';
UPDATE events SET data = REPLACE(data, '"message_id"', '"turn_id"')
WHERE kind IN ('turn.sent', 'answer.started', 'answer.ended');
