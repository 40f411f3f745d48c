-- shown_at: when an open panel took a message to show it; null: none has. Messages before this migration count as shown.
ALTER TABLE notifications ADD COLUMN shown_at {{big}};
UPDATE notifications SET shown_at = at;
-- begun_at: since when a message is being delivered. What a crash cut off is not delivered again: it may have arrived.
ALTER TABLE notification_deliveries ADD COLUMN begun_at {{big}};

-- The cell of a notebook that a comment is about, such as "cell 3 (id 4f2a), code"; empty: it is about no cell.
ALTER TABLE change_comments ADD COLUMN cell TEXT NOT NULL DEFAULT '';
