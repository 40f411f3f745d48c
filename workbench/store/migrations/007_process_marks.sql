-- What the descendants of an agent's process are known by; null for processes of earlier versions.

ALTER TABLE processes ADD COLUMN mark TEXT;
