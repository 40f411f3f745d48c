-- facts: what the machine said of itself when it last enlisted a worker (JSON); shown, never trusted.
ALTER TABLE machine_tokens ADD COLUMN facts TEXT;

-- key_hash: of the key with which it was enlisted, so that a repeated request enlists no other. worktree: the one that
-- it gets.
ALTER TABLE machine_workers ADD COLUMN key_hash TEXT;
ALTER TABLE machine_workers ADD COLUMN profile TEXT NOT NULL DEFAULT 'script';
ALTER TABLE machine_workers ADD COLUMN worktree TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX one_worker_of_a_key ON machine_workers (key_hash);
