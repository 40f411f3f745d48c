-- interrupts: the agent's turn is ended for the message.

ALTER TABLE messages ADD COLUMN interrupts {{big}} NOT NULL DEFAULT 0;
